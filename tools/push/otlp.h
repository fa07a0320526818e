/*
 * otlp.h - stacks with their weights as a request of OTLP: ExportProfilesServiceRequest of opentelemetry-proto,
 * profiles/v1development, as the OpenTelemetry Collector 0.165 reads it. For body.c.
 *
 * One request has one resource, the process, and a profile for each weight that is known. All values are those of the
 * interval, but live blocks are those at its end. A profile has an id that no other has, also when the request is sent
 * again: receivers may know duplicates by it.
 */
#ifndef EVPROF_TOOLS_PUSH_OTLP_H
#define EVPROF_TOOLS_PUSH_OTLP_H

#include <stdbool.h>
#include <stdint.h>

#include "export/protobuf.h"
#include "push/counts.h"
#include "push/interval.h"

#define OTLP_DEPTH_MAX 1024		     /* innermost frames of a stack that are sent */
#define OTLP_REQUEST_BYTES ((size_t)4 << 20) /* from there on, the rest goes into another request */

/* Zeroed memory is an empty request. */
struct otlp {
	const struct push_counts *counts;
	/* The tables of the dictionary, and for each weight the samples, as fields of their messages. */
	struct protobuf strings, functions, locations, stacks;
	struct protobuf samples[PUSH_WEIGHTS];
	uint32_t string_count, function_count, location_count, stack_count;
	uint32_t *locations_known; /* by number of stack_functions: location; 0: none yet */
	uint32_t locations_allocated;
};

void otlp_begin(struct otlp *otlp, const struct push_counts *counts);
/* Adds a stack of the process. Returns 0 or -ENOMEM. */
int otlp_add(struct otlp *otlp, uint32_t stack, const struct push_values *values);
/* Whether the request is large enough to be sent. */
bool otlp_is_full(const struct otlp *otlp);
/* Writes the request, and empties it. Returns 0 or -ENOMEM. */
int otlp_finish(struct otlp *otlp, const struct push_interval *interval, struct protobuf *request);
/* Empties the request. */
void otlp_clear(struct otlp *otlp);
void otlp_done(struct otlp *otlp);

#endif
