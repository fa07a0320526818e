/*
 * resident.c - see resident.h.
 */
#include "analysis/resident.h"

#include <jansson.h>

const char *const resident_part_names[RESIDENT_PARTS] = {
    [BLOCK_PYTHON] = "python",	  [BLOCK_MALLOC] = "malloc",
    [BLOCK_MAPPED] = "mapped",	  [RESIDENT_STACKS] = "stacks",
    [RESIDENT_FILES] = "files",	  [RESIDENT_SHARED] = "shared",
    [RESIDENT_EVPROF] = "evprof", [RESIDENT_HEAP_SLACK] = "malloc_slack",
    [RESIDENT_REST] = "rest",
};

static uint64_t bytes_of(const struct trace_resident *sample)
{
	return sample->anonymous + sample->file + sample->shared;
}

static const struct trace_resident *find_peak(const struct trace_process *process)
{
	const struct trace_resident *peak = NULL;

	for (uint32_t i = 0; i < process->resident_count; i++)
		if (!peak || bytes_of(&process->resident[i]) > bytes_of(peak))
			peak = &process->resident[i];
	return peak;
}

uint64_t resident_peak_ticks(const struct trace_process *process)
{
	const struct trace_resident *peak = find_peak(process);

	return peak ? peak->ticks : 0;
}

/*
 * Adds live blocks and the rest to the parts that the kernel knows. Shared ranges are taken off the shared memory, as
 * far as they are resident there.
 */
static void add_blocks(struct resident *resident, const uint64_t sources[BLOCK_SOURCES], uint64_t shared)
{
	uint64_t touched = (uint64_t)resident->parts[RESIDENT_SHARED];

	touched = touched < shared ? touched : shared;
	for (unsigned i = 0; i < BLOCK_SOURCES; i++) {
		resident->parts[i] = (int64_t)sources[i];
		resident->in_use += sources[i];
	}
	resident->parts[RESIDENT_SHARED] -= (int64_t)touched;
	resident->parts[RESIDENT_REST] = (int64_t)(resident->anonymous + touched - resident->in_use);
	resident->in_use -= shared;
	resident->known = true;
}

struct resident resident_at_peak(const struct trace *trace, const struct trace_process *process,
				 const struct live *live)
{
	const struct trace_resident *peak = find_peak(process);
	struct resident resident = {0};

	if (!peak)
		return resident;
	resident.ns = trace_ns(process, peak->ticks) - trace->start_ns;
	resident.bytes = bytes_of(peak);
	resident.anonymous = peak->anonymous;
	resident.parts[RESIDENT_FILES] = (int64_t)peak->file;
	resident.parts[RESIDENT_SHARED] = (int64_t)peak->shared;
	add_blocks(&resident, live->resident_sources, live->resident_shared_bytes);
	return resident;
}

/* Takes the slack of malloc() off the rest, of that many bytes of its heap. */
static void split_rest(struct resident *resident, uint64_t heap, const struct live *live)
{
	int64_t slack = (int64_t)(heap - live->heap_bytes), rest = resident->parts[RESIDENT_REST];

	if (slack > rest)
		slack = rest;
	if (slack <= 0)
		return;
	resident->parts[RESIDENT_HEAP_SLACK] = slack;
	resident->parts[RESIDENT_REST] = rest - slack;
}

/* A number of bytes below 2^60; 0 if it is none. */
static uint64_t member_bytes(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 && !(value >> 60) ? (uint64_t)value : 0;
}

struct resident resident_at_end(const struct trace *trace, const struct trace_process *process, const struct live *live)
{
	const json_t *object = json_object_get(process->end, "resident");
	struct resident resident = {0};

	if (!json_is_object(object))
		return resident;
	resident.ns =
	    trace_ns(process, (uint64_t)json_integer_value(json_object_get(object, "ticks"))) - trace->start_ns;
	resident.anonymous = member_bytes(object, "heap") + member_bytes(object, "anonymous");
	resident.parts[RESIDENT_STACKS] = (int64_t)member_bytes(object, "stacks");
	resident.parts[RESIDENT_FILES] = (int64_t)member_bytes(object, "files");
	resident.parts[RESIDENT_SHARED] = (int64_t)member_bytes(object, "shared");
	resident.parts[RESIDENT_EVPROF] = (int64_t)member_bytes(object, "evprof");
	resident.bytes = resident.anonymous;
	for (unsigned i = RESIDENT_STACKS; i < RESIDENT_HEAP_SLACK; i++)
		resident.bytes += (uint64_t)resident.parts[i];
	add_blocks(&resident, live->sources, live->shared_bytes);
	split_rest(&resident, member_bytes(object, "heap"), live);
	return resident;
}
