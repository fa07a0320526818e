/*
 * clock.h - the clocks of targets, and calibration records that tie them to the system's.
 */
#ifndef COLLECTOR_CLOCK_H
#define COLLECTOR_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/trace.h"

/* CLOCK_MONOTONIC in ns: what all waiting in the collector is measured by. */
uint64_t clock_now_ns(void);

/* CLOCK_REALTIME in ns. */
uint64_t clock_realtime_ns(void);

/* Whether this machine has the clock (enum ring_clock). */
bool clock_known(uint32_t kind);

/* The clock's value now, unshifted. kind must be known. */
uint64_t clock_ticks(uint32_t kind);

/* The same moment on all clocks: the tightest of several tries. */
void clock_calibrate(uint32_t kind, uint32_t shift, struct trace_clock *record);

#endif
