/*
 * jitter.h - random waits, so that what failed on many hosts at one moment is not tried again at one moment.
 *
 * The state is the caller's, any number: the same state gives the same waits, for simulations. Not thread-safe.
 */
#ifndef EVPROF_TOOLS_UTIL_JITTER_H
#define EVPROF_TOOLS_UTIL_JITTER_H

#include <stdint.h>

/* A state that differs between processes and hosts. */
uint64_t jitter_seed(void);
/* A random number from 0 to below bound; 0 for a bound of 0 or less. */
int64_t jitter_below(uint64_t *state, int64_t bound);
/* From half to one and a half of it. */
int64_t jitter_around(uint64_t *state, int64_t ms);

#endif
