/* flush.h - waits until the collector has written what was recorded. */
#ifndef PRELOAD_FLUSH_H
#define PRELOAD_FLUSH_H

#include <stdbool.h>

/*
 * Waits until all that was recorded before the call is in the trace file, within a bound that does not count for
 * EVPROF_ON_FULL. False: it is not. Any thread; errno is kept.
 */
bool flush_trace(void);

#endif
