/*
 * moments.h - the instants of the HTML report's timeline (exceptions, marks, lost events, forks...), the steps of
 * tasks, spans, the values of counters, and the stretches in which functions were thinned (EVPROF_BUDGET).
 *
 * Used by export_html.c in its second walk. Their number is limited, for any trace; what is beyond it is counted.
 */
#ifndef EVPROF_TOOLS_HTML_MOMENTS_H
#define EVPROF_TOOLS_HTML_MOMENTS_H

#include "html/pack.h"
#include "replay/call_walk.h"
#include "replay/spans.h"
#include "trace/arguments.h"
#include "util/u64_map.h"

enum { HTML_INSTANT_COLUMNS = 4, HTML_STEP_COLUMNS = 5, HTML_COUNTER_COLUMNS = 5, HTML_THINNED_COLUMNS = 4 };

/* All zeros but texts, which it does not own: empty. */
struct html_moments {
	struct html_texts *texts;
	struct html_column instants[HTML_INSTANT_COLUMNS]; /* thread, time, kind, number or text */
	struct u64_map instant_texts;			   /* type or mark of a process: number of its text + 1 */
	uint64_t exceptions, others, instants_left_out;
	struct html_column steps[HTML_STEP_COLUMNS]; /* thread, begin, length, text, text of the arguments + 1 */
	/* process, text, time, low and high half of the value, a double */
	struct html_column counters[HTML_COUNTER_COLUMNS];
	/* stretches in which functions were thinned: thread, begin, length, text */
	struct html_column thinned[HTML_THINNED_COLUMNS];
	uint64_t thinned_count;
	struct arguments arguments; /* of the thread's next span or mark */
	uint64_t argument_bytes, values, values_left_out;
	struct u64_map task_texts; /* thread + 1 << 32 | task: number of its name + 1; 0: the task has no row */
	struct u64_map span_texts; /* thread, name and row of spans: number of the text + 1; 0: it has no row */
	struct u64_map span_ends;  /* likewise: end of the row's last span + 1 */
	uint32_t tasks;
	uint64_t step_count, steps_left_out;
};

/* Adds the event of the walk, if the timeline shows its kind. Without memory it fails the walk. */
void html_moments_event(struct html_moments *moments, struct call_walk *walk, uint32_t process, uint32_t thread,
			uint32_t head, const uint64_t *extra);
/* Adds a call that is a step of a task, at its end. Without memory it fails the walk. */
void html_moments_step(struct html_moments *moments, struct call_walk *walk, uint32_t thread,
		       const struct walk_frame *frame);
/* Adds a span at its end, in a row of its name, and frees its text. Without memory it fails the walk. */
void html_moments_span(struct html_moments *moments, struct call_walk *walk, uint32_t thread, const struct span *span);
/* Adds a stretch at its end. Without memory it fails the walk. */
void html_moments_thinned(struct html_moments *moments, struct call_walk *walk, uint32_t thread,
			  const struct walk_thinned *thinned);
/* Takes a WIRE_ARGUMENT. */
void html_moments_argument(struct html_moments *moments, struct call_walk *walk, uint32_t head, const uint64_t *extra);
/* Begins a span, with the arguments before it. Without memory it fails the walk. */
struct span *html_moments_begin(struct html_moments *moments, struct spans *spans, struct call_walk *walk,
				const uint64_t *extra);
/* Adds a value of a counter. */
void html_moments_counter(struct html_moments *moments, struct call_walk *walk, uint32_t process,
			  const uint64_t *extra);
void html_moments_done(struct html_moments *moments);

#endif
