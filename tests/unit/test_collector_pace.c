/*
 * test_collector_pace.c - how often a collector comes by, for programs that write much, little and nothing. Time is
 * made here: a round finds what has been written since the one before, and begins when the sleep before it is over.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "collector/session/pace.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define CHUNK 8192u
#define GATHER_US 200000
#define PATIENT_US 4000000
#define RINGS 8

static struct pace pace;
static struct pace_limits limits;
static uint64_t now_ns, unread[RINGS], chunks, gathered_ns;
static unsigned ring_count;

static void setup(void)
{
	pace = (struct pace){0};
	limits = (struct pace_limits){.longest_us = PATIENT_US, .gather_us = GATHER_US};
	now_ns = 5 * S;
	memset(unread, 0, sizeof(unread));
	chunks = gathered_ns = 0;
	ring_count = 1;
}

/*
 * A round that finds that number of words more in each ring, and reads them as drain.c does. Returns its sleep, which
 * it takes.
 */
static int turn(uint64_t written)
{
	struct drain_result result = {0};
	bool gathered = now_ns - gathered_ns >= GATHER_US * UINT64_C(1000);
	int us;

	for (unsigned i = 0; i < ring_count; i++) {
		unread[i] += written;
		if (unread[i] >= CHUNK || (gathered && unread[i])) {
			result.words += unread[i];
			unread[i] = 0;
			chunks++;
		}
		drain_add_ring(&result, unread[i], CHUNK, written);
	}
	if (gathered && result.words)
		gathered_ns = now_ns;
	limits.due_ns = gathered_ns + GATHER_US * UINT64_C(1000);
	us = pace_next(&pace, &result, &limits, now_ns);
	cr_assert(us <= 8000 || pace.sleep != RING_AWAKE, "%d us of sleep are announced", us);
	now_ns += (uint64_t)us * 1000;
	return us;
}

/* The number of rounds in that time, at a rate of words. */
static unsigned rounds(uint64_t during_ns, uint64_t words_a_second)
{
	uint64_t end_ns = now_ns + during_ns, before_ns = now_ns;
	unsigned count = 0;

	for (; now_ns < end_ns; count++) {
		uint64_t written = now_ns * words_a_second / S - before_ns * words_a_second / S;

		before_ns = now_ns;
		turn(written);
	}
	return count;
}

TestSuite(collector_pace, .init = setup);

Test(collector_pace, nothing_for_long)
{
	unsigned first = rounds(S, 0), then = rounds(10 * S, 0);

	cr_assert_leq(first, 20, "%u rounds in the first second", first);
	cr_assert_leq(then, 6, "%u in ten more", then);
	cr_assert_eq(pace.sleep, RING_SLEEPS_UNTIL_EVENT);
}

Test(collector_pace, the_long_sleep_is_announced_one_sleep_before)
{
	enum ring_sleep announced = RING_AWAKE;
	int us;

	for (int i = 0; i < 100; i++) {
		us = turn(0);
		cr_assert(us <= GATHER_US || announced == RING_SLEEPS_UNTIL_EVENT);
		announced = pace.sleep;
	}
	cr_assert_eq(us, PATIENT_US);
}

Test(collector_pace, a_few_events_a_second)
{
	unsigned count;

	rounds(2 * S, 20);
	count = rounds(10 * S, 20);
	cr_assert_leq(count, 60, "%u rounds in ten seconds", count);
	rounds(2 * S, 2000);
	count = rounds(10 * S, 2000);
	cr_assert_leq(count, 100, "%u rounds in ten seconds", count);
}

/* A chunk is ready 122 times a second, or 1220 times. */
Test(collector_pace, much)
{
	unsigned count;

	rounds(S, 1000000);
	count = rounds(10 * S, 1000000);
	cr_assert(count >= 1000 && count <= 2500, "%u rounds in ten seconds", count);
	rounds(S, 10000000);
	count = rounds(S, 10000000);
	cr_assert(count >= 900, "%u rounds in a second", count);
}

/* Chunks of 1.6 to 7.4 ms. */
Test(collector_pace, one_round_for_a_chunk)
{
	for (uint64_t rate = 1100000; rate <= 5000000; rate += 300000) {
		unsigned count;

		rounds(S, rate);
		chunks = 0;
		count = rounds(S, rate);
		cr_assert_geq(chunks, rate / CHUNK * 2 / 3, "%u a second, %u chunks", (unsigned)rate, (unsigned)chunks);
		cr_assert_leq(count, chunks + chunks / 8, "%u a second, %u rounds for %u chunks", (unsigned)rate, count,
			      (unsigned)chunks);
	}
}

/* Together they hold a chunk nearly always, but a ring is read when it holds one itself. */
Test(collector_pace, eight_rings)
{
	unsigned count;

	ring_count = RINGS;
	for (unsigned i = 0; i < RINGS; i++)
		unread[i] = i * CHUNK / RINGS;
	rounds(2 * S, 100000);
	chunks = 0;
	count = rounds(10 * S, 100000);
	cr_assert_geq(chunks, 900);
	cr_assert_leq(count, 3 * chunks, "%u rounds for %u chunks", count, (unsigned)chunks);
}

Test(collector_pace, the_first_ring_counts)
{
	struct drain_result result = {0};

	drain_add_ring(&result, 700, 1000, 0);
	cr_assert_eq(result.grown, 0, "a ring that does not grow has no time");
	drain_add_ring(&result, 700, 1000, 10);
	drain_add_ring(&result, 100, 1000, 100);
	drain_add_ring(&result, 900, 1000, 2);
	cr_assert(result.wanted == 900 && result.grown == 100, "%u words are missing, at %u a round",
		  (unsigned)result.wanted, (unsigned)result.grown);
	cr_assert_eq(result.unread, 2400);
}

Test(collector_pace, who_cannot_wake_us)
{
	limits.longest_us = 8000;
	for (int i = 0; i < 1000; i++)
		cr_assert(turn(0) <= 8000 && pace.sleep == RING_AWAKE);
}

Test(collector_pace, woken)
{
	struct drain_result woken = {.woken = true};

	rounds(10 * S, 0);
	cr_assert_eq(pace.sleep, RING_SLEEPS_UNTIL_EVENT);
	cr_assert_leq(pace_next(&pace, &woken, &limits, now_ns), 8000, "it is about to write");
	cr_assert_eq(pace.sleep, RING_AWAKE);
	rounds(S / 2, 0);
	cr_assert_eq(pace.sleep, RING_SLEEPS_UNTIL_FULL);
	cr_assert_leq(pace_next(&pace, &woken, &limits, now_ns), 1000, "its ring fills");
}
