/*
 * moments.c - instants and steps of tasks of the HTML report. See moments.h.
 */
#include "html/moments.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTANTS_MAX 100000 /* for exceptions, and again for all others */
#define STEPS_MAX 100000    /* steps of tasks */
#define TASKS_MAX 1000	    /* tasks with a row, and rows of spans */
#define ROWS_OF_SPAN 100    /* of spans of one name in one thread, which overlap */
#define VALUES_MAX 200000   /* of counters */
#define THINNED_MAX 100000  /* stretches */
/* Arguments are cut, and left out when there are very many, so that they do not fill the page. */
#define ARGUMENTS_SHOWN_BYTES 400
#define ARGUMENTS_ALL_BYTES (UINT64_C(16) << 20)

/* The number of the text of a type or a mark; `otherwise` if it has no name. */
static uint64_t name_text(struct html_moments *moments, struct call_walk *walk, uint32_t process, bool mark,
			  uint32_t id)
{
	const struct wire_definition *name = trace_name(mark ? &walk->process->marks : &walk->process->types, id);
	uint64_t key = ((uint64_t)process + 1) << 33 | (uint64_t)mark << 32 | id;
	uint64_t *number = u64_map_make(&moments->instant_texts, key);

	if (!number) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	if (!*number)
		*number = (uint64_t)html_text_add(moments->texts, name	 ? trace_string(name, 1)
								  : mark ? text_of("mark")
									 : text_of("exception")) +
			  1;
	return *number - 1;
}

void html_moments_argument(struct html_moments *moments, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	if (arguments_take(&moments->arguments, head, extra) < 0)
		walk_fail(walk, -ENOMEM);
}

/* The arguments before a span or mark, as a text that the caller frees; NULL: none, or too many. */
static char *take_arguments(struct html_moments *moments, const struct call_walk *walk)
{
	char *text = moments->argument_bytes < ARGUMENTS_ALL_BYTES
			 ? arguments_shown(walk->process, &moments->arguments, ARGUMENTS_SHOWN_BYTES)
			 : NULL;

	moments->argument_bytes += text ? strlen(text) : 0;
	arguments_forget(&moments->arguments);
	return text;
}

/* The number of the text of a mark with arguments. */
static uint64_t mark_text(struct html_moments *moments, struct call_walk *walk, uint32_t id)
{
	struct text name = span_name(walk->process, id);
	char *arguments = take_arguments(moments, walk), *text = NULL;
	uint64_t number = 0;

	if (asprintf(&text, arguments ? "%.*s: %s" : "%.*s", (int)name.length, name.at, arguments) < 0)
		walk_fail(walk, -ENOMEM);
	else
		number = html_text_add(moments->texts, text_of(text));
	free(text);
	free(arguments);
	return number;
}

/* The page's numbers of the kinds that are shown in the timeline; script/report.js has the same list. */
static const uint8_t instants[WIRE_KINDS] = {
    [WIRE_EXCEPTION] = 10,   [WIRE_GAP] = 16,  [WIRE_FORK] = 22, [WIRE_EXEC] = 23,
    [WIRE_EXEC_FAILED] = 24, [WIRE_EXIT] = 25, [WIRE_MARK] = 26, [WIRE_PAUSE] = 27};

void html_moments_event(struct html_moments *moments, struct call_walk *walk, uint32_t process, uint32_t thread,
			uint32_t head, const uint64_t *extra)
{
	unsigned kind = wire_head_kind(head);
	uint64_t row[HTML_INSTANT_COLUMNS] = {thread, (uint64_t)walk->now_ns, instants[kind],
					      wire_argument(head, extra)};

	if (kind == WIRE_GAP)
		arguments_forget(&moments->arguments);
	if (!instants[kind])
		return;
	if (++*(kind == WIRE_EXCEPTION ? &moments->exceptions : &moments->others) > INSTANTS_MAX) {
		moments->instants_left_out++;
		return;
	}
	if (kind == WIRE_GAP)
		row[3] = *extra;
	else if (kind == WIRE_MARK && moments->arguments.count)
		row[3] = mark_text(moments, walk, (uint32_t)row[3]);
	else if (kind == WIRE_EXCEPTION || kind == WIRE_MARK)
		row[3] = name_text(moments, walk, process, kind == WIRE_MARK, (uint32_t)row[3]);
	html_row_put(moments->instants, row, HTML_INSTANT_COLUMNS);
}

/* The number of a task's name + 1; 0: it has no row. */
static uint64_t task_text(struct html_moments *moments, struct call_walk *walk, uint32_t thread,
			  const struct walk_frame *frame)
{
	uint64_t *number = u64_map_make(&moments->task_texts, ((uint64_t)thread + 1) << 32 | frame->task);
	char *name;

	if (number && (*number || moments->tasks >= TASKS_MAX))
		return *number;
	name = number ? walk_task_name(walk, frame) : NULL;
	if (!name) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	moments->tasks++;
	*number = (uint64_t)html_text_add(moments->texts, text_of(name)) + 1;
	free(name);
	return *number;
}

void html_moments_step(struct html_moments *moments, struct call_walk *walk, uint32_t thread,
		       const struct walk_frame *frame)
{
	uint64_t text = moments->step_count < STEPS_MAX ? task_text(moments, walk, thread, frame) : 0;
	const uint64_t row[HTML_STEP_COLUMNS] = {thread, (uint64_t)frame->start_ns,
						 (uint64_t)(walk->now_ns - frame->start_ns), text - 1, 0};

	if (!text) {
		moments->steps_left_out++;
		return;
	}
	moments->step_count++;
	html_row_put(moments->steps, row, HTML_STEP_COLUMNS);
}

/*
 * The row of a span: the first of its thread and name whose last span has ended when it begins, so that no two overlap.
 * Spans come in the order of their ends. 0: there is none, or no memory.
 */
static uint64_t span_row(struct html_moments *moments, const struct call_walk *walk, uint32_t thread,
			 const struct span *span)
{
	uint64_t key = ((uint64_t)thread + 1) << 32 | (span->name & 0xffffff) << 8;

	for (unsigned i = 0; i < ROWS_OF_SPAN; i++, key++) {
		int taken = spans_take_row(&moments->span_ends, key, span, walk->now_ns);

		if (taken)
			return taken > 0 ? key : 0;
	}
	return 0;
}

/* The number of a row's text + 1; 0: there are too many rows. */
static uint64_t span_text(struct html_moments *moments, struct call_walk *walk, const struct span *span, uint64_t row)
{
	uint64_t *number = row ? u64_map_make(&moments->span_texts, row) : NULL;
	struct text name = span_name(walk->process, span->name);
	char *text = NULL;

	if (!number || *number || moments->tasks >= TASKS_MAX)
		return number ? *number : 0;
	if (asprintf(&text, row & 0xff ? "span %.*s #%u" : "span %.*s", (int)name.length, name.at,
		     (unsigned)(row & 0xff) + 1) < 0)
		return 0;
	moments->tasks++;
	*number = (uint64_t)html_text_add(moments->texts, text_of(text)) + 1;
	free(text);
	return *number;
}

struct span *html_moments_begin(struct html_moments *moments, struct spans *spans, struct call_walk *walk,
				const uint64_t *extra)
{
	struct span *span = spans_begin(spans, walk, extra);
	char *text = take_arguments(moments, walk);

	if (span)
		span->text = text;
	else
		free(text);
	return span;
}

void html_moments_span(struct html_moments *moments, struct call_walk *walk, uint32_t thread, const struct span *span)
{
	uint64_t text =
	    moments->step_count < STEPS_MAX ? span_text(moments, walk, span, span_row(moments, walk, thread, span)) : 0;
	uint64_t row[HTML_STEP_COLUMNS] = {thread, (uint64_t)span->start_ns, (uint64_t)(walk->now_ns - span->start_ns),
					   text - 1};

	if (text) {
		if (span->text)
			row[4] = (uint64_t)html_text_add(moments->texts, text_of(span->text)) + 1;
		moments->step_count++;
		html_row_put(moments->steps, row, HTML_STEP_COLUMNS);
	} else {
		moments->steps_left_out++;
	}
	free(span->text);
}

void html_moments_counter(struct html_moments *moments, struct call_walk *walk, uint32_t process, const uint64_t *extra)
{
	const uint64_t row[HTML_COUNTER_COLUMNS] = {process,
						    name_text(moments, walk, process, true, (uint32_t)extra[0]),
						    (uint64_t)walk->now_ns, extra[1] & UINT32_MAX, extra[1] >> 32};

	/* The page draws numbers. */
	if (!isfinite(wire_double(extra[1])))
		return;
	if (moments->values++ < VALUES_MAX)
		html_row_put(moments->counters, row, HTML_COUNTER_COLUMNS);
	else
		moments->values_left_out++;
}

void html_moments_thinned(struct html_moments *moments, struct call_walk *walk, uint32_t thread,
			  const struct walk_thinned *thinned)
{
	char *text = moments->thinned_count < THINNED_MAX ? walk_thinned_text(walk, thinned) : NULL;

	if (text) {
		const uint64_t row[HTML_THINNED_COLUMNS] = {thread, (uint64_t)thinned->since_ns,
							    (uint64_t)(walk->now_ns - thinned->since_ns),
							    html_text_add(moments->texts, text_of(text))};

		html_row_put(moments->thinned, row, HTML_THINNED_COLUMNS);
	} else if (moments->thinned_count < THINNED_MAX) {
		walk_fail(walk, -ENOMEM);
	}
	moments->thinned_count++;
	free(text);
}

void html_moments_done(struct html_moments *moments)
{
	u64_map_done(&moments->instant_texts);
	u64_map_done(&moments->task_texts);
	u64_map_done(&moments->span_texts);
	u64_map_done(&moments->span_ends);
	html_columns_done(moments->instants, HTML_INSTANT_COLUMNS);
	html_columns_done(moments->steps, HTML_STEP_COLUMNS);
	html_columns_done(moments->counters, HTML_COUNTER_COLUMNS);
	html_columns_done(moments->thinned, HTML_THINNED_COLUMNS);
	arguments_done(&moments->arguments);
}
