/*
 * interval.h - what a request says of a process besides its stacks: its attributes, and when the interval was. For the
 * encoders, otlp.c and series.c.
 */
#ifndef EVPROF_TOOLS_PUSH_INTERVAL_H
#define EVPROF_TOOLS_PUSH_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/counts.h"

#define PUSH_ID_BYTES 16

/* An attribute of a process, by OpenTelemetry's conventions. */
struct push_attribute {
	char *key;
	char *value; /* any bytes, 0-terminated; NULL: it is a number */
	int64_t number;
};

/* Zeroed memory has no attributes. */
struct push_resource {
	struct push_attribute *at;
	size_t count, allocated;
	int error; /* 0 or -ENOMEM; callers add on, and check at the end */
};

void push_resource_text(struct push_resource *resource, const char *key, const char *value);
void push_resource_number(struct push_resource *resource, const char *key, int64_t number);
void push_resource_done(struct push_resource *resource);

struct push_interval {
	uint64_t begin_ns; /* since 1970 */
	uint64_t length_ns;
	bool known[PUSH_WEIGHTS];
	const struct push_resource *resource;
	uint64_t id[2]; /* of what is pushed of the process in this interval; the last byte is the encoder's */
};

/* The type and unit of a weight: the names of pprof's profiles of Go and of OpenTelemetry's profilers. */
extern const char *const push_types[PUSH_WEIGHTS][2];

/* Live blocks are those at the interval's end; all else is of its length. */
static inline bool push_is_live(unsigned weight)
{
	return weight == PUSH_LIVE_BLOCKS || weight == PUSH_LIVE_BYTES;
}

/* The id with that last byte. */
void push_interval_id(const struct push_interval *interval, uint8_t last, uint8_t id[PUSH_ID_BYTES]);

#endif
