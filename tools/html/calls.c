/*
 * calls.c - sorts calls into levels and merges short ones; see calls.h.
 */
#include "html/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

/* The sum of the short calls of one depth in one bucket. */
struct html_sliver {
	uint32_t function; /* of the longest */
	uint32_t calls;	   /* 0: none */
	int64_t longest_ns;
	int64_t sum_ns;
};

/* --- the plan --- */

static unsigned top_level(int64_t duration_ns)
{
	unsigned top = 1;

	/* At this level the whole run fits on a screen of a few hundred pixels. */
	while (top < HTML_LEVELS - 1 && html_level_ns(top + 1) <= duration_ns / 300)
		top++;
	return top;
}

/* The number in that level and those above. */
static uint64_t sum_from(const uint64_t *counts, unsigned level, unsigned top)
{
	uint64_t sum = 0;

	for (; level <= top; level++)
		sum += counts[level];
	return sum;
}

static bool slivers_fit(const struct html_plan *plan, const struct html_census *census, uint64_t slivers_max)
{
	return sum_from(census->slivers, plan->floor ? plan->floor : 1, plan->top) <= slivers_max;
}

/* The shortest duration with which the calls of level 0 fit into the room. */
static int64_t shortest_with(const struct html_census *census, uint64_t room)
{
	uint64_t calls = 0;
	int64_t step = HTML_STEPS;

	while (step > 0 && calls + census->steps[step - 1] <= room)
		calls += census->steps[--step];
	return step * HTML_STEP_NS;
}

struct html_plan html_plan_make(const struct html_census *census, int64_t duration_ns, uint64_t calls_max,
				uint64_t slivers_max)
{
	struct html_plan plan = {.top = top_level(duration_ns)};

	if (!census)
		return plan;
	while (plan.floor < plan.top && (sum_from(census->calls, plan.floor + 1, plan.top) > calls_max ||
					 !slivers_fit(&plan, census, slivers_max)))
		plan.floor++;
	plan.shortest_ns = html_level_ns(plan.floor);
	if (!plan.floor)
		plan.shortest_ns = shortest_with(census, calls_max - sum_from(census->calls, 1, plan.top));
	return plan;
}

uint64_t html_plan_merged(const struct html_plan *plan, const struct html_census *census)
{
	uint64_t merged = 0;
	int64_t step;

	if (plan->floor)
		return sum_from(census->calls, 0, plan->floor - 1);
	for (step = 0; step < plan->shortest_ns / HTML_STEP_NS; step++)
		merged += census->steps[step];
	return merged;
}

static unsigned level_of(const struct html_calls *calls, int64_t duration_ns)
{
	unsigned level;

	if (duration_ns < HTML_SHORTEST_NS)
		return 0;
	level = (unsigned)(63 - __builtin_clzll((unsigned long long)duration_ns) - HTML_SHORTEST_SHIFT) / 2 + 1;
	return level < calls->plan.top ? level : calls->plan.top;
}

/* --- blocks --- */

/* Keeps the first error; 0 is none. */
static void set_error(struct html_calls *calls, int error)
{
	if (!calls->error)
		calls->error = error;
}

/* Writes the segment of a thread in a block to the directory. */
static void close_segment(struct html_calls *calls, struct html_store *store)
{
	struct html_segment *segment = &store->segment;

	if (segment->count)
		html_row_put(calls->directory,
			     (uint64_t[HTML_SEGMENT_COLUMNS]){store->kind, store->block, segment->thread,
							      segment->count, (uint64_t)segment->from_ns,
							      (uint64_t)segment->to_ns},
			     HTML_SEGMENT_COLUMNS);
	segment->count = 0;
}

/* Adds one element, with its start and end, to the block. Returns whether it is the first of its segment. */
static bool extend_segment(struct html_calls *calls, struct html_store *store, int64_t from_ns, int64_t to_ns)
{
	struct html_segment *segment = &store->segment;
	bool first = segment->count++ == 0;

	if (!store->count++)
		store->block = (*calls->blocks)++;
	if (first)
		*segment = (struct html_segment){calls->thread, 1, from_ns, to_ns};
	if (from_ns < segment->from_ns)
		segment->from_ns = from_ns;
	if (to_ns > segment->to_ns)
		segment->to_ns = to_ns;
	return first;
}

/* Writes the block if it has at least that many elements. */
static void write_store(struct html_calls *calls, struct html_store *store, uint32_t least)
{
	if (store->count < least)
		return;
	close_segment(calls, store);
	set_error(calls, html_block_write(calls->packer, store->block, store->columns, store->column_count));
	store->count = 0;
}

static void store_call(struct html_calls *calls, unsigned number, const struct html_call *call)
{
	struct html_level *level = &calls->level[number];
	struct html_column *columns = level->calls.columns;

	if (extend_segment(calls, &level->calls, call->start_ns, call->end_ns)) {
		level->end_ns = 0;
		level->depth = 0;
		level->sequence = 0;
	}
	html_column_put(&columns[0], (uint64_t)(call->end_ns - level->end_ns));
	html_column_put(&columns[1], (uint64_t)(call->end_ns - call->start_ns));
	html_column_put(&columns[2], call->function);
	html_column_signed(&columns[3], (int64_t)call->depth - level->depth);
	html_column_put(&columns[4], call->how);
	html_column_put(&columns[5], calls->sequence - level->sequence);
	level->end_ns = call->end_ns;
	level->depth = call->depth;
	level->sequence = calls->sequence + 1;
	write_store(calls, &level->calls, HTML_BLOCK_CALLS);
}

/* --- slivers --- */

static void store_sliver(struct html_calls *calls, unsigned number, uint32_t depth, const struct html_sliver *sliver)
{
	struct html_level *level = &calls->level[number];
	int64_t width = html_level_ns(number);
	int64_t from = (int64_t)level->bucket * width;
	int64_t covered = (sliver->sum_ns * 255 + width - 1) / width;

	if (extend_segment(calls, &level->slivers, from, from + width))
		level->written_bucket = 0;
	html_row_put(level->slivers.columns,
		     (uint64_t[HTML_SLIVER_COLUMNS]){level->bucket - level->written_bucket, depth, sliver->function,
						     sliver->calls, covered < 255 ? (uint64_t)covered : 255},
		     HTML_SLIVER_COLUMNS);
	level->written_bucket = level->bucket;
	write_store(calls, &level->slivers, HTML_BLOCK_CALLS);
}

static inline void merge_sliver(struct html_calls *calls, unsigned number, uint32_t depth,
				const struct html_sliver *sliver)
{
	struct html_level *level = &calls->level[number];
	struct html_sliver *into;

	if (__builtin_expect(depth >= level->pending_allocated || level->touched_count == level->touched_allocated,
			     0) &&
	    (grow_for(&level->pending, &level->pending_allocated, depth, sizeof(*level->pending)) < 0 ||
	     grow_for(&level->touched, &level->touched_allocated, level->touched_count, sizeof(*level->touched)) < 0)) {
		set_error(calls, -ENOMEM);
		return;
	}
	into = &level->pending[depth];
	if (!into->calls)
		level->touched[level->touched_count++] = depth;
	if (!into->calls || sliver->longest_ns > into->longest_ns) {
		into->function = sliver->function;
		into->longest_ns = sliver->longest_ns;
	}
	into->calls += sliver->calls;
	into->sum_ns += sliver->sum_ns;
}

/* Ends the bucket of a level: stores it, and merges it into the bucket of the next level. */
static void flush_bucket(struct html_calls *calls, unsigned number)
{
	struct html_level *level = &calls->level[number];

	calls->census.slivers[number] += level->touched_count;
	for (uint32_t i = 0; i < level->touched_count; i++) {
		struct html_sliver *sliver = &level->pending[level->touched[i]];

		if (calls->packer && number >= calls->plan.floor)
			store_sliver(calls, number, level->touched[i], sliver);
		if (number < calls->plan.top)
			merge_sliver(calls, number + 1, level->touched[i], sliver);
		memset(sliver, 0, sizeof(*sliver));
	}
	level->touched_count = 0;
}

/* Ends the buckets before now_ns. A bucket lies inside one of the next level: while it lasts, that does, too. */
static void advance_buckets(struct html_calls *calls, int64_t now_ns)
{
	unsigned number;

	for (number = 1; number <= calls->plan.top; number++) {
		uint64_t bucket = (uint64_t)(now_ns / html_level_ns(number));

		if (bucket == calls->level[number].bucket)
			break;
		flush_bucket(calls, number);
		calls->level[number].bucket = bucket;
	}
	calls->bucket_end = (int64_t)(calls->level[1].bucket + 1) * HTML_SHORTEST_NS;
}

/* --- calls --- */

void html_calls_init(struct html_calls *calls, struct html_packer *packer, uint32_t *blocks, struct html_plan plan)
{
	memset(calls, 0, sizeof(*calls));
	calls->packer = packer;
	calls->blocks = blocks;
	calls->plan = plan;
	for (unsigned number = 0; number < HTML_LEVELS; number++) {
		calls->level[number].calls.column_count = HTML_CALL_COLUMNS;
		calls->level[number].calls.kind = number * 2;
		calls->level[number].slivers.column_count = HTML_SLIVER_COLUMNS;
		calls->level[number].slivers.kind = number * 2 + 1;
	}
}

void html_calls_thread(struct html_calls *calls, uint32_t thread)
{
	unsigned number;

	calls->thread = thread;
	calls->sequence = 0;
	calls->bucket_end = 0;
	for (number = 1; number <= calls->plan.top; number++)
		calls->level[number].bucket = 0;
}

void html_calls_thread_end(struct html_calls *calls)
{
	unsigned number;

	for (number = 1; number <= calls->plan.top; number++)
		flush_bucket(calls, number);
	for (number = 0; number <= calls->plan.top; number++) {
		close_segment(calls, &calls->level[number].calls);
		close_segment(calls, &calls->level[number].slivers);
	}
}

void html_calls_add(struct html_calls *calls, const struct html_call *call)
{
	int64_t duration = call->end_ns - call->start_ns;
	unsigned number = level_of(calls, duration);

	if (call->end_ns >= calls->bucket_end)
		advance_buckets(calls, call->end_ns);
	calls->census.calls[number]++;
	calls->census.steps[number ? 0 : (uint64_t)duration / HTML_STEP_NS] += number == 0;
	if (calls->packer && duration >= calls->plan.shortest_ns)
		store_call(calls, number, call);
	calls->sequence++;
	if (number < calls->plan.top)
		merge_sliver(calls, number + 1, call->depth,
			     &(struct html_sliver){call->function, 1, duration, duration});
}

int html_calls_finish(struct html_calls *calls)
{
	unsigned number;

	for (number = 0; number <= calls->plan.top && calls->packer; number++) {
		write_store(calls, &calls->level[number].calls, 1);
		write_store(calls, &calls->level[number].slivers, 1);
	}
	if (calls->packer)
		set_error(calls,
			  html_block_write(calls->packer, (*calls->blocks)++, calls->directory, HTML_SEGMENT_COLUMNS));
	return calls->error;
}

void html_calls_done(struct html_calls *calls)
{
	for (unsigned number = 0; number < HTML_LEVELS; number++) {
		struct html_level *level = &calls->level[number];

		html_columns_done(level->calls.columns, HTML_CALL_COLUMNS);
		html_columns_done(level->slivers.columns, HTML_SLIVER_COLUMNS);
		free(level->pending);
		free(level->touched);
	}
	html_columns_done(calls->directory, HTML_SEGMENT_COLUMNS);
}
