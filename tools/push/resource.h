/*
 * resource.h - the attributes of a recorded process, by OpenTelemetry's conventions for service, host, process
 * and container. For follow.c.
 *
 *   OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME   of the process, from /proc/PID/environ, while it runs and may be read
 *   service.name    OTEL_SERVICE_NAME, or that of the attributes, or unknown_service:PROGRAM
 *   host.name, process.*                          from the trace
 *   container.id, k8s.pod.uid                     from /proc/PID/cgroup
 *   evprof.memory.interval_bytes, evprof.budget   what the profiles are not exact by: sampled allocations, a budget
 *
 * An attribute that OTEL_RESOURCE_ATTRIBUTES has is not replaced.
 */
#ifndef EVPROF_TOOLS_PUSH_RESOURCE_H
#define EVPROF_TOOLS_PUSH_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "push/interval.h"
#include "trace/reader.h"

/* Adds the attributes. Errors are in resource->error. */
void resource_put(struct push_resource *resource, const struct trace_process *process);

/* --- for the unit tests --- */

/*
 * environ: the variables as /proc/PID/environ has them; cgroup: the lines of /proc/PID/cgroup. Both may be "", and
 * length is that of environ.
 */
struct resource_source {
	const struct trace_process *process;
	const char *environ, *cgroup;
	size_t length;
};
void resource_put_from(struct push_resource *resource, const struct resource_source *source);

#endif
