/*
 * moments.c - instants and steps of tasks of the HTML report. See moments.h.
 */
#include "html/moments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define INSTANTS_MAX 100000 /* for exceptions, and again for all others */
#define STEPS_MAX 100000    /* steps of tasks */
#define TASKS_MAX 1000	    /* tasks with a row, and rows of spans */
#define ROWS_OF_SPAN 100    /* of spans of one name in one thread, which overlap */

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

	if (!instants[kind])
		return;
	if (++*(kind == WIRE_EXCEPTION ? &moments->exceptions : &moments->others) > INSTANTS_MAX) {
		moments->instants_left_out++;
		return;
	}
	if (kind == WIRE_GAP)
		row[3] = *extra;
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
						 (uint64_t)(walk->now_ns - frame->start_ns), text - 1};

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
		uint64_t *end = u64_map_make(&moments->span_ends, key);

		if (!end)
			return 0;
		if (*end > (uint64_t)span->start_ns + 1)
			continue;
		*end = (uint64_t)walk->now_ns + 1;
		return key;
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

void html_moments_span(struct html_moments *moments, struct call_walk *walk, uint32_t thread, const struct span *span)
{
	uint64_t text =
	    moments->step_count < STEPS_MAX ? span_text(moments, walk, span, span_row(moments, walk, thread, span)) : 0;
	const uint64_t row[HTML_STEP_COLUMNS] = {thread, (uint64_t)span->start_ns,
						 (uint64_t)(walk->now_ns - span->start_ns), text - 1};

	if (!text) {
		moments->steps_left_out++;
		return;
	}
	moments->step_count++;
	html_row_put(moments->steps, row, HTML_STEP_COLUMNS);
}

void html_moments_done(struct html_moments *moments)
{
	u64_map_done(&moments->instant_texts);
	u64_map_done(&moments->task_texts);
	u64_map_done(&moments->span_texts);
	u64_map_done(&moments->span_ends);
	html_columns_done(moments->instants, HTML_INSTANT_COLUMNS);
	html_columns_done(moments->steps, HTML_STEP_COLUMNS);
}
