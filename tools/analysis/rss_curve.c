/*
 * rss_curve.c - see rss_curve.h.
 */
#include "analysis/rss_curve.h"

void rss_curve(const struct trace *trace, const struct trace_process *process, const struct filter *filter,
	       void (*sample)(void *owner, const struct rss_point *point), void *owner)
{
	for (uint32_t i = 0; i < process->resident_count; i++) {
		const struct trace_resident *read = &process->resident[i];
		const struct rss_point point = {
		    .ns = trace_ns(process, read->ticks) - trace->start_ns,
		    .bytes = read->anonymous + read->file + read->shared,
		    .anonymous = read->anonymous,
		    .file = read->file,
		    .shared = read->shared,
		};

		if (point.ns >= filter_from(filter) && point.ns < filter_to(filter))
			sample(owner, &point);
	}
}
