/*
 * version1.h - the events of a trace of version 1 (TRACE_VERSION_1) in the present encoding. Called by events.c only:
 * nothing else in the tools knows the old encoding.
 */
#ifndef EVPROF_TOOLS_TRACE_VERSION1_H
#define EVPROF_TOOLS_TRACE_VERSION1_H

#include <stdint.h>

#include "trace/chunk.h"

/* The extra words of all events. */
uint64_t version1_extra_words(const uint32_t *heads, uint32_t count);

/* Translates the events, into memory of the payload. Returns 0 or -ENOMEM. */
int version1_translate(struct trace_payload *payload, struct trace_events *events);

#endif
