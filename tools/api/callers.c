/*
 * callers.c - the table of the callers of a function. See trace_tables.h.
 *
 * callers: a row for each Python function that calls one that the option function (MODULE:FUNCTION) matches: file,
 * line, name (cProfile's), calls. C functions between the two are skipped. A call without a caller has the file "" and
 * line 0. Calls are those of evprof check.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/function_match.h"
#include "api/trace_tables.h"
#include "replay/call_walk.h"
#include "trace/labels.h"

static const struct table_field caller_fields[] = {TABLE_PLACE_FIELDS, {"calls", TABLE_INT64, false}};

/* invariant: row i of the table is label i */
struct callers {
	struct evprof_table *table;
	struct function_match match;
	uint8_t *matches; /* by key of the process */
	struct labels labels;
};

static int callers_process(void *owner, struct call_walk *walk)
{
	struct callers *callers = owner;

	free(callers->matches);
	callers->matches = calloc(walk_keys(walk), sizeof(*callers->matches));
	if (!callers->matches)
		return -ENOMEM;
	for (uint32_t key = 0; key < walk_keys(walk); key++) {
		const struct wire_definition *definition = walk_definition(walk, key);

		callers->matches[key] = definition && function_match_takes(&callers->match, definition, key & 1);
	}
	return callers->match.out_of_memory ? -ENOMEM : 0;
}

/* The number of the label of the nearest Python function below. UINT32_MAX: no memory. */
static uint32_t find_caller(struct callers *callers, const struct call_walk *walk, const struct walk_frame *frame)
{
	while (frame > walk->frames)
		if (!((--frame)->key & 1))
			return labels_find(&callers->labels, walk->process, frame->key / 2, false);
	return labels_add(&callers->labels, &(struct label){.file = text_of("")});
}

/* Adds the row of a new label. */
static int add_row(struct callers *callers, uint32_t number)
{
	const struct label *label = &callers->labels.at[number];

	if (number < callers->table->rows)
		return 0;
	if (table_begin_row(callers->table, label->file, label->line, label->name) < 0)
		return -ENOMEM;
	table_end_row(callers->table, TABLE_PLACE_COLUMNS, NULL, 0);
	return 0;
}

static void callers_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct callers *callers = owner;
	uint32_t number;

	if (!callers->matches[frame->key] || frame->kind == WIRE_FRAME)
		return;
	number = find_caller(callers, walk, frame);
	if (number == UINT32_MAX || add_row(callers, number) < 0)
		walk_fail(walk, -ENOMEM);
	else
		table_int64(callers->table, TABLE_PLACE_COLUMNS)[number]++;
}

static int make_callers(struct request *request, struct evprof_table *table)
{
	static const struct call_visitor visitor = {.process = callers_process, .push = callers_push};
	struct callers callers = {.table = table};
	const char *function = request->options.function ? request->options.function : "";
	int error = function_match_parse(&callers.match, function, strlen(function));

	if (error == -EINVAL)
		return why_set(&request->why, error, "evprof: function is MODULE:FUNCTION, not \"%s\"", function);
	if (!error)
		error = walk_trace(request->trace, &request->options.filter, &request->progress, &visitor, &callers);
	free(callers.matches);
	labels_done(&callers.labels);
	function_match_done(&callers.match);
	return error;
}

const struct table_kind table_callers = {"callers", caller_fields, TABLE_PLACE_COLUMNS + 1, make_callers};
