/* pace.c - see pace.h. */
#include "session/pace.h"

#define SHORT_US 1000
#define YOUNG_US 200
#define UNANNOUNCED_US 8000	      /* only the fastest fill a ring in that time */
#define QUIET_NS UINT64_C(1000000000) /* longer than the idle time of a thread (CLOCK_QUIET_TICKS) on any machine */

static int min_int(int one, int other)
{
	return one < other ? one : other;
}

static int max_int(int one, int other)
{
	return one > other ? one : other;
}

/*
 * Time until the first ring holds a chunk, at its current rate of filling; at most most_us. A little more, as a round
 * that comes too early reads nothing; but half of it for an announced sleep: a thread that has a chunk before has to
 * connect to end it.
 */
static int until_chunk_us(const struct pace *pace, const struct drain_result *result, uint64_t now_ns, int most_us)
{
	uint64_t passed_us = (now_ns - pace->looked_ns) / 1000;
	int us;

	if (result->grown == 0 || result->wanted * passed_us >= (uint64_t)most_us * result->grown)
		return most_us;
	us = (int)(result->wanted * passed_us / result->grown);
	if (us > UNANNOUNCED_US)
		return max_int(us / 2, UNANNOUNCED_US);
	return min_int(us + us / 8, min_int(most_us, UNANNOUNCED_US));
}

/* Time until due_ns, in whole milliseconds as epoll_wait() counts; at most most_us. */
static int until_due_us(uint64_t due_ns, uint64_t now_ns, int most_us)
{
	uint64_t us = due_ns > now_ns ? (due_ns - now_ns + 999999) / 1000000 * 1000 : 0;

	if (us >= (uint64_t)most_us || most_us <= SHORT_US)
		return most_us;
	return us > SHORT_US ? (int)us : SHORT_US;
}

/* Idle: the first event wakes us, once that was announced to the processes. */
static int quiet_us(struct pace *pace, const struct pace_limits *limits, uint64_t quiet_ns)
{
	bool announced = pace->sleep == RING_SLEEPS_UNTIL_EVENT;

	pace->sleep = RING_SLEEPS_UNTIL_EVENT;
	if (!announced)
		return limits->gather_us;
	return quiet_ns / 1000 < (uint64_t)limits->longest_us ? (int)(quiet_ns / 1000) : limits->longest_us;
}

/* Until there is a chunk, but at most twice the last sleep, or what no announcement is needed for. */
static int busy_us(const struct pace *pace, const struct drain_result *result, const struct pace_limits *limits,
		   uint64_t now_ns)
{
	int floor_us = limits->young ? YOUNG_US : SHORT_US, us = pace->us < SHORT_US ? SHORT_US : 2 * pace->us;

	us = result->grown > 0 ? max_int(us, UNANNOUNCED_US) : us;
	us = min_int(us, limits->young ? SHORT_US : min_int(limits->longest_us, limits->gather_us));
	us = until_chunk_us(pace, result, now_ns, us);
	return max_int(us, floor_us);
}

/* Woken with little to read yet: more is likely to come. */
static int woken_us(const struct pace *pace)
{
	return pace->sleep == RING_SLEEPS_UNTIL_EVENT ? UNANNOUNCED_US : SHORT_US;
}

int pace_next(struct pace *pace, const struct drain_result *result, const struct pace_limits *limits, uint64_t now_ns)
{
	bool quiet;
	int us;

	if (result->words + result->unread > 0 || result->woken || result->pressed || pace->came_ns == 0)
		pace->came_ns = now_ns;
	quiet = now_ns - pace->came_ns >= QUIET_NS && limits->longest_us > limits->gather_us;
	if (quiet)
		us = quiet_us(pace, limits, now_ns - pace->came_ns);
	else if (result->pressed)
		us = result->words > 0 ? 0 : SHORT_US;
	else if (result->woken)
		us = woken_us(pace);
	else
		us = busy_us(pace, result, limits, now_ns);
	if (!quiet)
		pace->sleep = us > UNANNOUNCED_US ? RING_SLEEPS_UNTIL_FULL : RING_AWAKE;
	pace->us = min_int(us, limits->longest_us);
	pace->looked_ns = now_ns;
	return result->unread ? until_due_us(limits->due_ns, now_ns, pace->us) : pace->us;
}
