/* clock.h - the clocks of targets, and clock records that relate them to the system's. */
#ifndef COLLECTOR_CLOCK_H
#define COLLECTOR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/trace.h"

/* CLOCK_MONOTONIC in ns, without the offset of our time namespace. All waiting in the collector uses it. */
uint64_t clock_now_ns(void);

/* CLOCK_REALTIME in ns. */
uint64_t clock_realtime_ns(void);

/* Whether this machine has the clock (enum ring_clock). */
bool clock_known(uint32_t kind);

/* The current value of the clock, unshifted. kind must be known. */
uint64_t clock_ticks(uint32_t kind);

/* Reads the same moment on all clocks: the tightest of several tries. */
void clock_calibrate(uint32_t kind, uint32_t shift, struct trace_clock *record);

#endif
