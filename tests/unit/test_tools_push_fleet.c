/*
 * test_tools_push_fleet.c - evprof push on 10,000 hosts against one collector, simulated: the queues and spools are the
 * product's (push/queue.h), time and the network are not. The collector is away for a while, comes back with little
 * more capacity than the fleet needs, and loses some of its answers.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "push/queue.h"
#include "util/jitter.h"

#define HOSTS 10000
#define INTERVAL_MS 60000
#define TICK_MS 10
#define AWAY_FROM_MS (5 * 60000)
#define AWAY_UNTIL_MS (25 * 60000)
#define NO_MORE_MS (60 * 60000) /* from then on nothing new is made */
#define END_MS (150 * 60000)
#define ANSWER_MS 20
#define STEADY (HOSTS / (INTERVAL_MS / 1000)) /* requests a second that the fleet makes */
#define NOBODY -1

struct host {
	struct push_queue queue;
	int next_in_tick; /* another host of the same tick, or NOBODY */
	uint64_t made, answered, body;
	bool idle;
};

struct fleet {
	struct host *hosts;
	int *ticks;		      /* the first host that sends in each */
	uint8_t *seen;		      /* how often each request was accepted, by its number */
	uint32_t *offered, *accepted; /* in each second */
	uint64_t random, made, lost_answers;
	int capacity;		/* requests a second */
	int64_t retry_after_ms; /* of the answer 429; -1: none */
};

#define MOST_REQUESTS ((size_t)HOSTS * (NO_MORE_MS / INTERVAL_MS + 1))

static void send_at(struct fleet *fleet, int host, int64_t ms)
{
	int64_t tick = ms / TICK_MS;

	if (tick >= END_MS / TICK_MS)
		return;
	fleet->hosts[host].next_in_tick = fleet->ticks[tick];
	fleet->ticks[tick] = host;
}

static void fleet_init(struct fleet *fleet, int capacity, int64_t retry_after_ms, size_t spool_bytes)
{
	char why[256];

	*fleet = (struct fleet){.capacity = capacity, .retry_after_ms = retry_after_ms, .random = 1};
	fleet->hosts = calloc(HOSTS, sizeof(*fleet->hosts));
	fleet->ticks = malloc(END_MS / TICK_MS * sizeof(*fleet->ticks));
	fleet->seen = calloc(MOST_REQUESTS, 1);
	fleet->offered = calloc(END_MS / 1000 + 1, sizeof(*fleet->offered));
	fleet->accepted = calloc(END_MS / 1000 + 1, sizeof(*fleet->accepted));
	memset(fleet->ticks, 0xff, END_MS / TICK_MS * sizeof(*fleet->ticks));
	for (int i = 0; i < HOSTS; i++) {
		cr_assert(push_spool_open(&fleet->hosts[i].queue.spool, NULL, "otlp", spool_bytes, why, sizeof(why)));
		fleet->hosts[i].queue.random = (uint64_t)i;
		fleet->hosts[i].idle = true;
	}
}

static void fleet_done(struct fleet *fleet)
{
	for (int i = 0; i < HOSTS; i++)
		push_spool_close(&fleet->hosts[i].queue.spool);
	free(fleet->hosts);
	free(fleet->ticks);
	free(fleet->seen);
	free(fleet->offered);
	free(fleet->accepted);
}

/* The collector's answer to a request; 0: there is none. */
static long answer(struct fleet *fleet, uint64_t request, int64_t now_ms)
{
	int64_t second = now_ms / 1000;

	fleet->offered[second]++;
	if (now_ms >= AWAY_FROM_MS && now_ms < AWAY_UNTIL_MS)
		return 0;
	if ((int)fleet->accepted[second] >= fleet->capacity)
		return 429;
	fleet->accepted[second]++;
	fleet->seen[request]++;
	if (jitter_below(&fleet->random, 1000))
		return 200;
	fleet->lost_answers++;
	return 0;
}

/* A host's thread that sends: as sender.c's, which waits by a clock. */
static void send_one(struct fleet *fleet, int i, int64_t now_ms)
{
	struct host *host = &fleet->hosts[i];
	uint8_t *body;
	uint64_t request;
	size_t bytes;
	int64_t wait_ms;
	long status;

	host->idle = !push_spool_first(&host->queue.spool, &body, &bytes);
	if (host->idle)
		return;
	memcpy(&request, body, sizeof(request));
	free(body);
	status = answer(fleet, request, now_ms);
	push_queue_answered(&host->queue, status, status == 429 ? fleet->retry_after_ms : -1, &wait_ms);
	send_at(fleet, i, now_ms + ANSWER_MS + wait_ms);
}

/* Each host makes a request each interval, at a time of its own. */
static void make_requests(struct fleet *fleet, int64_t now_ms)
{
	int ticks = INTERVAL_MS / TICK_MS, phase = (int)(now_ms / TICK_MS % ticks);

	for (int i = phase; i < HOSTS; i += ticks) {
		struct host *host = &fleet->hosts[i];
		uint64_t request = fleet->made++;

		cr_assert_lt(request, MOST_REQUESTS);
		push_spool_add(&host->queue.spool, &request, sizeof(request));
		if (host->idle)
			send_at(fleet, i, now_ms);
		host->idle = false;
	}
}

static void run_fleet(struct fleet *fleet)
{
	for (int64_t ms = 0; ms < END_MS; ms += TICK_MS) {
		if (ms < NO_MORE_MS)
			make_requests(fleet, ms);
		for (int host = fleet->ticks[ms / TICK_MS], next; host != NOBODY; host = next) {
			next = fleet->hosts[host].next_in_tick;
			send_one(fleet, host, ms);
		}
	}
}

struct result {
	uint64_t arrived, twice, dropped, left;
	uint32_t most_while_away, most_since; /* requests a second */
	uint64_t offered_since, accepted_since;
	int64_t recovered_s; /* after the return, until no more than the fleet's new requests come */
};

static struct result result_of(const struct fleet *fleet)
{
	struct result result = {0};

	for (uint64_t i = 0; i < fleet->made; i++) {
		result.arrived += fleet->seen[i] > 0;
		result.twice += fleet->seen[i] > 1 ? fleet->seen[i] - 1U : 0;
	}
	for (int i = 0; i < HOSTS; i++) {
		const struct push_spool *spool = &fleet->hosts[i].queue.spool;

		result.dropped += spool->dropped;
		result.left += spool->count - spool->first;
	}
	for (int64_t s = AWAY_FROM_MS / 1000 + 1; s < AWAY_UNTIL_MS / 1000; s++)
		if (fleet->offered[s] > result.most_while_away)
			result.most_while_away = fleet->offered[s];
	for (int64_t s = AWAY_UNTIL_MS / 1000; s < END_MS / 1000; s++) {
		if (fleet->offered[s] > result.most_since)
			result.most_since = fleet->offered[s];
		result.offered_since += fleet->offered[s];
		result.accepted_since += fleet->accepted[s];
		if (fleet->offered[s] > STEADY * 3 / 2)
			result.recovered_s = s - AWAY_UNTIL_MS / 1000;
	}
	cr_log_info(
	    "capacity %d, Retry-After %lld: %llu made, %llu arrived, %llu twice (%llu answers lost), %llu dropped, "
	    "%llu left; at most %u requests/s while away, %u since; %.2f requests for one accepted; %lld s\n",
	    fleet->capacity, (long long)fleet->retry_after_ms, (unsigned long long)fleet->made,
	    (unsigned long long)result.arrived, (unsigned long long)result.twice,
	    (unsigned long long)fleet->lost_answers, (unsigned long long)result.dropped,
	    (unsigned long long)result.left, result.most_while_away, result.most_since,
	    (double)result.offered_since / (double)result.accepted_since, (long long)result.recovered_s);
	return result;
}

/* One queue's waits after answers: growing, never before Retry-After, less after each success. */
Test(push_fleet, waits)
{
	struct push_queue queue = {.random = 7};
	char why[256];
	int64_t wait_ms, longest_ms = 0;

	cr_assert(push_spool_open(&queue.spool, NULL, "otlp", 4096, why, sizeof(why)));
	for (int i = 0; i < 100; i++)
		cr_assert_eq(push_spool_add(&queue.spool, "request", 7), 0);
	for (int i = 0; i < 20; i++) {
		cr_expect_eq(push_queue_answered(&queue, 503, 0, &wait_ms), PUSH_AGAIN);
		cr_expect_geq(wait_ms, 250, "a Retry-After of 0 is no reason to hurry");
		longest_ms = wait_ms > longest_ms ? wait_ms : longest_ms;
	}
	cr_expect(longest_ms > 30000 && longest_ms < 45000);
	cr_expect_eq(push_queue_answered(&queue, 429, 60000, &wait_ms), PUSH_AGAIN);
	cr_expect(wait_ms >= 60000 && wait_ms < 90000);
	cr_expect_eq(push_queue_answered(&queue, 200, -1, &wait_ms), PUSH_SENT);
	cr_expect(wait_ms >= 7500 && wait_ms < 22500);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(push_queue_answered(&queue, 400, -1, &wait_ms), PUSH_REJECTED);
	cr_expect_eq(wait_ms, 0, "it is as if nothing had failed");
	cr_expect_eq(queue.spool.count - queue.spool.first, 94);
	push_spool_close(&queue.spool);
}

/* Whatever a busy collector answers: no storm when it is back, and all arrives that the spools can hold. */
Test(push_fleet, comes_back_slowly, .timeout = 120)
{
	static const int64_t retry_after_ms[] = {-1, 0, 1000, 30000, 300000};

	for (size_t i = 0; i < sizeof(retry_after_ms) / sizeof(*retry_after_ms); i++) {
		struct fleet fleet;
		struct result result;

		fleet_init(&fleet, STEADY * 2, retry_after_ms[i], 4096);
		run_fleet(&fleet);
		result = result_of(&fleet);
		cr_expect_eq(result.arrived, fleet.made);
		cr_expect_eq(result.twice, fleet.lost_answers, "twice only what the collector did not answer");
		cr_expect_eq(result.dropped + result.left, 0);
		cr_expect_lt(result.most_while_away, STEADY * 10, "at most %u requests/s while away",
			     result.most_while_away);
		cr_expect_lt(result.most_since, STEADY * 10, "at most %u requests/s since", result.most_since);
		cr_expect_lt(result.offered_since, result.accepted_since * 3);
		fleet_done(&fleet);
	}
}

/* A spool that holds a quarter of what the collector missed: the oldest are dropped, and each is counted. */
Test(push_fleet, loses_only_what_it_counts, .timeout = 120)
{
	struct fleet fleet;
	struct result result;

	fleet_init(&fleet, STEADY * 2, -1, 5 * sizeof(uint64_t));
	run_fleet(&fleet);
	result = result_of(&fleet);
	cr_expect_gt(result.dropped, fleet.made / 8);
	cr_expect_geq(result.arrived + result.dropped, fleet.made);
	cr_expect_leq(result.arrived + result.dropped, fleet.made + fleet.lost_answers,
		      "dropped and there: its answer was lost");
	cr_expect_eq(result.left, 0);
	fleet_done(&fleet);
}

/* A collector that has less room than the fleet needs gets all that it can take, and the rest is counted. */
Test(push_fleet, uses_what_capacity_there_is, .timeout = 120)
{
	struct fleet fleet;
	struct result result;
	uint64_t before = 0;

	fleet_init(&fleet, STEADY / 2, 1000, 5 * sizeof(uint64_t));
	run_fleet(&fleet);
	result = result_of(&fleet);
	for (int64_t s = AWAY_UNTIL_MS / 1000 + 60; s < NO_MORE_MS / 1000; s++)
		before += fleet.accepted[s];
	cr_expect_gt(before, (uint64_t)(NO_MORE_MS - AWAY_UNTIL_MS - 60000) / 1000 * (STEADY / 2) * 9 / 10);
	cr_expect_lt(result.offered_since, result.accepted_since * 6);
	cr_expect_geq(result.arrived + result.dropped + result.left, fleet.made);
	cr_expect_leq(result.arrived + result.dropped + result.left, fleet.made + fleet.lost_answers);
	fleet_done(&fleet);
}
