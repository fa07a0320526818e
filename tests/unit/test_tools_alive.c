/*
 * test_tools_alive.c - live blocks and sums that do not depend on the order in which threads' events come.
 *
 * The oracle is the model of a program here: it allocates and frees at random in several threads, with addresses that
 * are used again at once, and keeps its own books.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/alive/alive.h"
#include "tools/analysis/memory_estimate.h"

#define THREADS 3
#define ADDRESSES 4
#define STACKS 3
#define EVENTS 12 /* whose splits are all tried */
#define LONG 20000

enum what { MAKE, FREE, MAP, UNMAP };

struct event {
	enum what what;
	uint32_t thread;
	uint64_t ticks;
	uint64_t address, bytes;
	uint32_t stack;
};

struct model {
	struct event events[LONG];
	size_t count;
	uint64_t alive_bytes[STACKS], alive_blocks[STACKS], made_bytes[STACKS], made_blocks[STACKS];
	/* By address and page: who has it; 0: nobody. */
	uint32_t owner[ADDRESSES], page_owner[ADDRESSES];
	uint64_t size[ADDRESSES];
};

static uint32_t seed;

static uint32_t number_below(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

static void add(struct model *model, const struct event *event)
{
	model->events[model->count++] = *event;
}

static void step_block(struct model *model, struct event *event)
{
	uint32_t at = number_below(ADDRESSES);

	event->address = 0x1000 + 16 * at;
	if (model->owner[at]) {
		event->what = FREE;
		model->alive_bytes[model->owner[at] - 1] -= model->size[at];
		model->alive_blocks[model->owner[at] - 1]--;
		model->owner[at] = 0;
	} else {
		event->what = MAKE;
		event->stack = number_below(STACKS);
		event->bytes = number_below(100);
		model->owner[at] = event->stack + 1;
		model->size[at] = event->bytes;
		model->alive_bytes[event->stack] += event->bytes;
		model->alive_blocks[event->stack]++;
		model->made_bytes[event->stack] += event->bytes;
		model->made_blocks[event->stack]++;
	}
	add(model, event);
}

/* One to three pages are mapped where none is, or unmapped whoever has them. */
static void step_page(struct model *model, struct event *event)
{
	uint32_t from = number_below(ADDRESSES), pages = 0;

	event->address = 0x100000 + 4096 * (uint64_t)from;
	event->stack = number_below(STACKS);
	event->what = model->page_owner[from] ? UNMAP : MAP;
	for (uint32_t at = from; at < ADDRESSES && pages < 1 + number_below(3); at++, pages++) {
		if (event->what == MAP && model->page_owner[at])
			break;
		if (event->what == UNMAP && model->page_owner[at])
			model->alive_bytes[model->page_owner[at] - 1] -= 4096;
		model->page_owner[at] = event->what == MAP ? event->stack + 1 : 0;
	}
	event->bytes = 4096 * (uint64_t)pages;
	if (!pages)
		return;
	if (event->what == MAP) {
		model->alive_bytes[event->stack] += event->bytes;
		model->made_bytes[event->stack] += event->bytes;
		model->made_blocks[event->stack]++;
	}
	add(model, event);
}

static void run_program(struct model *model, size_t count, bool maps)
{
	*model = (struct model){0};
	while (model->count < count) {
		struct event event = {.thread = number_below(THREADS), .ticks = 100 + model->count};

		if (maps && number_below(4) == 0)
			step_page(model, &event);
		else
			step_block(model, &event);
	}
}

static void take(struct alive *alive, const struct event *event)
{
	const struct alive_block block = {.address = event->address,
					  .ticks = event->ticks,
					  .bytes = event->bytes,
					  .stack = event->stack,
					  .thread = (uint16_t)event->thread,
					  .domain = WIRE_DOMAIN_OBJ};
	const struct alive_mapping mapping = {.range = {.begin = event->address, .end = event->address + event->bytes},
					      .ticks = event->ticks,
					      .head = wire_extended(event->what == MAP ? WIRE_MMAP : WIRE_MUNMAP, 2, 0),
					      .stack = event->stack};

	if (event->what == MAKE)
		cr_assert_eq(alive_allocate(alive, &block), 0);
	else if (event->what == FREE)
		cr_assert_eq(alive_free(alive, event->address, event->ticks, event->thread), 0);
	else
		cr_assert_eq(alive_map(alive, &mapping), 0);
}

/* The events from..to, thread by thread: no order among them but that of each. */
static void take_stretch(struct alive *alive, const struct model *model, size_t from, size_t to, uint32_t first)
{
	for (uint32_t i = 0; i < THREADS; i++)
		for (size_t at = from; at < to; at++)
			if (model->events[at].thread == (first + i) % THREADS)
				take(alive, &model->events[at]);
}

static void check(struct alive *alive, const struct model *model)
{
	uint64_t bytes[STACKS] = {0}, blocks[STACKS] = {0};
	struct alive_sum *freed;
	uint32_t count;

	cr_assert_eq(alive_settle(alive, UINT64_MAX), 0);
	for (size_t i = 0; i < alive_slots(alive); i++)
		if (alive_is_block(&alive->slots[i])) {
			bytes[alive->slots[i].stack] += alive->slots[i].bytes;
			blocks[alive->slots[i].stack]++;
		}
	for (uint32_t i = 0; i < STACKS; i++)
		cr_assert_eq(blocks[i], model->alive_blocks[i]);
	for (size_t i = 0; i < alive->ranges.count; i++) {
		uint32_t stack = alive->mappers[alive->ranges.at[i].owner].stack;

		bytes[stack] += alive->ranges.at[i].end - alive->ranges.at[i].begin;
		blocks[stack]++;
	}
	for (uint32_t i = 0; i < STACKS; i++)
		cr_assert_eq(bytes[i], model->alive_bytes[i]);
	cr_assert_eq(alive_freed(alive, &freed, &count), 0);
	for (uint32_t i = 0; i < count; i++) {
		bytes[freed[i].stack] += freed[i].bytes;
		blocks[freed[i].stack] += freed[i].units / ESTIMATE_UNIT; /* modulo 2^64 / 1024 */
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		cr_assert_eq(bytes[i], model->made_bytes[i]);
		cr_assert_eq(blocks[i] << 10, model->made_blocks[i] << 10);
	}
	free(freed);
}

/* A bit of `cuts` for each event behind which a stretch ends. Stretches are counted alone, and joined. */
static void try_split(const struct model *model, uint32_t cuts, uint32_t first)
{
	struct alive all = {0};
	size_t from = 0;

	for (size_t at = 1; at <= model->count; at++) {
		struct alive stretch = {0};

		if (at < model->count && !(cuts >> (at - 1) & 1))
			continue;
		take_stretch(&stretch, model, from, at, first);
		cr_assert_eq(alive_join(&all, &stretch), 0);
		alive_done(&stretch);
		from = at;
	}
	check(&all, model);
	alive_done(&all);
}

Test(alive, every_split)
{
	static struct model model;

	for (seed = 1; seed < 20;) {
		uint32_t next = seed + 1;

		run_program(&model, EVENTS, true);
		for (uint32_t cuts = 0; cuts < 1u << (EVENTS - 1); cuts++)
			try_split(&model, cuts, cuts % THREADS);
		seed = next;
	}
}

/* Batches of one set, whose threads are up to a thousand events apart, with waiting mappings settled in between. */
Test(alive, late_threads)
{
	static struct model model;
	struct alive alive = {0};
	size_t next[THREADS] = {0}, done = 0;

	seed = 7;
	run_program(&model, LONG, true);
	while (done < THREADS) {
		uint32_t thread = number_below(THREADS);
		size_t least = SIZE_MAX, until;

		for (uint32_t i = 0; i < THREADS; i++)
			least = next[i] < least ? next[i] : least;
		until = least + number_below(1000);
		for (; next[thread] < model.count && next[thread] < until; next[thread]++)
			if (model.events[next[thread]].thread == thread)
				take(&alive, &model.events[next[thread]]);
		alive_forget(&alive, 100 + least);
		cr_assert_eq(alive_settle(&alive, 100 + least), 0);
		done = 0;
		for (uint32_t i = 0; i < THREADS; i++)
			done += next[i] == model.count;
	}
	check(&alive, &model);
	cr_assert_leq(alive.mapper_count, 1100); /* one for each mapping otherwise */
	alive_done(&alive);
}

/* Addresses that were freed leave the table. */
Test(alive, forgets)
{
	struct alive alive = {0};

	for (uint64_t i = 1; i <= 1000000; i++) {
		const struct alive_block block = {.address = 16 * i, .ticks = 2 * i, .bytes = 8};

		cr_assert_eq(alive_allocate(&alive, &block), 0);
		cr_assert_eq(alive_free(&alive, 16 * i, 2 * i + 1, 0), 0);
		alive_forget(&alive, 2 * i > 100 ? 2 * i - 100 : 0);
	}
	cr_assert_leq(alive_slots(&alive), 4096);
	alive_done(&alive);
}

static size_t count_blocks(const struct alive *alive)
{
	size_t blocks = 0;

	for (size_t i = 0; i < alive_slots(alive); i++)
		blocks += alive_is_block(&alive->slots[i]);
	return blocks;
}

/* At one time: in a thread the later event, between threads the allocation. */
Test(alive, equal_times)
{
	const struct alive_block block = {.address = 16, .ticks = 5, .bytes = 8, .thread = 1};
	struct alive alive = {0};

	cr_assert_eq(alive_allocate(&alive, &block), 0);
	cr_assert_eq(alive_free(&alive, 16, 5, 2), 0);
	cr_assert_eq(count_blocks(&alive), 1);
	cr_assert_eq(alive_free(&alive, 16, 5, 1), 0);
	cr_assert_eq(count_blocks(&alive), 0);
	cr_assert_eq(alive_free(&alive, 32, 5, 2), 0);
	cr_assert_eq(alive_allocate(&alive, &(struct alive_block){.address = 32, .ticks = 5, .thread = 1}), 0);
	cr_assert_eq(count_blocks(&alive), 1);
	alive_done(&alive);
}
