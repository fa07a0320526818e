/*
 * trace_texts.h - the texts that evprof_trace_text() makes, one function each.
 *
 * Each writes to output, which is in memory, and returns 0 or -errno. It may write its reason to why.
 */
#ifndef EVPROF_TOOLS_API_TRACE_TEXTS_H
#define EVPROF_TOOLS_API_TRACE_TEXTS_H

#include "api/handle.h"
#include "util/output.h"

typedef int make_text(struct request *request, struct output *output);

/* JSON: times, processes, threads; counts of events where the trace has them. */
make_text text_info;
/*
 * The same, with events counted where the trace does not have their number. The whole file is read and checked, so that
 * "damage" has all of it from then on.
 */
make_text text_counted_info;
/* Writes files; the text is their paths (cuts.c). */
make_text text_cut;

#endif
