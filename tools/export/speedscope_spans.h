/*
 * speedscope_spans.h - the spans of a trace as profiles of speedscope: for speedscope.c only.
 *
 * A profile of speedscope is a stack over time, so it holds spans that are nested. Spans of a thread that overlap
 * otherwise, such as those of tasks, are in further profiles. Memory: 40 bytes for each span of the trace.
 */
#ifndef EVPROF_TOOLS_EXPORT_SPEEDSCOPE_SPANS_H
#define EVPROF_TOOLS_EXPORT_SPEEDSCOPE_SPANS_H

#include "replay/call_walk.h"
#include "replay/spans.h"
#include "util/output.h"
#include "util/u64_map.h"

/* Profiles of a thread. Spans that would need more are in layer SPEEDSCOPE_LAYERS and are only counted. */
#define SPEEDSCOPE_LAYERS 1000u

struct closed_span {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t thread; /* number; where it began */
	uint32_t name;	 /* index of names */
	uint32_t layer;	 /* profile of the thread */
	uint32_t depth;	 /* of the spans around it in its layer */
};

/* All zeros: empty. open.in_turn must be set. */
struct speedscope_spans {
	struct spans open; /* of the current process */
	struct closed_span *at;
	size_t count, allocated;
	struct span_frame {
		struct text name; /* of the trace's memory */
		bool unfinished;
	} * names;
	uint32_t name_count;
	size_t names_allocated;
	struct u64_map name_numbers; /* process, mark's id, whether it is unfinished: index + 1 */
};

/* Takes WIRE_SPAN_BEGIN and WIRE_SPAN_END; other events are ignored. Without memory it fails the walk. */
void speedscope_spans_event(struct speedscope_spans *spans, struct call_walk *walk, uint32_t head,
			    const uint64_t *extra);
/* At the end of each process: spans without an end last until then. */
void speedscope_spans_process_end(struct speedscope_spans *spans, struct call_walk *walk);
/* Sorts the spans by thread and layer, then time. To be called after the walk, before the profiles are written. */
int speedscope_spans_layout(struct speedscope_spans *spans);
void speedscope_spans_done(struct speedscope_spans *spans);

#endif
