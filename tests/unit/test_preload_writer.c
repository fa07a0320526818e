/*
 * test_preload_writer.c - the writer's side of the ring, in one process: what stands in the memory after each call,
 * what is counted when there is no room, and what is marked afterwards.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/ring/clock.h"
#include "preload/base/config.h"
#include "preload/definitions/names.h"
#include "preload/life/life.h"
#include "preload/ring/exchange.h"
#include "preload/ring/memory.h"
#include "preload/ring/process.h"

#define SLOTS 4u
#define WORDS (RING_BYTES_MIN / sizeof(uint64_t))

static struct ring_header *header;
static struct ring_slot *slots;
static uint64_t *words; /* of slot 0 */

/* A process that has joined, without a collector: the test is the collector. */
static void setup(void)
{
	size_t slots_offset = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES;
	size_t data_offset = slots_offset + RING_PAGE_BYTES, size = data_offset + SLOTS * RING_BYTES_MIN;

	config_read(false);
	config.events = EVENT_MEM; /* no stack is asked for: there is no Python here */
	config.wait_ms = 0;
	clock_init();
	writer_fast = 1;
	cr_assert_eq(process_init(), 0);
	process->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(process->base, MAP_FAILED);
	process->header = header = (struct ring_header *)process->base;
	process->slots = slots = (struct ring_slot *)(process->base + slots_offset);
	process->pid = getpid();
	process->mapped_bytes = size;
	process->layout = (struct ring_layout){.size_bytes = size,
					       .definitions_offset = RING_PAGE_BYTES,
					       .definitions_bytes = RING_DEFINITIONS_BYTES,
					       .slots_offset = slots_offset,
					       .slot_count = SLOTS,
					       .ring_bytes = RING_BYTES_MIN,
					       .data_offset = data_offset};
	header->layout = process->layout;
	atomic_store(&process->status, PROCESS_JOINED);
	words = (uint64_t *)(process->base + data_offset);
}

static void put(unsigned kind, uint32_t argument)
{
	struct writer *writer = writer_reserve(kind);

	if (writer && kind < WIRE_EXTENDED_KIND)
		writer_put(writer, wire_head(kind, argument));
	else if (writer)
		writer_put_number(writer, kind, argument);
}

static uint32_t head_at(uint64_t at)
{
	return (uint32_t)words[at % WORDS];
}

TestSuite(writer, .init = setup);

Test(writer, a_thread_begins_with_its_start)
{
	put(WIRE_FORK, 7);
	cr_assert_eq(atomic_load(&slots[0].state), RING_SLOT_LIVE);
	cr_assert_eq(slots[0].tid, (uint32_t)getpid());
	cr_assert_eq(slots[0].data_words, WORDS);
	cr_assert_eq(atomic_load(&header->slots_used), 1);
	cr_assert_eq(ring_head(&slots[0]), 2);
	cr_assert_eq(head_at(0), wire_extended(WIRE_THREAD_START, 0, 0));
	cr_assert_eq(head_at(1), wire_extended(WIRE_FORK, 0, 7));
}

Test(writer, memory_events_keep_size_address_and_domain)
{
	const uint64_t sizes[] = {0, 1, 512, (1 << 25) - 1, 1 << 25, UINT64_C(1) << 40, WIRE_SIZE_MAX};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t head = wire_memory_head(WIRE_MALLOC, WIRE_DOMAIN_OBJ, sizes[i]);
		uint64_t word = wire_memory_word(0x7fff12345678, sizes[i]);

		cr_assert_eq(wire_head_kind(head), WIRE_MALLOC);
		cr_assert_eq(wire_memory_domain(head), WIRE_DOMAIN_OBJ);
		cr_assert_eq(wire_memory_address(word), 0x7fff12345678);
		cr_assert_eq(wire_memory_size(head, word), sizes[i], "%lu", (unsigned long)sizes[i]);
	}
}

Test(writer, extra_words_follow_and_wrap)
{
	uint64_t at;

	put(WIRE_FORK, 0);
	for (uint64_t i = 0; i < WORDS * 3; i++) {
		struct writer *writer = writer_reserve(WIRE_REALLOC);

		cr_assert_not_null(writer);
		at = writer->head;
		writer_put_extra(writer, wire_memory_head(WIRE_REALLOC, WIRE_DOMAIN_MEM, i), i, i + 1);
		cr_assert_eq(ring_head(&slots[0]), at + 3);
		cr_assert_eq(words[(at + 1) % WORDS], i);
		cr_assert_eq(words[(at + 2) % WORDS], i + 1);
		ring_consume(&slots[0], ring_head(&slots[0]));
	}
}

Test(writer, what_does_not_fit_is_counted_and_marked)
{
	uint64_t emitted = WORDS * 2, written, i, gaps = 0, missing = 0;

	for (i = 0; i < emitted; i++)
		put(WIRE_FORK, (uint32_t)i & 0xffff);
	written = ring_head(&slots[0]) - 1;
	cr_assert_lt(written, emitted);
	cr_assert_leq(ring_head(&slots[0]), WORDS);
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_FORK]), emitted - written);
	/* The collector makes room: the gap comes first, with the number, then the next event. */
	ring_consume(&slots[0], ring_head(&slots[0]));
	i = ring_head(&slots[0]);
	put(WIRE_FORK, 42);
	for (; i < ring_head(&slots[0]); i++)
		if (wire_head_kind(head_at(i)) == WIRE_GAP) {
			gaps++;
			missing = words[++i % WORDS];
		}
	cr_assert_eq(gaps, 1);
	cr_assert_eq(missing, emitted - written);
	cr_assert_eq(head_at(ring_head(&slots[0]) - 1), wire_extended(WIRE_FORK, 0, 42));
}

/* By a look at the tail alone; that recording was stopped, or a tail that makes no sense, is seen all the same. */
Test(writer, what_goes_on_being_lost_is_looked_at)
{
	uint64_t lost, head;

	for (uint64_t i = 0; i < WORDS + 10; i++)
		put(WIRE_EXCEPTION, 1);
	lost = atomic_load(&slots[0].lost[WIRE_EXCEPTION]);
	head = ring_head(&slots[0]);
	cr_assert(writer_goes_on_losing(thread_self.writer));
	process_set_status(PROCESS_STOPPED);
	put(WIRE_EXCEPTION, 1);
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_EXCEPTION]), lost, "what nobody wants is not lost");
	process_set_status(PROCESS_JOINED);
	ring_consume(&slots[0], head + 1000);
	put(WIRE_EXCEPTION, 1);
	ring_consume(&slots[0], head - 10 * WORDS);
	put(WIRE_EXCEPTION, 1);
	cr_assert_eq(ring_head(&slots[0]), head, "unread words are not overwritten");
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_EXCEPTION]), lost + 2);
	ring_consume(&slots[0], WORDS / 8);
	put(WIRE_EXCEPTION, 1);
	cr_assert_eq(ring_head(&slots[0]), head, "a quarter of the ring is not free");
	ring_consume(&slots[0], WORDS / 2);
	put(WIRE_EXCEPTION, 1);
	cr_assert_gt(ring_head(&slots[0]), head);
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_EXCEPTION]), lost + 3);
	writer_lose(thread_self.writer, WIRE_EXCEPTION);
	cr_assert_not(writer_goes_on_losing(thread_self.writer), "its name was missing, and there is room");
}

Test(writer, a_dead_collector_costs_the_bound_once)
{
	struct timespec begin, end;
	long ms;

	config.wait_ms = 200;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t i = 0; i < WORDS * 3; i++)
		put(WIRE_FORK, 1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	cr_assert_geq(ms, 150, "it was waited for");
	cr_assert_gt(atomic_load(&slots[0].lost[WIRE_FORK]), WORDS);
	/* Once, not for each of the events: a hundred thousand bounds would be hours. */
	cr_assert_lt(ms, 5000);
}

Test(writer, a_long_pause_is_bridged_by_an_absolute_time)
{
	struct writer *writer;
	uint64_t at, before;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	before = clock_now();
	writer->last_ticks -= UINT64_C(1) << 33;
	at = writer->head;
	put(WIRE_FORK, 2);
	cr_assert_eq(wire_head_kind(head_at(at)), WIRE_TIME);
	cr_assert_geq(words[(at + 1) % WORDS], before);
	cr_assert_eq(words[(at + 2) % WORDS], wire_word(wire_extended(WIRE_FORK, 0, 2), 0));
}

Test(writer, a_line_takes_no_time)
{
	struct writer *writer;
	uint64_t at, before;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	at = writer->head;
	before = writer->last_ticks;
	writer_put_line(writer, 1234);
	cr_assert_eq(words[at % WORDS], wire_word(wire_head(WIRE_AT_LINE, 1234), 0));
	cr_assert_eq(writer->head, at + 1);
	cr_assert_eq(writer->last_ticks, before, "the next event counts from there");
}

Test(writer, a_number_that_is_too_large_has_a_word_of_its_own)
{
	put(WIRE_FORK, WIRE_VALUE_MAX);
	put(WIRE_FORK, WIRE_VALUE_MAX + 1);
	cr_assert_eq(head_at(1), wire_extended(WIRE_FORK, 0, WIRE_VALUE_MAX));
	cr_assert_eq(wire_number(head_at(1), NULL), WIRE_VALUE_MAX);
	cr_assert_eq(head_at(2), wire_extended(WIRE_FORK, 1, 0));
	cr_assert_eq(wire_number(head_at(2), &words[3]), WIRE_VALUE_MAX + 1);
	cr_assert_eq(ring_head(&slots[0]), 4);
}

Test(writer, a_native_stack_stands_before_its_allocation)
{
	struct writer *writer;
	uint64_t at, ticks;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	at = writer->head;
	ticks = writer->last_ticks;
	writer_write_with_native_stack(writer, 77, wire_memory_head(WIRE_REALLOC, WIRE_DOMAIN_OBJ, 5), 0x1000, 0x2000);
	cr_assert_eq(head_at(at), wire_head(WIRE_NATIVE_STACK, 77));
	cr_assert_eq(words[at % WORDS] >> 32, writer->last_ticks - ticks);
	cr_assert_eq(words[(at + 1) % WORDS], wire_word(wire_memory_head(WIRE_REALLOC, WIRE_DOMAIN_OBJ, 5), 0));
	cr_assert_eq(words[(at + 2) % WORDS], 0x1000);
	cr_assert_eq(words[(at + 3) % WORDS], 0x2000);
	cr_assert_eq(writer->head, at + 4);
}

static uint64_t cpu_ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The CPU time of the WIRE_CPU there lies between two measurements. */
static void expect_cpu_time(uint64_t at, uint64_t low, uint64_t high)
{
	uint64_t word = words[at % WORDS], recorded = wire_cpu_ns((uint32_t)word, (uint32_t)(word >> 32));

	cr_assert_eq(wire_head_kind((uint32_t)word), WIRE_CPU);
	cr_assert(recorded >= low && recorded <= high, "%d ns", (int)(recorded - low));
}

Test(writer, cpu_time_is_recorded_at_the_start_after_each_pause_and_now_and_then)
{
	uint64_t low = cpu_ns_now(), at, times = 0;
	struct writer *writer;

	config.events |= EVENT_CPU;
	put(WIRE_FORK, 1);
	/* Before the thread's start, if the memory for the ring took that long. */
	expect_cpu_time(wire_head_kind(head_at(0)) != WIRE_CPU, low, cpu_ns_now());
	writer = thread_self.writer;
	at = writer->head;
	low = cpu_ns_now();
	writer->last_ticks -= CLOCK_WAIT_TICKS;
	cr_assert_not(writer_put_fast(writer, wire_head(WIRE_CALL, 5)), "a pause goes the long way");
	put(WIRE_FORK, 2);
	expect_cpu_time(at, low, cpu_ns_now());
	cr_assert_eq(words[(at + 2) % WORDS], wire_word(wire_extended(WIRE_FORK, 0, 2), 0));
	at = writer->head;
	for (int i = 0; i < 40000; i++) {
		ring_consume(&slots[0], ring_head(&slots[0]));
		writer->last_ticks = clock_now(); /* however busy the machine is: no pause */
		put(WIRE_FORK, 3);
		times += wire_head_kind(head_at(at)) == WIRE_CPU;
		at = writer->head;
	}
	cr_assert_geq(times, 2);
}

Test(writer, cpu_time_of_half_a_year)
{
	const uint64_t long_ns = UINT64_C(0x03a5a5a5f0f0f0f1);
	uint64_t word = wire_cpu_word(long_ns);

	cr_assert_eq(wire_head_kind((uint32_t)word), WIRE_CPU);
	cr_assert_eq(wire_cpu_ns((uint32_t)word, (uint32_t)(word >> 32)), long_ns & ((UINT64_C(1) << 59) - 1));
}

Test(writer, the_fast_path_writes_what_the_slow_one_writes)
{
	struct writer *writer;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	cr_assert(writer_has_room(writer));
	cr_assert(writer_put_fast(writer, wire_head(WIRE_CALL, 5)));
	cr_assert(
	    writer_put_fast_extra(writer, wire_memory_head(WIRE_MALLOC, 1, 64), 0x1000, false, writer_here(writer)));
	cr_assert_eq(ring_head(&slots[0]), 5);
	cr_assert_eq(head_at(2), wire_head(WIRE_CALL, 5));
	cr_assert_eq(head_at(3), wire_memory_head(WIRE_MALLOC, 1, 64));
	cr_assert_eq(words[4], 0x1000);
	writer->last_ticks -= UINT64_C(1) << 33;
	cr_assert_not(writer_put_fast(writer, wire_head(WIRE_CALL, 5)), "32 bits do not do");
	cr_assert_eq(ring_head(&slots[0]), 5);
}

/* A signal handler forks over an event that is half written, in whichever way, or over the thread's start. */
Test(writer, a_rare_event_never_stands_within_another)
{
	struct writer *writer;
	uint64_t at;

	writer_enter();
	writer_put_rare(WIRE_FORK, 1);
	writer_leave();
	cr_assert_eq(thread_self.writer, &writer_absent);
	cr_assert_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), 1);
	writer_put_rare(WIRE_FORK, 2);
	writer = thread_self.writer;
	cr_assert_eq(head_at(1), wire_extended(WIRE_FORK, 0, 2));
	at = writer_take(writer, 1);
	writer_put_rare(WIRE_FORK, 3);
	writer_give_back(writer, at);
	writer_enter();
	writer_put_rare(WIRE_FORK, 4);
	writer_leave();
	thread_self.nesting++;
	writer_put_rare(WIRE_FORK, 5);
	thread_self.nesting--;
	cr_assert_eq(writer->head, at);
	cr_assert_eq(ring_head(&slots[0]), at);
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_FORK]), 3);
	writer_put_rare(WIRE_FORK, 6);
	cr_assert_eq(head_at(at), wire_extended(WIRE_FORK, 0, 6));
	cr_assert_eq(thread_self.writing, 0);
}

/* What was interrupted after its look at the room has a word in this lap. */
Test(writer, a_rare_event_leaves_the_word_of_the_event_it_interrupts)
{
	struct writer *writer;

	writer_put_rare(WIRE_FORK, 1);
	writer = thread_self.writer;
	while ((ring_head(&slots[0]) & (WORDS - 1)) != WORDS - 2) {
		ring_consume(&slots[0], ring_head(&slots[0]));
		put(WIRE_FORK, 2);
	}
	writer_put_rare(WIRE_FORK, 3);
	cr_assert_eq(ring_head(&slots[0]), WORDS, "the last word of the lap is filled");
	cr_assert_eq(writer_at(writer, writer->head), &words[0]);
}

/* An allocation that may be taken back, put by the fast path or by the slow one. */
static void hold(struct writer *writer, uint64_t block, bool fast)
{
	uint32_t head = wire_memory_head(WIRE_MALLOC, WIRE_DOMAIN_OBJ, 28);
	struct writer_point before;

	if (fast) {
		cr_assert(writer_put_fast_extra(writer, head, block, true, writer_here(writer)));
		return;
	}
	cr_assert_eq(writer_reserve(WIRE_MALLOC), writer);
	before = writer_here(writer);
	writer_write_extra(writer, head, block, 0);
	writer_hold(writer, before);
}

Test(writer, what_is_held_is_seen_with_the_next_event_or_at_the_end)
{
	for (int fast = 0; fast < 2; fast++) {
		struct writer *writer;
		uint64_t at;

		put(WIRE_FORK, 1);
		writer = thread_self.writer;
		at = ring_head(&slots[0]);
		hold(writer, 0x1000, fast);
		cr_assert_eq(ring_head(&slots[0]), at, "not seen yet");
		cr_assert_eq(ring_last_head(&slots[0]), at + 2, "seen if the process ends here");
		cr_assert_eq(words[at + 1], 0x1000);
		cr_assert(writer_put_fast(writer, wire_head(WIRE_CALL, 5)));
		cr_assert_eq(ring_head(&slots[0]), at + 3);
		cr_assert_eq(ring_last_head(&slots[0]), at + 3);
		cr_assert_not(writer_retract(writer, (void *)0x1000), "it is not the last event any more");
	}
}

/* Objects that are made one after the other: only the last of them may be taken back. */
Test(writer, of_many_only_the_last_is_held)
{
	for (int fast = 0; fast < 2; fast++) {
		uint64_t at;

		put(WIRE_FORK, 1);
		for (uint64_t i = 1; i <= 100; i++) {
			at = thread_self.writer->head;
			hold(thread_self.writer, i << 4, fast);
			cr_assert_eq(ring_head(&slots[0]), at, "all before is seen");
			cr_assert_eq(ring_last_head(&slots[0]), at + 2, "and the last, if the process ends here");
		}
		cr_assert(writer_retract(thread_self.writer, (void *)(100 << 4)));
		cr_assert_not(writer_retract(thread_self.writer, (void *)(99 << 4)));
		cr_assert_eq(ring_last_head(&slots[0]), at);
	}
}

Test(writer, what_is_held_is_taken_back_whole)
{
	for (int fast = 0; fast < 2; fast++) {
		struct writer *writer;
		uint64_t at, ticks;

		put(WIRE_FORK, 1);
		writer = thread_self.writer;
		at = ring_head(&slots[0]);
		if (!fast)
			writer->last_ticks -= UINT64_C(1) << 33; /* so that a time comes with it */
		ticks = writer->last_ticks;
		hold(writer, 0x1000, fast);
		cr_assert_eq(ring_last_head(&slots[0]), at + (fast ? 2 : 4));
		cr_assert_not(writer_retract(writer, (void *)0x2000), "another block");
		cr_assert(writer_retract(writer, (void *)0x1000));
		cr_assert_eq(writer->head, at);
		cr_assert_eq(writer->last_ticks, ticks, "the next event counts from the one before");
		cr_assert_eq(ring_last_head(&slots[0]), at, "nothing is there to be seen");
		cr_assert_not(writer_retract(writer, (void *)0x1000), "once");
		put(WIRE_FORK, 2);
	}
}

Test(writer, what_was_seen_is_not_taken_back)
{
	struct writer *writer;
	uint64_t at;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	hold(writer, 0x1000, true);
	at = writer->head;
	writer_set_room(writer, 0, 0);
	cr_assert_eq(writer_reserve(WIRE_CALL), writer);
	cr_assert_eq(ring_head(&slots[0]), at, "the slow path shows it");
	cr_assert_not(writer_retract(writer, (void *)0x1000));
	cr_assert_eq(writer->head, at);
}

Test(writer, a_writer_that_has_nothing_takes_nothing_back)
{
	static struct writer absent;

	cr_assert_not(writer_retract(&absent, NULL), "as after a fork");
}

Test(writer, where_a_held_event_ends_must_make_sense)
{
	put(WIRE_FORK, 1);
	for (uint64_t held = 0; held < 64; held++) {
		uint64_t head = ring_head(&slots[0]);

		atomic_store(&slots[0].held, held);
		cr_assert_eq(ring_last_head(&slots[0]), held > head && held <= head + RING_HELD_WORDS ? held : head);
	}
	atomic_store(&slots[0].held, UINT64_MAX);
	cr_assert_eq(ring_last_head(&slots[0]), ring_head(&slots[0]));
}

static void *one_event(void *argument)
{
	put(WIRE_FORK, *(uint32_t *)argument);
	return NULL;
}

Test(writer, threads_take_the_lowest_free_slot_and_give_it_back)
{
	pthread_t thread;
	uint32_t value = 9;

	put(WIRE_FORK, 1);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, one_event, &value), 0);
		pthread_join(thread, NULL);
		cr_assert_eq(atomic_load(&slots[1].state), RING_SLOT_ENDED);
		cr_assert_eq(ring_head(&slots[1]), 3, "start, event, end");
		/* What the collector does with a slot that has ended. */
		atomic_store(&slots[1].head, 0);
		atomic_store(&slots[1].tail, 0);
		atomic_store(&slots[1].state, RING_SLOT_FREE);
	}
	cr_assert_eq(atomic_load(&header->slots_used), 2);
}

Test(writer, threads_without_a_slot_are_counted)
{
	pthread_t thread;
	uint32_t value = 9;

	for (unsigned i = 0; i < SLOTS; i++)
		atomic_store(&slots[i].state, RING_SLOT_LIVE);
	pthread_create(&thread, NULL, one_event, &value);
	pthread_join(thread, NULL);
	cr_assert_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), 1);
}

/* The collector. */
static void *frees_slot_1(void *argument)
{
	(void)argument;
	for (int i = 0; i < 500 && !atomic_load(&header->waiting); i++)
		usleep(10000);
	cr_assert(atomic_load(&header->waiting), "a thread waits");
	usleep(10000);
	atomic_store(&slots[1].state, RING_SLOT_FREE);
	return NULL;
}

Test(writer, a_thread_waits_for_the_slot_of_an_ended_one)
{
	pthread_t collector;

	config.wait_ms = 60000;
	for (unsigned i = 0; i < SLOTS; i++)
		atomic_store(&slots[i].state, i == 1 ? RING_SLOT_ENDED : RING_SLOT_LIVE);
	cr_assert_eq(pthread_create(&collector, NULL, frees_slot_1, NULL), 0);
	put(WIRE_FORK, 7);
	pthread_join(collector, NULL);
	cr_expect_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), 0);
	cr_expect_eq(ring_head(&slots[1]), 2, "the start and the event are there");
	cr_expect_gt(atomic_load(&header->waited_us), 0, "the wait is counted");
}

/* Nor where the policy is to drop (see above). */
Test(writer, no_thread_waits_for_the_slot_of_a_living_one)
{
	config.wait_ms = 60000;
	for (unsigned i = 0; i < SLOTS; i++)
		atomic_store(&slots[i].state, RING_SLOT_LIVE);
	put(WIRE_FORK, 7);
	cr_expect_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), 1);
	cr_expect_eq(atomic_load(&header->waits), 0);
	atomic_store(&slots[1].state, RING_SLOT_ENDED);
	config.wait_ms = 0;
	for (unsigned i = 0; i < WRITER_LOSE_AT_ONCE; i++)
		put(WIRE_FORK, i);
	cr_expect_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), 1 + WRITER_LOSE_AT_ONCE);
	cr_expect_eq(atomic_load(&header->waits), 0);
}

/* The collector does not free it: the bound is for all threads and events together. */
Test(writer, waiting_for_a_slot_is_bounded)
{
	uint64_t begin_us = process_now_us();

	config.wait_ms = 50;
	for (unsigned i = 0; i < SLOTS; i++)
		atomic_store(&slots[i].state, RING_SLOT_ENDED);
	for (unsigned i = 0; i < 3 * WRITER_LOSE_AT_ONCE; i++)
		put(WIRE_FORK, i);
	cr_expect_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), 3 * WRITER_LOSE_AT_ONCE);
	cr_expect_geq(process_now_us() - begin_us, 50000);
	cr_expect_lt(process_now_us() - begin_us, 5000000);
}

Test(writer, a_thread_without_a_slot_looks_for_one_now_and_then)
{
	for (unsigned i = 0; i < SLOTS; i++)
		atomic_store(&slots[i].state, RING_SLOT_LIVE);
	put(WIRE_FORK, 0);
	atomic_store(&slots[0].state, RING_SLOT_FREE);
	for (unsigned i = 1; i < WRITER_LOSE_AT_ONCE; i++)
		put(WIRE_FORK, i);
	cr_expect_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), WRITER_LOSE_AT_ONCE);
	cr_expect_eq(ring_head(&slots[0]), 0);
	put(WIRE_FORK, 7);
	cr_expect_eq(atomic_load(&header->lost_unslotted[WIRE_FORK]), WRITER_LOSE_AT_ONCE);
	cr_expect_eq(ring_head(&slots[0]), 2, "the start and the event are there");
}

Test(writer, the_child_of_a_fork_never_writes_into_its_parents_ring)
{
	uint64_t head;
	int status;
	pid_t child;

	put(WIRE_FORK, 1);
	head = ring_head(&slots[0]);
	child = fork();
	if (child == 0) {
		struct writer *writer = thread_self.writer;

		/* Cleared, and without a session that it could join. */
		_exit(writer_has_room(writer) || writer_reserve(WIRE_FORK) || atomic_load(&process->status) ? 1 : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* The parent notes the fork itself. */
	cr_assert_eq(ring_head(&slots[0]), head + 1 + wire_extra_words(head_at(head)));
	cr_assert_eq(wire_head_kind(head_at(head)), WIRE_FORK);
	cr_assert_eq(wire_number(head_at(head), &words[(head + 1) % WORDS]), (uint64_t)child);
}

Test(writer, a_stop_is_noticed_by_the_fast_path)
{
	struct writer *writer;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	cr_assert(writer_has_room(writer));
	process_set_status(PROCESS_STOPPED);
	cr_assert_not(writer_has_room(writer));
	cr_assert_null(writer_reserve(WIRE_FORK));
	atomic_store(&process->status, PROCESS_JOINED);
	cr_assert_not_null(writer_reserve(WIRE_FORK));
}

/* An event that is not recorded is not lost either, and does what is due, so that the next one is fast. */
Test(writer, what_is_not_recorded_finds_room_for_what_follows)
{
	struct writer *writer;
	uint64_t head, lost;

	put(WIRE_FORK, 1);
	writer = thread_self.writer;
	head = writer->head;
	process_look_again();
	cr_assert_not(writer_has_room(writer));
	writer_look(WIRE_RETURN);
	cr_assert(writer_has_room(writer));
	cr_assert_eq(writer->head, head);
	for (uint64_t i = 0; i < WORDS; i++)
		put(WIRE_FORK, 1);
	lost = atomic_load(&slots[0].lost[WIRE_FORK]);
	cr_assert_gt(lost, 0);
	writer_look(WIRE_RETURN);
	cr_assert_not(writer_has_room(writer));
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_RETURN]), 0);
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_FORK]), lost);
	process_set_status(PROCESS_STOPPED);
	ring_consume(&slots[0], ring_head(&slots[0]));
	writer_look(WIRE_RETURN);
	cr_assert_not(writer_has_room(writer));
}

Test(writer, errno_stays)
{
	errno = 1234;
	for (uint64_t i = 0; i < WORDS * 2; i++)
		put(WIRE_FORK, 1);
	cr_assert_eq(errno, 1234);
}

/* ---- the other side may write anything ------------------------------------------------------------------------- */

/* All that a collector can reach: the header, or all slots. */
static void scribble(void *at, size_t bytes, uint64_t value)
{
	for (size_t i = 0; i < bytes / sizeof(value); i++)
		((uint64_t *)at)[i] = value;
}

/* Ones, a small number, and what leads far away from any base. */
static const uint64_t lies[] = {UINT64_MAX, 1, UINT64_C(1) << 46, 0};

static void *two_events(void *argument)
{
	(void)argument;
	put(WIRE_FORK, 5);
	put(WIRE_FORK, 6);
	return NULL;
}

static void use_everything(void)
{
	pthread_t thread;

	for (int i = 0; i < 1000; i++)
		put(WIRE_FORK, 1);
	cr_assert_eq(pthread_create(&thread, NULL, two_events, NULL), 0);
	pthread_join(thread, NULL);
	definitions_mark("a name that is defined");
	process_set_status(PROCESS_STOPPED);
	process_set_status(PROCESS_JOINED);
	process_expect_stacks();
	put(WIRE_FORK, 2);
}

Test(writer, the_layout_in_the_header_is_nobodys_word)
{
	put(WIRE_FORK, 1);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		scribble(&header->layout, sizeof(header->layout), lies[i]);
		use_everything();
	}
	cr_assert_eq(head_at(0), wire_extended(WIRE_THREAD_START, 0, 0));
	cr_assert_eq(slots[1].data_offset, (uint8_t *)words - process->base + RING_BYTES_MIN);
}

Test(writer, the_rest_of_the_header_is_neither)
{
	put(WIRE_FORK, 1);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		scribble(header, sizeof(*header), lies[i]);
		use_everything();
		memory_shrink(MEMORY_ROOM_LEAST);
	}
	cr_assert_eq(head_at(0), wire_extended(WIRE_THREAD_START, 0, 0));
}

/* What is said of a slot neither moves its ring nor makes it another thread's. */
Test(writer, slots_are_neither)
{
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		put(WIRE_FORK, 1);
		scribble(slots, SLOTS * sizeof(*slots), lies[i]);
		use_everything();
		cr_assert_eq(thread_self.writer->slot, &slots[0]);
		cr_assert_eq(thread_self.writer, &process->writers[0]);
		cr_assert_eq(thread_self.writer->words, words);
		cr_assert_eq(thread_self.writer->mask, WORDS - 1);
	}
}

Test(writer, a_thread_keeps_its_slot_though_it_is_said_to_be_free)
{
	pthread_t thread;

	put(WIRE_FORK, 1);
	atomic_store(&slots[0].state, RING_SLOT_FREE);
	cr_assert_eq(pthread_create(&thread, NULL, two_events, NULL), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(atomic_load(&slots[1].state), RING_SLOT_ENDED);
	cr_assert_eq(ring_head(&slots[1]), 4, "start, two events, end");
	cr_assert_eq(thread_self.writer->head, 2);
}

Test(writer, a_tail_that_makes_no_sense_leaves_no_room)
{
	put(WIRE_FORK, 1);
	atomic_store(&slots[0].tail, 1000);
	process_look_again();
	for (uint32_t i = 0; i < 10; i++)
		put(WIRE_FORK, i);
	cr_assert_eq(atomic_load(&slots[0].lost[WIRE_FORK]), 10);
	atomic_store(&slots[0].tail, 0);
	put(WIRE_FORK, 11);
	cr_assert_eq(head_at(2), wire_head(WIRE_GAP, 0));
}

/* Memory that a collector has filled with anything can be exchanged for new memory, in which the threads go on. */
static void exchange_after(void *at, size_t bytes)
{
	put(WIRE_FORK, 1);
	for (size_t i = 0; i < 2 * sizeof(lies) / sizeof(lies[0]); i++) {
		int memfd;

		scribble(at, bytes, lies[i / 2]);
		memfd = exchange_memory(i % 2);
		cr_assert_geq(memfd, 0);
		close(memfd);
		cr_assert_eq(memcmp(&header->layout, &process->layout, sizeof(process->layout)), 0);
		cr_assert_eq(atomic_load(&slots[0].state), RING_SLOT_LIVE);
		cr_assert_eq(slots[0].data_offset, (uint64_t)((uint8_t *)words - process->base));
		use_everything();
	}
}

Test(writer, a_header_of_lies_is_exchanged)
{
	exchange_after(header, sizeof(*header));
}

Test(writer, slots_of_lies_are_exchanged)
{
	exchange_after(slots, SLOTS * sizeof(*slots));
}

static uint64_t ticks_after_exchange(void)
{
	int memfd = exchange_memory(true);

	cr_assert_geq(memfd, 0);
	close(memfd);
	return slots[0].start_ticks;
}

/* Whatever the unread words are: the time at the tail is what the last collector noted, or the start of the thread. */
Test(writer, the_time_at_the_tail_is_kept)
{
	uint64_t start;

	put(WIRE_FORK, 1);
	start = slots[0].start_ticks;
	thread_self.writer->last_ticks -= 2 * thread_self.writer->pause;
	put(WIRE_FORK, 2);
	cr_assert_eq(head_at(2), wire_head(WIRE_TIME, 0));
	cr_assert_eq(ticks_after_exchange(), start);
	cr_assert_eq(slots[0].start_position, 0);
	ring_note_tail(&slots[0], 0, 1, 4711);
	ring_consume(&slots[0], 1);
	ring_note_tail(&slots[0], 1, 2, 4712); /* the collector is killed before the tail moves */
	cr_assert_eq(ticks_after_exchange(), 4711);
	cr_assert_eq(slots[0].start_position, 1);
	cr_assert_eq(ticks_after_exchange(), 4711);
}

/* Nobody can be reached here, so a wake is seen by what it leaves: sleep is taken back, and wakes, too. */
static bool was_woken(void)
{
	return atomic_load(&header->sleep) == RING_AWAKE && atomic_load(&header->wakes) == 0;
}

static void fall_asleep(enum ring_sleep how)
{
	atomic_store(&header->wakes, 1);
	atomic_store(&header->sleep, how);
}

Test(writer, a_ring_that_fills_wakes_a_collector_that_sleeps)
{
	put(WIRE_FORK, 0);
	fall_asleep(RING_SLEEPS_UNTIL_FULL);
	while (ring_head(&slots[0]) < WORDS / 4 - WRITER_CHUNK_WORDS)
		put(WIRE_FORK, 0);
	cr_assert_not(was_woken(), "a few words do not");
	while (ring_head(&slots[0]) < WORDS / 4 + WRITER_CHUNK_WORDS)
		put(WIRE_FORK, 0);
	cr_assert(was_woken(), "long before it is full");
	fall_asleep(RING_SLEEPS_UNTIL_FULL);
	while (ring_head(&slots[0]) < WORDS - WRITER_CHUNK_WORDS)
		put(WIRE_FORK, 0);
	cr_assert(was_woken(), "nor does one that was full before it slept keep it asleep");
}

Test(writer, an_event_after_a_silence_wakes_a_collector_that_sleeps_for_long)
{
	put(WIRE_FORK, 0);
	fall_asleep(RING_SLEEPS_UNTIL_FULL);
	thread_self.writer->last_ticks -= CLOCK_QUIET_TICKS;
	errno = EXDEV;
	put(WIRE_FORK, 0);
	cr_assert_not(was_woken(), "one that looks soon is let alone");
	fall_asleep(RING_SLEEPS_UNTIL_EVENT);
	thread_self.writer->last_ticks -= CLOCK_QUIET_TICKS;
	put(WIRE_FORK, 0);
	cr_assert(was_woken());
	cr_assert_eq(errno, EXDEV);
}

static uint64_t code_key(const char *file, const char *name, uint32_t line, uint64_t size, const char *lines)
{
	struct wire_definition record = {.type = WIRE_DEFINE_CODE, .number = line, .address = size};
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(file), string_c(name), string_c(""), string_c("")};
	struct string table = string_c(lines);

	return names_code_key(&record, strings, &table);
}

/* Code that is compiled anew keeps its id; code that differs in what readers see has another one. */
Test(writer, code_with_one_definition_has_one_id)
{
	const uint64_t others[] = {
	    code_key("a.pz", "root", 4, 100, "l"), code_key("a.py", "roo", 4, 100, "l"),
	    code_key("a.py", "root", 5, 100, "l"), code_key("a.py", "root", 4, 102, "l"),
	    code_key("a.py", "root", 4, 100, ""),  code_key("a.pyr", "oot", 4, 100, "l"),
	};
	uint64_t key = code_key("a.py", "root", 4, 100, "l");

	names_store_code(key, 7);
	cr_expect_eq(names_code(code_key("a.py", "root", 4, 100, "l")), 7);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(names_code(others[i]), 0, "other %zu", i);
	process_forget_ids();
	cr_expect_eq(names_code(key), 0);
}

/* The table does not grow. The last function is found; most of the others, too. */
Test(writer, functions_without_end_are_found_by_their_definitions)
{
	unsigned found = 0;

	for (uint32_t i = 1; i <= 100000; i++) {
		names_store_code(code_key("a.py", "f", i, 100, ""), i);
		cr_assert_eq(names_code(code_key("a.py", "f", i, 100, "")), i);
	}
	for (uint32_t i = 1; i <= 100000; i++) {
		uint32_t id = names_code(code_key("a.py", "f", i, 100, ""));

		cr_assert(id == 0 || id == i);
		found += id == i;
	}
	cr_expect_geq(found, (1u << NAMES_BITS) * 9 / 10);
}
