/*
 * memory.c - see memory.h.
 */
#include "report/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/program_end.h"
#include "report/memory_summary.h"
#include "report/print.h"
#include "report/readable.h"
#include "trace/process_end.h"
#include "util/grow.h"

/* --- order --- */

static uint64_t measure_of(const struct live_weights *weights, enum memory_order order)
{
	switch (order) {
	case MEMORY_BY_END:
		return weights->end.bytes;
	case MEMORY_BY_ALLOCATED:
		return weights->made.bytes;
	case MEMORY_BY_ALLOCATIONS:
		return weights->made.blocks;
	case MEMORY_BY_TEMPORARY:
		return weights->temporary;
	case MEMORY_BY_PEAK:
		break;
	}
	return weights->peak.bytes;
}

/* Where the measure is equal, what was allocated in all decides, and then file, line and name. */
static int by_measure(const void *left, const void *right, void *owner)
{
	const struct report_memory *report = owner;
	const struct memory_site *a = left, *b = right;

	return compare_u64(measure_of(&b->weights, report->order), measure_of(&a->weights, report->order))
		   ?: compare_u64(b->weights.made.bytes, a->weights.made.bytes) ?: text_compare(a->file, b->file)
		   ?: compare_u64(a->line, b->line) ?: text_compare(a->name, b->name)
		   ?: compare_u64(a->native, b->native);
}

/*
 * Removes the sites that the report leaves out, and sorts the others. Returns how many remain. In order of the peak
 * those that had nothing then come last: they may have much at the end.
 */
static uint32_t sort_sites(const struct report_memory *report, struct memory *memory)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < memory->site_count; i++) {
		const struct live_weights *weights = &memory->sites[i].weights;
		bool has =
		    measure_of(weights, report->order) > 0 || (report->order == MEMORY_BY_PEAK && !report->leaks);

		if (has || (report->format != MEMORY_TEXT && !report->leaks && report->order != MEMORY_BY_TEMPORARY))
			memory->sites[kept++] = memory->sites[i];
	}
	if (kept)
		qsort_r(memory->sites, kept, sizeof(*memory->sites), by_measure, (void *)report);
	return kept;
}

static uint32_t rows_of(const struct report_memory *report, uint32_t count)
{
	return report->limit >= 0 && (uint64_t)report->limit < count ? (uint32_t)report->limit : count;
}

/* The first size of a class, and the last. */
static uint64_t first_size(unsigned class)
{
	return class ? UINT64_C(1) << (class - 1) : 0;
}

static uint64_t last_size(unsigned class)
{
	return class ? first_size(class) * 2 - 1 : 0;
}

/* --- text --- */

static void put_bytes(struct output *output, uint64_t bytes, int width)
{
	char text[TERMINAL_NUMBER_BYTES];

	output_format(output, "%*s", width, terminal_bytes(bytes, text));
}

static void put_held(struct output *output, const struct live_held *held)
{
	put_bytes(output, held->bytes, 0);
	output_format(output, " in %" PRIu64 " block%s", held->blocks, held->blocks == 1 ? "" : "s");
}

static void put_time(struct output *output, int64_t ns)
{
	char text[TERMINAL_NUMBER_BYTES];

	output_string(output, terminal_time((double)ns, text));
}

/* Whose allocators gave it, where that may differ. */
static void put_sources(const struct report_memory *report, const uint64_t sources[BLOCK_SOURCES])
{
	static const char *const names[BLOCK_SOURCES] = {"Python's", "malloc's", "mapped"};

	for (unsigned i = 0; i < BLOCK_SOURCES && report->any_native; i++) {
		output_string(report->output, i ? ", " : ": ");
		put_bytes(report->output, sources[i], 0);
		output_format(report->output, " %s", names[i]);
	}
}

static void put_kinds(const struct report_memory *report, const struct memory *memory)
{
	output_string(report->output, "  of those ");
	for (unsigned i = 0; i < MEMORY_KINDS; i++) {
		output_format(report->output, "%s%s ", i ? ", " : " ", memory_kind_names[i]);
		put_bytes(report->output, memory->kinds[i].end.bytes, 0);
	}
	output_char(report->output, '\n');
}

/* The resident size and its parts; what is not known of them is left out. */
static void put_resident(const struct report_memory *report, const struct resident *resident, const char *when)
{
	static const char *const names[RESIDENT_PARTS] = {
	    [BLOCK_PYTHON] = "Python's",
	    [BLOCK_MALLOC] = "malloc's",
	    [BLOCK_MAPPED] = "mapped",
	    [RESIDENT_STACKS] = "stacks",
	    [RESIDENT_FILES] = "files",
	    [RESIDENT_SHARED] = "shared",
	    [RESIDENT_EVPROF] = "evprof's",
	    [RESIDENT_HEAP_SLACK] = "free in malloc",
	    [RESIDENT_REST] = "free, or not known",
	};
	struct output *output = report->output;
	bool first = true;

	if (!resident->known)
		return;
	output_format(output, "  resident  ");
	put_bytes(output, resident->bytes, 0);
	output_format(output, " %s ", when);
	put_time(output, resident->ns);
	for (unsigned i = 0; i < RESIDENT_PARTS; i++) {
		int64_t bytes = resident->parts[i];

		if (!bytes)
			continue;
		output_string(output, first ? ": " : ", ");
		first = false;
		put_bytes(output, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, 0);
		output_format(output, " %s", bytes < 0 ? "less, not touched" : names[i]);
	}
	output_char(output, '\n');
}

/* How much of the memory that is not of files is in use: no share where the program has not touched all that it has. */
static void put_fragmentation(const struct report_memory *report, const struct resident *resident)
{
	if (!resident->known || !resident->anonymous)
		return;
	output_string(report->output, "  in use    heap ");
	put_bytes(report->output, resident->in_use, 0);
	output_string(report->output, " in ");
	put_bytes(report->output, resident->bytes, 0);
	output_string(report->output, " resident, ");
	put_bytes(report->output, resident->anonymous, 0);
	output_string(report->output, " of them anonymous");
	if (resident->in_use <= resident->anonymous)
		output_format(report->output, ": %.0f %%",
			      100.0 * (double)resident->in_use / (double)resident->anonymous);
	output_char(report->output, '\n');
}

static void put_all_resident(const struct report_memory *report, const struct memory *memory)
{
	put_resident(report, &memory->resident_peak, "at most, at");
	put_resident(report, &memory->resident_end, "when it ends, at");
	put_fragmentation(report, memory->resident_end.known ? &memory->resident_end : &memory->resident_peak);
}

static void put_summary(const struct report_memory *report, const struct memory *memory)
{
	const struct live_weights *all = &memory->all;
	struct output *output = report->output;
	char name[TERMINAL_NUMBER_BYTES], sampling[TRACE_SAMPLING_BYTES];

	output_string(output, memory->live.alive_only ? "  peak      not kept" : "  peak      ");
	if (!memory->live.alive_only)
		put_held(output, &all->peak);
	if (all->peak.blocks && !memory->live.alive_only) {
		output_string(output, " at ");
		put_time(output, memory->live.peak_ns);
		put_sources(report, memory->live.peak_sources);
	}
	output_format(output, "\n  %-9s ", report->at);
	put_held(output, &all->end);
	if (memory->end_ns != PROGRAM_END_NONE) {
		output_string(output, " at ");
		put_time(output, memory->end_ns);
	}
	put_sources(report, memory->live.end ? memory->live.end_sources : memory->live.shown_sources);
	output_string(output, "\n  allocated ");
	put_bytes(output, all->made.bytes, 0);
	output_format(output, " in %" PRIu64 " allocation%s", all->made.blocks, all->made.blocks == 1 ? "" : "s");
	if (!memory->live.interval)
		output_format(output, ", %" PRIu64 " of them temporary", all->temporary);
	output_format(output, "\n  churn     %s freed again\n",
		      terminal_bytes(all->made.bytes > all->end.bytes ? all->made.bytes - all->end.bytes : 0, name));
	if (report->leaks)
		put_kinds(report, memory);
	if (memory->live.interval)
		output_format(output, "  %s\n", trace_memory_sampling_text(memory->live.interval, sampling));
	if (memory->live.alive_only)
		output_string(output, "  " TRACE_ALIVE_ONLY_TEXT "\n");
	put_all_resident(report, memory);
	if (memory->live.missing_stacks)
		output_format(output, "  missing   %" PRIu64 " allocation%s no stack\n", memory->live.missing_stacks,
			      memory->live.missing_stacks == 1 ? " has" : "s have");
}

/* Where allocations are sampled, nobody knows which are temporary. */
static void put_temporary(struct output *output, const struct memory *memory, uint64_t number, int width,
			  const char *unknown)
{
	if (memory->live.interval)
		output_format(output, "%*s", width, unknown);
	else
		output_format(output, "%*" PRIu64, width, number);
}

/* Where only what is alive is kept, nobody knows the peak. */
static void put_peak(struct output *output, const struct memory *memory, uint64_t bytes, const char *unknown)
{
	if (memory->live.alive_only)
		output_string(output, unknown);
	else
		output_u64(output, bytes);
}

static void put_titles(const struct report_memory *report, const struct memory *memory)
{
	static const char *const titles[] = {
	    [MEMORY_BY_SITE] = "function",	   [MEMORY_BY_LINE] = "function", [MEMORY_BY_FUNCTION] = "function",
	    [MEMORY_BY_MODULE] = "module",	   [MEMORY_BY_THREAD] = "thread", [MEMORY_BY_TASK] = "task",
	    [MEMORY_BY_LIBRARY] = "native library"};

	output_char(report->output, '\n');
	terminal_style(&report->terminal, report->output, TERMINAL_BOLD);
	output_format(report->output, "%9s %7s %9s %9s %11s %11s  %s", "peak", "%", "end", "allocated", "allocations",
		      "temporary", titles[memory->options->by]);
	terminal_style(&report->terminal, report->output, TERMINAL_PLAIN);
	output_char(report->output, '\n');
}

#define NUMBERS_COLUMNS 63
#define UNCUT 100000u

static void put_name(const struct report_memory *report, struct readable *readable,
		     const struct memory_options *options, const struct memory_site *site)
{
	bool lines = options->by == MEMORY_BY_LINE || options->by == MEMORY_BY_SITE;
	unsigned width = report->terminal.columns, columns = !width			    ? UNCUT
							     : width > NUMBERS_COLUMNS + 20 ? width - NUMBERS_COLUMNS
											    : 20;

	readable_set(readable, options->by == MEMORY_BY_MODULE ? readable_path(site->name) : site->name,
		     site->file.length ? site->file : text_of("~"), site->line);
	if (lines && readable->place_width && !site->line) {
		output_string(&readable->bytes, ":?");
		readable->place_width += 2;
	}
	readable_put(readable, &report->terminal, report->output,
		     readable_name_columns(readable->name_width, readable->place_width, columns), columns);
}

static void put_row(const struct report_memory *report, struct readable *readable, const struct memory *memory,
		    const struct memory_site *site)
{
	uint64_t part = measure_of(&site->weights, report->order), all = measure_of(&memory->all, report->order);
	double percent = all ? 100.0 * (double)part / (double)all : 0;
	struct output *output = report->output;

	if (memory->live.alive_only)
		output_format(output, "%9s", "-");
	else
		put_bytes(output, site->weights.peak.bytes, 9);
	output_format(output, percent >= 99.95 ? " %5.0f %%" : " %5.1f %%", percent);
	output_char(output, ' ');
	put_bytes(output, site->weights.end.bytes, 9);
	output_char(output, ' ');
	put_bytes(output, site->weights.made.bytes, 9);
	output_format(output, " %11" PRIu64 " ", site->weights.made.blocks);
	put_temporary(output, memory, site->weights.temporary, 11, "-");
	output_string(output, "  ");
	put_name(report, readable, memory->options, site);
	output_char(output, '\n');
}

static int put_table(const struct report_memory *report, struct memory *memory)
{
	uint32_t count = sort_sites(report, memory), rows = rows_of(report, count);
	struct readable readable;
	int error = readable_init(&readable);

	if (error)
		return error;
	put_titles(report, memory);
	for (uint32_t i = 0; i < rows; i++)
		put_row(report, &readable, memory, &memory->sites[i]);
	if (!count)
		output_string(report->output, "no such allocations\n");
	if (rows < count)
		output_format(report->output, "%u more; --limit all shows them\n", count - rows);
	error = readable.bytes.error;
	readable_done(&readable);
	return error;
}

static void put_sizes(const struct report_memory *report, const struct memory *memory)
{
	struct output *output = report->output;

	output_format(output, "\n%9s %9s %11s %9s %11s\n", "from", "to", "allocations", "bytes", "temporary");
	for (unsigned i = 0; i < LIVE_SIZES; i++) {
		const struct live_size *size = &memory->live.sizes[i];

		if (!size->allocations)
			continue;
		put_bytes(output, first_size(i), 9);
		output_char(output, ' ');
		put_bytes(output, last_size(i), 9);
		output_format(output, " %11" PRIu64 " ", size->allocations);
		put_bytes(output, size->bytes, 9);
		output_char(output, ' ');
		put_temporary(output, memory, size->temporary, 11, "-");
		output_char(output, '\n');
	}
}

static int put_text(const struct report_memory *report, struct memory *memory)
{
	char *name = stack_process_name(memory->process);
	int error = 0;

	if (!name)
		return -ENOMEM;
	if (report->processes)
		output_char(report->output, '\n');
	terminal_style(&report->terminal, report->output, TERMINAL_BOLD);
	output_line(report->output, text_of(name));
	terminal_style(&report->terminal, report->output, TERMINAL_PLAIN);
	output_char(report->output, '\n');
	free(name);
	put_summary(report, memory);
	if (report->sizes)
		put_sizes(report, memory);
	else if (!report->summary)
		error = put_table(report, memory);
	return error;
}

/* --- what a row is, for programs --- */

/* The columns that name a site; NULL at the end. */
static const char *const *columns_of(enum memory_by by)
{
	static const char *const columns[][4] = {
	    [MEMORY_BY_SITE] = {"function", "file", "line"},
	    [MEMORY_BY_LINE] = {"function", "file", "line"},
	    [MEMORY_BY_FUNCTION] = {"function", "file", "line"},
	    [MEMORY_BY_MODULE] = {"module"},
	    [MEMORY_BY_THREAD] = {"thread"},
	    [MEMORY_BY_TASK] = {"task"},
	    [MEMORY_BY_LIBRARY] = {"library"},
	};

	return columns[by];
}

/* --- json --- */

static void put_json_text(struct output *output, const char *key, struct text text)
{
	output_format(output, "\"%s\": ", key);
	if (!text.length) {
		output_string(output, "null");
		return;
	}
	output_char(output, '"');
	output_json(output, text);
	output_char(output, '"');
}

static int put_json_function(struct output *output, struct memory *memory, const struct memory_site *site)
{
	const uint32_t *path;
	uint32_t count = 0;

	put_json_text(output, "function", site->file.length ? site->name : (struct text){0});
	output_string(output, ", ");
	put_json_text(output, "file", site->file);
	output_string(output, ", \"line\": ");
	if (site->line)
		output_u64(output, site->line);
	else
		output_string(output, "null");
	output_string(output, ", \"native\": [");
	path = memory_site_native(memory, site, &count);
	if (!path)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		output_string(output, i ? ", \"" : "\"");
		output_json(output, text_of(memory->functions.at[path[i]].name));
		output_char(output, '"');
	}
	output_char(output, ']');
	return 0;
}

static int put_json_site(struct output *output, struct memory *memory, const struct memory_site *site)
{
	const char *const *columns = columns_of(memory->options->by);
	const struct live_weights *weights = &site->weights;
	int error = 0;

	output_char(output, '{');
	if (columns[1])
		error = put_json_function(output, memory, site);
	else
		put_json_text(output, columns[0], site->name);
	output_string(output, ", \"peak_bytes\": ");
	put_peak(output, memory, weights->peak.bytes, "null");
	output_format(output,
		      ", \"end_bytes\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64 ", \"allocations\": %" PRIu64
		      ", \"temporary\": ",
		      weights->end.bytes, weights->made.bytes, weights->made.blocks);
	put_temporary(output, memory, weights->temporary, 0, "null");
	output_char(output, '}');
	return error;
}

static int put_json_sites(const struct report_memory *report, struct memory *memory)
{
	uint32_t rows = rows_of(report, sort_sites(report, memory));
	int error = 0;

	output_string(report->output, "\"sites\": [");
	for (uint32_t i = 0; i < rows && !error; i++) {
		output_string(report->output, i ? ",\n  " : "\n  ");
		error = put_json_site(report->output, memory, &memory->sites[i]);
	}
	output_string(report->output, "\n]");
	return error;
}

static void put_json_sizes(const struct report_memory *report, const struct memory *memory)
{
	bool any = false;

	output_string(report->output, "\"sizes\": [");
	for (unsigned i = 0; i < LIVE_SIZES; i++) {
		const struct live_size *size = &memory->live.sizes[i];

		if (!size->allocations)
			continue;
		output_format(report->output,
			      "%s\n  {\"from_bytes\": %" PRIu64 ", \"to_bytes\": %" PRIu64 ", \"allocations\": %" PRIu64
			      ", \"bytes\": %" PRIu64 ", \"temporary\": ",
			      any ? "," : "", first_size(i), last_size(i), size->allocations, size->bytes);
		put_temporary(report->output, memory, size->temporary, 0, "null");
		output_char(report->output, '}');
		any = true;
	}
	output_string(report->output, "\n]");
}

static void put_json_resident(struct output *output, const char *name, const struct resident *resident)
{
	if (!resident->known)
		return;
	output_format(output, ",\n \"%s\": {\"time_ns\": %" PRId64 ", \"bytes\": %" PRIu64, name, resident->ns,
		      resident->bytes);
	for (unsigned i = 0; i < RESIDENT_PARTS; i++)
		if (resident->parts[i])
			output_format(output, ", \"%s_bytes\": %" PRId64, resident_part_names[i], resident->parts[i]);
	output_char(output, '}');
}

static int put_json(const struct report_memory *report, struct memory *memory)
{
	const struct live_weights *all = &memory->all;
	struct output *output = report->output;
	int64_t rss_bytes = process_peak_rss(memory->process);
	int error = 0;

	output_format(output, "%s\n{\"pid\": %lld, \"peak_bytes\": ", report->processes ? "," : "",
		      (long long)memory->process->pid);
	put_peak(output, memory, all->peak.bytes, "null");
	output_string(output, ", \"peak_time_ns\": ");
	if (all->peak.blocks && !memory->live.alive_only)
		output_i64(output, memory->live.peak_ns);
	else
		output_string(output, "null");
	output_format(output, ", \"end_bytes\": %" PRIu64 ", \"peak_rss_bytes\": ", all->end.bytes);
	if (rss_bytes >= 0)
		output_i64(output, rss_bytes);
	else
		output_string(output, "null");
	output_format(output, ", \"missing_stacks\": %" PRIu64, memory->live.missing_stacks);
	if (memory->live.interval)
		output_format(output, ", \"memory_interval\": %" PRIu64, memory->live.interval);
	if (memory->live.alive_only)
		output_string(output, ", \"alive_only\": true");
	put_json_resident(output, "resident_at_peak", &memory->resident_peak);
	put_json_resident(output, "resident_at_end", &memory->resident_end);
	if (!report->summary)
		output_string(output, ",\n ");
	if (report->sizes)
		put_json_sizes(report, memory);
	else if (!report->summary)
		error = put_json_sites(report, memory);
	output_char(output, '}');
	return error;
}

/* --- csv --- */

static void put_csv_sizes(const struct report_memory *report, const struct memory *memory)
{
	for (unsigned i = 0; i < LIVE_SIZES; i++) {
		const struct live_size *size = &memory->live.sizes[i];

		if (!size->allocations)
			continue;
		output_format(report->output, "%lld,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
			      (long long)memory->process->pid, first_size(i), last_size(i), size->allocations,
			      size->bytes);
		put_temporary(report->output, memory, size->temporary, 0, "");
		output_char(report->output, '\n');
	}
}

static void put_csv_site(const struct report_memory *report, const struct memory *memory,
			 const struct memory_site *site)
{
	const struct live_weights *weights = &site->weights;
	struct output *output = report->output;

	output_format(output, "%lld,", (long long)memory->process->pid);
	report_csv_text(output, site->name);
	if (columns_of(memory->options->by)[1]) {
		report_csv_text(output, site->file);
		if (site->line)
			output_u64(output, site->line);
		output_char(output, ',');
	}
	put_peak(output, memory, weights->peak.bytes, "");
	output_format(output, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", weights->end.bytes, weights->made.bytes,
		      weights->made.blocks);
	put_temporary(output, memory, weights->temporary, 0, "");
	output_char(output, '\n');
}

static int put_csv(const struct report_memory *report, struct memory *memory)
{
	uint32_t rows;

	if (report->summary)
		memory_summary_put(report->output, memory);
	if (report->sizes)
		put_csv_sizes(report, memory);
	if (report->summary || report->sizes)
		return 0;
	rows = rows_of(report, sort_sites(report, memory));
	for (uint32_t i = 0; i < rows; i++)
		put_csv_site(report, memory, &memory->sites[i]);
	return 0;
}

/* --- all processes --- */

void report_memory_begin(struct report_memory *report, const struct memory_options *options)
{
	const char *const *columns = columns_of(options->by);

	if (report->format == MEMORY_JSON)
		output_string(report->output, "{\"processes\": [");
	if (report->format != MEMORY_CSV)
		return;
	if (report->summary) {
		memory_summary_titles(report->output);
		return;
	}
	output_string(report->output, "pid,");
	if (report->sizes) {
		output_string(report->output, "from_bytes,to_bytes,allocations,bytes,temporary\n");
		return;
	}
	for (; *columns; columns++)
		output_format(report->output, "%s,", *columns);
	output_string(report->output, "peak_bytes,end_bytes,allocated_bytes,allocations,temporary\n");
}

int report_memory_process(struct report_memory *report, struct memory *memory)
{
	int error = report->format == MEMORY_JSON  ? put_json(report, memory)
		    : report->format == MEMORY_CSV ? put_csv(report, memory)
						   : put_text(report, memory);

	report->processes++;
	return error;
}

void report_memory_end(struct report_memory *report)
{
	if (report->format == MEMORY_JSON)
		output_string(report->output, "\n]}\n");
}
