/*
 * outputs.c - texts that exporters of the tool write. See trace_texts.h.
 */
#include <errno.h>
#include <string.h>

#include "api/trace_texts.h"
#include "export/export.h"

int text_folded(struct evprof_trace *handle, const struct options *options, struct output *output,
		const struct why *why)
{
	static const char *const weights[] = {"time", "bytes", "allocations", "live", "peak", "temporary"};
	struct export export = {.trace = handle->trace, .filter = &options->filter};
	struct progress progress = {0};
	bool known = !options->weight;
	int error;

	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]) && !known; i++)
		known = strcmp(options->weight, weights[i]) == 0;
	if (!known)
		return why_set(why, -EINVAL,
			       "evprof: weight is time, bytes, allocations, live, peak or temporary, not \"%s\"",
			       options->weight);
	if (options->weight && !export_folded_options[0].take(&export, options->weight))
		return -ENOMEM;
	if (export.by_order && options->filter.clock != CPU_CLOCK_WALL)
		error = why_set(why, -EINVAL, "evprof: weights live and peak exclude clock");
	else
		error = export_folded(&export, output, &progress);
	return error;
}

int text_html(struct evprof_trace *handle, const struct options *options, struct output *output, const struct why *why)
{
	const struct export export = {.trace = handle->trace, .filter = &options->filter};
	struct progress progress = {0};

	if (options->filter.clock != CPU_CLOCK_WALL)
		return why_set(why, -EINVAL, "evprof: the page has a time line, which excludes clock");
	return export_html(&export, output, &progress);
}
