/* clock.h - the time now. */
#ifndef EVPROF_TOOLS_UTIL_CLOCK_H
#define EVPROF_TOOLS_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t time_ms(clockid_t clock)
{
	return time_ns(clock) / 1000000;
}

#endif
