/*
 * limits.c - what a trace has of what is limited, and whether the limits hold. See limits.h.
 */
#include "analysis/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/heap_curve.h"
#include "analysis/memory.h"
#include "replay/call_walk.h"
#include "trace/process_end.h"
#include "util/progress.h"

static bool has_limit(const struct limits *limits, enum limit_kind a, enum limit_kind b)
{
	for (size_t i = 0; i < limits->count; i++)
		if (limits->at[i].kind == a || limits->at[i].kind == b)
			return true;
	return false;
}

static bool limits_functions(const struct limit *limit)
{
	return limit->kind == LIMIT_CALLS || limit->kind == LIMIT_TIME;
}

/* --- measuring functions --- */

/* Whether the limit matches the function. Records the match, or a near name. */
static bool match_function(struct limit *limit, const struct wire_definition *definition, bool c_function)
{
	if (!limit->match.module)
		return true;
	if (!definition)
		return false;
	limit->of_python |= !c_function && function_match_module(&limit->match, definition, false);
	if (function_match_takes(&limit->match, definition, c_function)) {
		limit->matches[c_function]++;
		return true;
	}
	if (!limit->matches[0] && !limit->matches[1])
		function_near_add(&limit->near, &limit->match, definition, c_function);
	return false;
}

static int limits_process(void *owner, struct call_walk *walk)
{
	struct limits *limits = owner;
	uint32_t key;

	free(limits->masks);
	limits->masks = calloc(walk_keys(walk), sizeof(*limits->masks));
	if (!limits->masks)
		return -ENOMEM;
	for (key = 0; key < walk_keys(walk); key++)
		for (size_t i = 0; i < limits->count; i++) {
			struct limit *limit = &limits->at[i];

			if (limits_functions(limit) && match_function(limit, walk_definition(walk, key), key & 1))
				limits->masks[key] |= UINT64_C(1) << i;
			if (limit->match.out_of_memory)
				return -ENOMEM;
		}
	return 0;
}

static void limits_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct limits *limits = owner;
	uint64_t mask = limits->masks[frame->key];

	(void)walk;
	for (; mask; mask &= mask - 1) {
		struct limit *limit = &limits->at[__builtin_ctzll(mask)];

		limit->open++;
		if (limit->kind == LIMIT_CALLS)
			limit->measured += frame->kind != WIRE_FRAME;
	}
}

static void limits_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct limits *limits = owner;
	uint64_t mask = limits->masks[frame->key];

	(void)how;
	for (; mask; mask &= mask - 1) {
		struct limit *limit = &limits->at[__builtin_ctzll(mask)];

		if (--limit->open == 0 && limit->kind == LIMIT_TIME)
			limit->measured += (uint64_t)(walk->now_ns - frame->start_ns);
	}
}

/*
 * Under a budget what was recorded of these functions is less than what they did, and a C function that none but they
 * call may not be in the trace.
 */
static int limits_process_end(void *owner, struct call_walk *walk)
{
	const struct thinning *thinning = walk->replay.thinning;
	struct limits *limits = owner;

	limits->unrecorded.thinned |= thinning && thinning->any;
	for (uint32_t key = 0; thinning && key < walk_keys(walk); key++)
		for (size_t i = 0; i < limits->count; i++)
			limits->at[i].thinned |= (limits->masks[key] >> i & 1) && thinning_was(thinning, key);
	return 0;
}

static int measure_functions(struct limits *limits, struct trace *trace)
{
	static const struct call_visitor visitor = {
	    .process = limits_process, .process_end = limits_process_end, .push = limits_push, .pop = limits_pop};
	struct progress progress;
	int error;

	if (!has_limit(limits, LIMIT_CALLS, LIMIT_TIME))
		return 0;
	progress_begin(&progress, "counting", walk_events(trace, limits->filter));
	error = walk_trace(trace, limits->filter, &progress, &visitor, limits);
	progress_end(&progress);
	free(limits->masks);
	limits->masks = NULL;
	return error;
}

/* --- measuring memory --- */

struct peak {
	uint64_t bytes;
	bool any;
};

static void note_peak(void *owner, int64_t ns, uint64_t bytes)
{
	struct peak *peak = owner;

	(void)ns;
	peak->any = true;
	if (bytes > peak->bytes)
		peak->bytes = bytes;
}

/* The most of any process counts. */
static void note_process(struct limits *limits, enum limit_kind kind, const struct trace_process *process,
			 uint64_t measured)
{
	for (size_t i = 0; i < limits->count; i++) {
		struct limit *limit = &limits->at[i];

		if (limit->kind != kind || (limit->pid && limit->measured >= measured))
			continue;
		limit->measured = measured;
		limit->pid = process->pid;
	}
}

static int measure_heap(struct limits *limits, struct trace *trace)
{
	bool any = has_limit(limits, LIMIT_ALLOC, LIMIT_ALLOC);
	int error = 0;

	for (uint32_t i = 0; any && !error && i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];
		struct peak peak = {0};

		if (!process || !filter_process(limits->filter, process))
			continue;
		error = heap_curve(trace, process, limits->filter, HEAP_PYTHON, 0, note_peak, &peak);
		if (peak.any)
			note_process(limits, LIMIT_ALLOC, process, peak.bytes);
	}
	return error;
}

/* What the limit measures of these weights. */
static uint64_t measure_of(const struct limit *limit, const struct live_weights *weights)
{
	if (limit->kind == LIMIT_HEAP)
		return weights->peak.bytes;
	return limit->kind == LIMIT_LEAK ? weights->end.bytes : weights->made.blocks;
}

/* "function (file:line)", with the end of a long file's name. */
static void write_place(char place[LIMIT_PLACE_MAX], const struct memory_site *site)
{
	int skipped = site->file.length > LIMIT_PLACE_MAX / 2 ? (int)site->file.length - LIMIT_PLACE_MAX / 2 : 0;
	int length = (int)site->file.length - skipped, room = LIMIT_PLACE_MAX / 3;
	int name = (int)site->name.length < room ? (int)site->name.length : room;

	if (!length)
		snprintf(place, LIMIT_PLACE_MAX, "%.*s", name, site->name.at);
	else if (!site->line)
		snprintf(place, LIMIT_PLACE_MAX, "%.*s (%.*s)", name, site->name.at, length, site->file.at + skipped);
	else
		snprintf(place, LIMIT_PLACE_MAX, "%.*s (%.*s:%" PRIu32 ")", name, site->name.at, length,
			 site->file.at + skipped, site->line);
}

static void note_most(struct limit *limit, const struct memory *memory)
{
	const struct memory_site *most = NULL;

	for (uint32_t i = 0; i < memory->site_count; i++) {
		uint64_t measured = measure_of(limit, &memory->sites[i].weights);

		if (measured <= limit->most)
			continue;
		limit->most = measured;
		most = &memory->sites[i];
	}
	if (most)
		write_place(limit->most_place, most);
}

/* The process with most of it counts, of allocations all. */
static int note_memory(void *owner, struct memory *memory)
{
	struct limits *limits = owner;

	for (size_t i = 0; i < limits->count; i++) {
		struct limit *limit = &limits->at[i];
		uint64_t measured = measure_of(limit, &memory->all);

		if (limit->kind == LIMIT_ALLOCATIONS) {
			limit->measured += measured;
		} else if ((limit->kind == LIMIT_HEAP || limit->kind == LIMIT_LEAK) &&
			   (!limit->pid || limit->measured < measured)) {
			limit->measured = measured;
			limit->most = 0;
		} else {
			continue;
		}
		limit->pid = memory->process->pid;
		note_most(limit, memory);
	}
	return 0;
}

static bool has_memory_limit(const struct limits *limits)
{
	return has_limit(limits, LIMIT_HEAP, LIMIT_LEAK) || has_limit(limits, LIMIT_ALLOCATIONS, LIMIT_ALLOCATIONS);
}

static int measure_memory(struct limits *limits, struct trace *trace)
{
	const struct memory_options options = {.filter = limits->filter, .by = MEMORY_BY_LINE};
	struct memory memory;
	struct progress progress;
	int error;

	if (!has_memory_limit(limits))
		return 0;
	progress_begin(&progress, "counting", walk_events(trace, limits->filter));
	error = memory_visit(&memory, trace, &options, &progress, note_memory, limits);
	progress_end(&progress);
	memory_done(&memory);
	return error;
}

static void measure_rss(struct limits *limits, const struct trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];
		int64_t bytes = process ? process_peak_rss(process) : -1;

		if (!process || !filter_process(limits->filter, process))
			continue;
		limits->unrecorded.peak_rss |= process_end_peak_rss(process) < 0;
		if (bytes >= 0)
			note_process(limits, LIMIT_RSS, process, (uint64_t)bytes);
	}
}

/* --- what was not recorded --- */

/* Finds evprof_stop() and evprof_start(), which are events of the calling thread but apply to the whole process. */
static int find_pauses(struct unrecorded *unrecorded, struct trace *trace, const struct trace_process *process)
{
	for (size_t i = 0; i < process->thread_count; i++) {
		struct trace_thread *thread = trace->threads[process->threads[i]];

		if (trace_count_events(trace, thread) < 0)
			return -ENOMEM;
		unrecorded->paused |= thread->events[WIRE_PAUSE] != 0;
	}
	return 0;
}

static int find_unrecorded(struct limits *limits, struct trace *trace)
{
	struct unrecorded *unrecorded = &limits->unrecorded;
	int error = 0;

	unrecorded->begin = trace_lacks_beginning(trace);
	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];

		if (!process || !filter_process(limits->filter, process))
			continue;
		unrecorded->sampled |= trace_process_sample_rate(process) != 0;
		unrecorded->filtered |= trace_process_is_filtered(process);
		unrecorded->memory |= !trace_process_records(process, "mem");
		unrecorded->peaks |= trace_process_is_alive_only(process);
		unrecorded->malloc |= !trace_process_records(process, "malloc") || trace_process_misses_malloc(process);
		if (!unrecorded->memory_interval)
			unrecorded->memory_interval = trace_process_memory_interval(process);
		unrecorded->calls |= !trace_process_records(process, "call");
		unrecorded->c_calls |= !trace_process_records(process, "c_call");
		error = find_pauses(unrecorded, trace, process);
	}
	return error;
}

int limits_measure(struct limits *limits, struct trace *trace)
{
	struct trace_totals totals = {0};
	int error = measure_functions(limits, trace);

	/* Damaged events are lost, too. No other limit reads the events, so this must. */
	if (!has_limit(limits, LIMIT_CALLS, LIMIT_TIME) && !has_limit(limits, LIMIT_ALLOC, LIMIT_ALLOC) &&
	    !has_memory_limit(limits))
		trace_check(trace, NULL, NULL);

	trace->clock = CPU_CLOCK_WALL; /* the heap needs the common time of all threads */
	if (!error)
		error = measure_heap(limits, trace);
	if (!error)
		error = measure_memory(limits, trace);
	measure_rss(limits, trace);
	if (!error)
		error = trace_count_totals(trace, &totals);
	if (!error)
		error = find_unrecorded(limits, trace);
	limits->lost = totals.lost;
	for (size_t i = 0; i < limits->count; i++) {
		if (limits->at[i].kind != LIMIT_LOST)
			continue;
		limits->at[i].measured = limits->lost;
		limits->losses_taken |= limits->lost <= limits->at[i].allowed;
	}
	return error;
}

/* --- verdict --- */

bool limit_matches_any(const struct limit *limit)
{
	return !limit->match.module || limit->matches[0] || limit->matches[1];
}

/* Whether the limit names one function, without wildcards. */
static bool is_plain(const struct limit *limit)
{
	return limit->match.module && !strpbrk(limit->match.module, "*?[") && !strpbrk(limit->match.function, "*?[");
}

/* Whether the limit may match a C function. */
static bool may_be_c(const struct limit *limit)
{
	return limit->match.module && !function_match_only_python(&limit->match) && !limit->matches[0] &&
	       !(limit->of_python && !strpbrk(limit->match.module, "*?["));
}

/* Whether calls of functions that the limit may match were not recorded. */
static bool misses_calls(const struct unrecorded *unrecorded, const struct limit *limit)
{
	bool of_c = is_plain(limit) && !limit->matches[0] && limit->matches[1];

	/* TOTAL is the sum of what was recorded, as in the report. */
	return (unrecorded->calls && !of_c) || (unrecorded->c_calls && may_be_c(limit) && !of_c);
}

/* The same for a limit of memory. */
static const char *memory_doubt(const struct unrecorded *unrecorded, const struct limit *limit)
{
	if (limit->kind == LIMIT_RSS)
		return unrecorded->peak_rss || !limit->pid ? "the resident size of a process is not in the trace: it "
							     "was killed, or runs"
							   : NULL;
	if ((limit->kind == LIMIT_ALLOC || limit->kind == LIMIT_HEAP) && unrecorded->peaks)
		return "the trace keeps what is alive at its end, and no peak; record without EVPROF_KEEP=alive";
	if (!limit->pid)
		return "the trace holds no memory events; record them with --events call,c_call,mem";
	if ((limit->kind == LIMIT_HEAP || limit->kind == LIMIT_LEAK) && unrecorded->malloc)
		return "memory that libraries take from malloc was not recorded; --max-alloc limits Python's "
		       "allocators alone";
	if (unrecorded->memory)
		return "a process did not record what Python's allocators give; record it with --events mem";
	return NULL;
}

/* Whether what the limit measures begins in the trace. A heap has blocks from before. */
static bool is_from_time(const struct limits *limits, const struct limit *limit)
{
	return limits->filter->from_given && (limits_functions(limit) || limit->kind == LIMIT_ALLOCATIONS);
}

const char *limit_doubt(const struct limits *limits, const struct limit *limit)
{
	const struct unrecorded *unrecorded = &limits->unrecorded;

	if (limit->kind == LIMIT_LOST)
		return NULL;
	if (unrecorded->begin && !is_from_time(limits, limit))
		return "only the last stretch was kept; record without --keep";
	if (limit->kind >= LIMIT_ALLOC && limit->kind <= LIMIT_RSS && memory_doubt(unrecorded, limit))
		return memory_doubt(unrecorded, limit);
	if (limit->kind == LIMIT_RSS)
		return NULL;
	if (limits_functions(limit) && unrecorded->sampled)
		return "stacks were sampled, which counts no calls; record with --events call,c_call";
	if (limit->thinned || (limits_functions(limit) && unrecorded->thinned && may_be_c(limit)))
		return "its calls are an estimate: recording had a budget; record without --budget";
	if (limits_functions(limit) && misses_calls(unrecorded, limit))
		return "its calls were not recorded; record with --events call,c_call";
	/* A function in the trace was recorded. With a pattern, other functions may have been excluded. */
	if (limits_functions(limit) && unrecorded->filtered && !(is_plain(limit) && limit_matches_any(limit)))
		return "functions were left out of the recording; record without EVPROF_INCLUDE and EVPROF_EXCLUDE";
	if (!limit_matches_any(limit) && limit->allowed)
		return "no function of the trace matches; only =0 says that none may";
	if (unrecorded->paused)
		return "recording was stopped for a while (evprof_stop); events of that time are missing";
	if (limits->lost && !limits->losses_taken)
		return "events were lost; --max-lost N accepts up to N";
	return NULL;
}

void limits_judge(struct limits *limits)
{
	for (size_t i = 0; i < limits->count; i++) {
		struct limit *limit = &limits->at[i];
		/* Compared as it is printed: rounded. */
		uint64_t half = limit->kind == LIMIT_TIME && limit->allowed ? limit->unit_ns / 2 : 0;

		if (limit->measured > limit->allowed + half)
			limit->result = LIMIT_BROKEN;
		else
			limit->result = limit_doubt(limits, limit) ? LIMIT_ERROR : LIMIT_HELD;
	}
}

size_t limits_count(const struct limits *limits, enum limit_result result)
{
	size_t i, count = 0;

	for (i = 0; i < limits->count; i++)
		count += limits->at[i].result == result;
	return count;
}

void limits_done(struct limits *limits)
{
	for (size_t i = 0; i < limits->count; i++) {
		function_match_done(&limits->at[i].match);
		function_near_done(&limits->at[i].near);
	}
}
