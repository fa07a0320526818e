/*
 * series.h - stacks with their weights as profiles in pprof's form, in series with labels: the request that Pyroscope
 * and Parca take. For body.c.
 *
 *   Pyroscope   push.v1.PusherService/Push (api/push/v1/push.proto of grafana/pyroscope), as JSON by Connect:
 *               {"series": [{"labels": [{"name", "value"}], "samples": [{"ID", "rawProfile"}]}]}
 *   Parca       parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw (proto/parca/profilestore of parca-dev/parca),
 *               as JSON by its HTTP gateway: {"normalized": true, "series":
 *               [{"labels": {"labels": [{"name", "value"}]}, "samples": [{"rawProfile"}]}]}
 *
 * A series is named by the label __name__: calls, wall, process_cpu, off_cpu, or memory for the two of allocations and
 * of live blocks. The other labels are the attributes of the process, with "_" for what a label may not have, until
 * there are SERIES_LABELS_MAX. The limits are those that Pyroscope has where nobody sets others.
 */
#ifndef EVPROF_TOOLS_PUSH_SERIES_H
#define EVPROF_TOOLS_PUSH_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "export/protobuf.h"
#include "push/counts.h"
#include "push/interval.h"

#define SERIES 6
#define SERIES_DEPTH_MAX 1000		       /* innermost frames of a stack that are sent */
#define SERIES_STACKS_MAX 16000		       /* from there on, the rest goes into another request ... */
#define SERIES_PROFILE_BYTES ((size_t)3 << 20) /* ... and from so many bytes of a profile, before it is compressed */
#define SERIES_LABELS_MAX 30
#define SERIES_VALUE_BYTES 1024 /* of a label */

/* Zeroed memory is an empty request. */
struct series {
	const struct push_counts *counts;
	struct protobuf names; /* strings, functions and locations, as fields of the message Profile */
	struct protobuf samples[SERIES];
	uint64_t string_count;
	uint32_t stack_count;
	uint8_t *written; /* by number of stack_functions: its location is in `names` */
	uint32_t written_allocated;
};

void series_begin(struct series *series, const struct push_counts *counts);
/* Adds a stack of the process. Returns 0 or -ENOMEM. */
int series_add(struct series *series, uint32_t stack, const struct push_values *values);
/* Whether the request is large enough to be sent. */
bool series_is_full(const struct series *series);
/* Writes the request, and empties it. Returns 0 or -ENOMEM. */
int series_finish(struct series *series, const struct push_interval *interval, bool is_parca, struct protobuf *request);
/* Empties the request. */
void series_clear(struct series *series);
void series_done(struct series *series);

#endif
