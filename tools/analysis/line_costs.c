/*
 * line_costs.c - charges the time between events to the current line. See line_costs.h.
 */
#include "analysis/line_costs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

/* The data of one key of the process. */
struct cost_key {
	uint32_t label; /* number + 1; 0: not looked up yet */
	uint32_t epoch; /* epoch in which `first` is valid */
	uint32_t first; /* number of the function's first line */
};

struct cost_frame {
	uint32_t function;
	uint32_t line; /* number of the current line; NOBODY: unknown, and nothing charged there yet */
	uint64_t call; /* number + 1; 0: none */
	uint64_t started;
	uint64_t hits;
};

/* --- names --- */

/* The number of a place, added if it is new. NOBODY if memory ran out. */
static uint32_t find_place(struct line_costs *costs, struct text name)
{
	uint32_t number = labels_add(&costs->place_names, &(struct label){.file = name});

	if (number == UINT32_MAX ||
	    grow_by_one(&costs->places, &costs->places_allocated, number, sizeof(*costs->places)))
		return LINE_COSTS_NOBODY;
	if (number == costs->place_count)
		costs->places[costs->place_count++] =
		    (struct cost_place){.name = name, .process = costs->process->number};
	return number;
}

/*
 * Readers of the format identify functions by name and module. A name that is taken by a function of another file gets
 * a number. Two texts with the same hash get one needlessly.
 */
static char *unique_name(struct line_costs *costs, struct text module, struct text name, uint32_t line, bool c_function)
{
	uint64_t *others;
	char *text = NULL;
	int length, bytes = (int)name.length;

	if (c_function)
		return asprintf(&text, "%.*s", bytes, name.at) < 0 ? NULL : text;
	others = u64_map_make(&costs->names,
			      (text_hash(text_hash(TEXT_HASH_BEGIN, module), name) ^ line * UINT64_C(0x9e3779b1)) | 1);
	if (!others)
		return NULL;
	if ((*others)++)
		length = asprintf(&text, "%.*s:%u_%llu", bytes, name.at, line, (unsigned long long)*others);
	else
		length = asprintf(&text, "%.*s:%u", bytes, name.at, line);
	return length < 0 ? NULL : text;
}

static bool describe_function(struct line_costs *costs, uint32_t label, const struct wire_definition *definition,
			      bool c_function)
{
	struct cost_function *function = &costs->functions[label];
	struct text name = costs->labels.at[label].name, module = {0};

	if (definition) {
		module = trace_string(definition, 3);
		if (!c_function && trace_string(definition, 2).length)
			name = trace_string(definition, 2);
	}
	if (!module.length)
		module = text_of("~");
	function->c_function = c_function;
	function->name = unique_name(costs, module, name, costs->labels.at[label].line, c_function);
	function->module = find_place(costs, module);
	function->file = find_place(costs, costs->labels.at[label].file);
	function->known = true;
	return function->name && function->module != LINE_COSTS_NOBODY && function->file != LINE_COSTS_NOBODY;
}

/* The number of the label of a key. NOBODY if memory ran out. */
static uint32_t function_of(struct line_costs *costs, struct call_walk *walk, uint32_t key)
{
	struct cost_key *known = &costs->keys[key];
	uint32_t label;

	if (known->label)
		return known->label - 1;
	label = labels_find(&costs->labels, walk->process, key / 2, key & 1);
	if (label == UINT32_MAX || grow_zeroed(&costs->functions, &costs->functions_allocated,
					       (uint32_t)costs->labels.allocated, sizeof(*costs->functions)) < 0)
		return LINE_COSTS_NOBODY;
	if (!costs->functions[label].known && !describe_function(costs, label, walk_definition(walk, key), key & 1))
		return LINE_COSTS_NOBODY;
	known->label = label + 1;
	return label;
}

/* --- lines and calls --- */

static uint32_t find_line(struct line_costs *costs, uint32_t function, uint32_t line)
{
	uint64_t number = u64_map_number(&costs->line_numbers, ((uint64_t)function + 1) << 32 | line, &costs->lines,
					 &costs->line_count, &costs->lines_allocated, sizeof(*costs->lines));

	if (!number)
		return LINE_COSTS_NOBODY;
	costs->lines[number - 1].function = function;
	costs->lines[number - 1].line = line;
	return (uint32_t)number - 1;
}

/* Number + 1; 0 if memory ran out. */
static uint64_t find_call(struct line_costs *costs, uint32_t from, uint32_t callee)
{
	uint64_t number = u64_map_number(&costs->call_numbers, ((uint64_t)callee + 1) << 32 | from, &costs->calls,
					 &costs->call_count, &costs->calls_allocated, sizeof(*costs->calls));

	if (number) {
		costs->calls[number - 1].from = from;
		costs->calls[number - 1].callee = callee;
	}
	return number;
}

/* The line at which a frame of the function begins. */
static uint32_t first_line(struct line_costs *costs, uint32_t key, uint32_t function)
{
	struct cost_key *known = &costs->keys[key];

	if (known->epoch != costs->epoch) {
		known->first = find_line(costs, function, costs->labels.at[function].line);
		known->epoch = costs->epoch;
	}
	return known->first;
}

/* The number of the current line. NOBODY if memory ran out. */
static uint32_t line_of(struct line_costs *costs, struct cost_frame *frame)
{
	if (frame->line == LINE_COSTS_NOBODY)
		frame->line = find_line(costs, frame->function, 0);
	return frame->line;
}

/*
 * Charges the time since the last event to the current line of the innermost of `depth` frames, if there is one. Those
 * of a stack that only allocations have ran at these, and nobody knows how long.
 */
static void charge_time(struct line_costs *costs, struct call_walk *walk, uint32_t depth)
{
	if (depth && walk->now_ns > costs->last_ns && !walk->replay.has_own_stack) {
		uint32_t line = line_of(costs, &costs->frames[depth - 1]);

		if (line == LINE_COSTS_NOBODY)
			walk_fail(walk, -ENOMEM);
		else
			costs->lines[line].own_ns += (uint64_t)(walk->now_ns - costs->last_ns);
	}
	costs->last_ns = walk->now_ns;
}

/* --- the call walk --- */

static void go_to_line(struct line_costs *costs, struct call_walk *walk, struct cost_frame *frame, uint32_t number)
{
	uint32_t line = find_line(costs, frame->function, number);

	if (line == LINE_COSTS_NOBODY)
		walk_fail(walk, -ENOMEM);
	else
		frame->line = line;
}

/*
 * Whether the frame begins at the first line of its function, as a call does. Other frames begin at the line that the
 * trace records, or at line 0 (unknown) if it records none.
 */
static bool begins_at_first(const struct line_costs *costs, const struct walk_frame *frame)
{
	return !costs->by_line || frame->key & 1 || frame->kind == WIRE_CALL;
}

static uint32_t line_of_top(const struct call_walk *walk)
{
	return walk->replay.frames[walk->replay.depth - 1].line;
}

static void costs_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct line_costs *costs = owner;
	uint32_t depth = (uint32_t)(frame - walk->frames);
	uint32_t function = function_of(costs, walk, frame->key);
	uint32_t first = function == LINE_COSTS_NOBODY ? function : first_line(costs, frame->key, function);
	uint32_t from = LINE_COSTS_NOBODY;
	struct cost_frame *mine;

	/* If memory ran out the counts are invalid. The walk ends at its next chunk, and nothing changes until then. */
	if (walk->error || first == LINE_COSTS_NOBODY ||
	    grow_by_one(&costs->frames, &costs->frames_allocated, depth, sizeof(*mine))) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	charge_time(costs, walk, depth);
	if (depth)
		from = line_of(costs, &costs->frames[depth - 1]);
	mine = &costs->frames[depth];
	*mine =
	    (struct cost_frame){.function = function, .line = first, .started = costs->started, .hits = costs->hits};
	mine->call = find_call(costs, from, function);
	if (!mine->call || (depth && from == LINE_COSTS_NOBODY))
		walk_fail(walk, -ENOMEM);
	if (!begins_at_first(costs, frame)) {
		mine->line = LINE_COSTS_NOBODY;
		if (line_of_top(walk))
			go_to_line(costs, walk, mine, line_of_top(walk));
	}
	if (frame->kind == WIRE_FRAME)
		return;
	costs->started++;
	costs->lines[first].starts++;
}

static void costs_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct line_costs *costs = owner;
	uint32_t depth = (uint32_t)(frame - walk->frames);
	struct cost_call *call;

	if (walk->error)
		return;
	(void)how;
	charge_time(costs, walk, depth + 1);
	call = &costs->calls[costs->frames[depth].call - 1];
	call->calls += frame->kind != WIRE_FRAME;
	if (walk->replay.open[frame->key])
		return;
	call->total_ns += (uint64_t)(walk->now_ns - frame->start_ns);
	call->inner_calls += costs->started - costs->frames[depth].started;
	call->inner_hits += costs->hits - costs->frames[depth].hits;
}

static void costs_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct line_costs *costs = owner;
	unsigned kind = wire_head_kind(head);
	struct cost_frame *top;

	(void)extra;
	if ((kind != WIRE_LINE && kind != WIRE_AT_LINE) || !costs->by_line || walk->error || !walk_top_runs(walk) ||
	    walk->frames[walk->shown - 1].key & 1)
		return;
	top = &costs->frames[walk->shown - 1];
	charge_time(costs, walk, walk->shown);
	go_to_line(costs, walk, top, line_of_top(walk));
	if (walk->error || kind == WIRE_AT_LINE)
		return;
	costs->lines[top->line].hits++;
	costs->hits++;
}

static int costs_thread(void *owner, struct call_walk *walk)
{
	struct line_costs *costs = owner;

	costs->last_ns = walk->now_ns;
	return 0;
}

static int costs_thread_end(void *owner, struct call_walk *walk)
{
	struct line_costs *costs = owner;

	if (walk->error || !costs->thread_end)
		return walk->error;
	return costs->thread_end(costs->owner, costs, walk);
}

static int costs_process(void *owner, struct call_walk *walk)
{
	struct line_costs *costs = owner;

	costs->process = walk->process;
	free(costs->keys);
	costs->keys = calloc(walk_keys(walk), sizeof(*costs->keys));
	return costs->keys ? 0 : -ENOMEM;
}

bool line_costs_by_line(const struct trace *trace, const struct filter *filter)
{
	for (uint32_t i = 0; i < trace->process_count && !filter->min_duration_ns; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && filter_process(filter, process) && trace_process_records(process, "line"))
			return true;
	}
	return false;
}

int line_costs_add(struct line_costs *costs, struct trace *trace, const struct filter *filter,
		   struct progress *progress,
		   int (*thread_end)(void *owner, struct line_costs *costs, const struct call_walk *walk), void *owner)
{
	static const struct call_visitor visitor = {.process = costs_process,
						    .thread = costs_thread,
						    .thread_end = costs_thread_end,
						    .push = costs_push,
						    .pop = costs_pop,
						    .other = costs_other,
						    .lines = true};
	int error;

	costs->epoch = costs->epoch ? costs->epoch : 1;
	costs->by_line = line_costs_by_line(trace, filter);
	costs->thread_end = thread_end;
	costs->owner = owner;
	error = walk_trace(trace, filter, progress, &visitor, costs);
	free(costs->keys);
	costs->keys = NULL;
	return error;
}

/* --- order --- */

static int by_line(const void *left, const void *right)
{
	const struct cost_line *a = left, *b = right;

	return compare_u64(a->function, b->function) ?: compare_u64(a->line, b->line);
}

static int by_caller(const void *left, const void *right, void *owner)
{
	const struct cost_line *lines = owner;
	const struct cost_call *a = left, *b = right;

	if (a->from == b->from)
		return compare_u64(a->callee, b->callee);
	if (a->from == LINE_COSTS_NOBODY || b->from == LINE_COSTS_NOBODY)
		return a->from == LINE_COSTS_NOBODY ? 1 : -1;
	return by_line(&lines[a->from], &lines[b->from]);
}

/* Updates the line numbers of calls after lines are sorted. The calls are in order of their lines. */
static void renumber(struct line_costs *costs, const struct cost_line *before)
{
	uint32_t line = 0, i;

	for (i = 0; i < costs->call_count && costs->calls[i].from != LINE_COSTS_NOBODY; i++) {
		while (by_line(&costs->lines[line], &before[costs->calls[i].from]) < 0)
			line++;
		costs->calls[i].from = line;
	}
}

static uint32_t caller_of(const struct line_costs *costs, uint32_t call)
{
	uint32_t from = costs->calls[call].from;

	return from == LINE_COSTS_NOBODY ? LINE_COSTS_NOBODY : costs->lines[from].function;
}

static void merge_call(struct cost_call *into, struct cost_call *call)
{
	into->total_ns += call->total_ns;
	into->inner_calls += call->inner_calls;
	into->inner_hits += call->inner_hits;
	call->callee = LINE_COSTS_NOBODY;
}

/*
 * A resumed frame continues a call that was counted at the line of the call, which may differ from the line of the
 * resume. Adds the resumed time to a call from the same function if there is one, or else to any call of the callee.
 * Calls from one function are adjacent. counted: by callee, a call + 1.
 */
static void merge_open_calls(struct line_costs *costs, uint32_t *counted)
{
	uint32_t i, first, end, kept = 0;

	for (i = 0; i < costs->call_count; i++)
		if (costs->calls[i].calls)
			counted[costs->calls[i].callee] = i + 1;
	for (first = 0; first < costs->call_count; first = end) {
		for (end = first; end < costs->call_count && caller_of(costs, end) == caller_of(costs, first); end++)
			if (costs->calls[end].calls)
				counted[costs->calls[end].callee] = end + 1;
		for (i = first; i < end; i++)
			if (!costs->calls[i].calls && counted[costs->calls[i].callee])
				merge_call(&costs->calls[counted[costs->calls[i].callee] - 1], &costs->calls[i]);
	}
	for (i = 0; i < costs->call_count; i++)
		if (costs->calls[i].callee != LINE_COSTS_NOBODY)
			costs->calls[kept++] = costs->calls[i];
	costs->call_count = kept;
}

int line_costs_sort(struct line_costs *costs)
{
	struct cost_line *before = malloc(((size_t)costs->line_count + 1) * sizeof(*before));
	uint32_t *counted = calloc((size_t)costs->functions_allocated + 1, sizeof(*counted));

	if (!before || !counted) {
		free(before);
		free(counted);
		return -ENOMEM;
	}
	if (costs->call_count)
		qsort_r(costs->calls, costs->call_count, sizeof(*costs->calls), by_caller, costs->lines);
	if (costs->line_count) {
		memcpy(before, costs->lines, costs->line_count * sizeof(*before));
		qsort(costs->lines, costs->line_count, sizeof(*costs->lines), by_line);
		renumber(costs, before);
	}
	merge_open_calls(costs, counted);
	free(before);
	free(counted);
	return 0;
}

void line_costs_clear(struct line_costs *costs)
{
	costs->line_count = costs->call_count = 0;
	u64_map_done(&costs->line_numbers);
	u64_map_done(&costs->call_numbers);
	costs->epoch++;
}

void line_costs_done(struct line_costs *costs)
{
	for (uint32_t i = 0; i < costs->functions_allocated; i++)
		free(costs->functions[i].name);
	labels_done(&costs->labels);
	labels_done(&costs->place_names);
	u64_map_done(&costs->line_numbers);
	u64_map_done(&costs->call_numbers);
	u64_map_done(&costs->names);
	free(costs->functions);
	free(costs->places);
	free(costs->lines);
	free(costs->calls);
	free(costs->keys);
	free(costs->frames);
	memset(costs, 0, sizeof(*costs));
}
