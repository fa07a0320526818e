/*
 * trace_texts.h - the texts that evprof_trace_text() makes, one function each.
 *
 * Each writes to output, which is in memory, and returns 0 or -errno. It may write its reason to why. It runs within a
 * call (handle.h), with options that fit the trace.
 */
#ifndef EVPROF_TOOLS_API_TRACE_TEXTS_H
#define EVPROF_TOOLS_API_TRACE_TEXTS_H

#include "api/handle.h"
#include "api/options.h"
#include "util/output.h"

typedef int make_text(struct evprof_trace *handle, const struct options *options, struct output *output,
		      const struct why *why);

/* JSON: times, processes, threads; counts of events where the trace has them. */
make_text text_info;
/* The same, with events counted where the trace does not have their number. */
make_text text_counted_info;
/* The outputs of evprof export (outputs.c). */
make_text text_folded;
make_text text_html;
/* Writes files; the text is their paths (cuts.c). */
make_text text_cut;

#endif
