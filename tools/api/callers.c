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

#define CALLS_COLUMN 3

static const struct table_field caller_fields[] = {{"file", TABLE_INT32, true},
						   {"line", TABLE_INT32, false},
						   {"name", TABLE_INT32, true},
						   [CALLS_COLUMN] = {"calls", TABLE_INT64, false}};

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

static int add_row(struct evprof_table *table, const struct label *label)
{
	if (table_reserve_one(table) < 0 || !table_put_text(table, 0, label->file) ||
	    !table_put_text(table, 2, label->name))
		return -ENOMEM;
	table_int32(table, 1)[table->rows++] = (int32_t)(label->line & INT32_MAX);
	return 0;
}

static void callers_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct callers *callers = owner;
	uint32_t number;

	if (!callers->matches[frame->key] || frame->kind == WIRE_FRAME)
		return;
	number = find_caller(callers, walk, frame);
	if (number == UINT32_MAX ||
	    (number == callers->table->rows && add_row(callers->table, &callers->labels.at[number]) < 0))
		walk_fail(walk, -ENOMEM);
	else
		table_int64(callers->table, CALLS_COLUMN)[number]++;
}

int table_callers(struct evprof_trace *handle, const struct options *options, struct evprof_table **made,
		  const struct why *why)
{
	static const struct call_visitor visitor = {.process = callers_process, .push = callers_push};
	struct callers callers = {0};
	struct progress progress = {0};
	const char *function = options->function ? options->function : "";
	int error = function_match_parse(&callers.match, function, strlen(function));

	if (error == -EINVAL)
		return why_set(why, error, "evprof: function is MODULE:FUNCTION, not \"%s\"", function);
	if (!error &&
	    !(callers.table = table_new(caller_fields, sizeof(caller_fields) / sizeof(caller_fields[0]), NULL)))
		error = -ENOMEM;
	if (!error)
		error = walk_trace(handle->trace, &options->filter, &progress, &visitor, &callers);
	free(callers.matches);
	labels_done(&callers.labels);
	function_match_done(&callers.match);
	if (error)
		table_drop(callers.table);
	else
		*made = callers.table;
	return error;
}
