/*
 * allocations.h - what the tests of native allocations share: the blocks in a trace.
 */
#ifndef EVPROF_E2E_ALLOCATIONS_H
#define EVPROF_E2E_ALLOCATIONS_H

#include <stddef.h>

#include "harness.h"

#define MALLOC_EVENTS "EVPROF_EVENTS=mem,malloc"

/* Skips the running test with the sanitizers' builds, which bring an allocator of their own, which comes first. */
void needs_own_malloc(void);

/* How many blocks of that size were allocated in the domain, or in any (NULL). */
size_t events_of_size(const struct outcome *outcome, unsigned long long size, const char *domain);
/* Each "made SIZE TIMES" that the program wrote is true of the trace. Returns how many there are. */
unsigned expect_made(const struct outcome *outcome);

/* The only process of evprof memory --json, with more options (NULL: none); a new reference. */
json_t *memory_process(const struct outcome *outcome, const char *by);
/* What stands in the row of a function and a line (0: of any), 0 where there is none. */
long long memory_site(const json_t *process, const char *function, const char *column);

#endif
