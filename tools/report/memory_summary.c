/*
 * memory_summary.c - see memory_summary.h.
 */
#include "report/memory_summary.h"

#include <inttypes.h>

#include "replay/program_end.h"
#include "trace/process_end.h"

/* What is not known of a row, or makes no sense there, is an empty cell. */
struct summary_row {
	const char *what;
	const char *part; /* NULL: all of it */
	int64_t ns;	  /* below 0: none */
	const int64_t *bytes;
	const uint64_t *blocks;
};

static void put_row(struct output *output, const struct memory *memory, const struct summary_row *row)
{
	output_format(output, "%lld,%s,%s,", (long long)memory->process->pid, row->what, row->part ? row->part : "all");
	if (row->ns >= 0)
		output_i64(output, row->ns);
	output_char(output, ',');
	if (row->bytes)
		output_i64(output, *row->bytes);
	output_char(output, ',');
	if (row->blocks)
		output_u64(output, *row->blocks);
	output_char(output, '\n');
}

static void put_part(struct output *output, const struct memory *memory, const char *what, const char *part, int64_t ns,
		     int64_t bytes)
{
	put_row(output, memory, &(struct summary_row){.what = what, .part = part, .ns = ns, .bytes = &bytes});
}

static void put_held(struct output *output, const struct memory *memory, const char *what, int64_t ns,
		     const struct live_held *held)
{
	int64_t bytes = (int64_t)held->bytes;

	put_row(output, memory,
		&(struct summary_row){.what = what, .ns = ns, .bytes = &bytes, .blocks = &held->blocks});
}

static void put_moment(struct output *output, const struct memory *memory, const char *what, int64_t ns,
		       const struct live_held *held, const uint64_t sources[BLOCK_SOURCES])
{
	put_held(output, memory, what, ns, held);
	for (unsigned i = 0; i < BLOCK_SOURCES && trace_process_records(memory->process, "malloc"); i++)
		put_part(output, memory, what, resident_part_names[i], ns, (int64_t)sources[i]);
}

static void put_resident(struct output *output, const struct memory *memory, const char *what,
			 const struct resident *resident)
{
	if (!resident->known)
		return;
	put_part(output, memory, what, NULL, resident->ns, (int64_t)resident->bytes);
	for (unsigned i = 0; i < RESIDENT_PARTS; i++)
		if (resident->parts[i])
			put_part(output, memory, what, resident_part_names[i], resident->ns, resident->parts[i]);
}

void memory_summary_titles(struct output *output)
{
	output_string(output, "pid,what,part,time_ns,bytes,blocks\n");
}

void memory_summary_put(struct output *output, const struct memory *memory)
{
	const struct live_weights *all = &memory->all;
	const struct live *live = &memory->live;
	int64_t end_ns = memory->end_ns == PROGRAM_END_NONE ? -1 : memory->end_ns;
	int64_t rss_bytes = process_peak_rss(memory->process);

	if (!live->alive_only)
		put_moment(output, memory, "peak", all->peak.blocks ? live->peak_ns : -1, &all->peak,
			   live->peak_sources);
	put_moment(output, memory, "end", end_ns, &all->end, live->end ? live->end_sources : live->shown_sources);
	for (unsigned i = 0; i < MEMORY_KINDS; i++)
		put_part(output, memory, "end", memory_kind_names[i], end_ns, (int64_t)memory->kinds[i].end.bytes);
	put_held(output, memory, "allocated", -1, &all->made);
	if (!live->interval)
		put_row(output, memory,
			&(struct summary_row){.what = "temporary", .ns = -1, .blocks = &all->temporary});
	if (rss_bytes >= 0)
		put_part(output, memory, "peak_rss", NULL, -1, rss_bytes);
	put_resident(output, memory, "resident_at_peak", &memory->resident_peak);
	put_resident(output, memory, "resident_at_end", &memory->resident_end);
	put_row(output, memory,
		&(struct summary_row){.what = "missing_stacks", .ns = -1, .blocks = &live->missing_stacks});
}
