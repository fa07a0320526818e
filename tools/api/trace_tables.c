/*
 * trace_tables.c - evprof_trace_table(): which tables there are, and that of the events. See api.h.
 */
#include "api/trace_tables.h"

#include <errno.h>
#include <string.h>

#include "api/event_rows.h"

/* A damaged file may promise more events than there can be. */
#define ROWS_BELIEVED (UINT64_C(1) << 27)

static uint64_t expected_rows(const struct trace *trace)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < trace->thread_count; i++)
		for (size_t k = 0; trace->threads[i] && k < trace->threads[i]->place_count; k++)
			events += trace->threads[i]->places[k].events;
	events += events / 16;
	return events < ROWS_BELIEVED ? events : ROWS_BELIEVED;
}

static int fill_events(struct event_rows *rows, struct evprof_trace *handle, struct evprof_table **made)
{
	struct evprof_table *table = event_rows_table(rows);
	struct populate populate;
	int error;

	if (!table)
		return -ENOMEM;
	/* Without this room it grows. */
	table_reserve(table, expected_rows(handle->trace) + UINT64_C(2) * EVENT_ROWS_STEP);
	populate_begin(&populate, table, event_rows_columns(rows));
	/* cppcheck-suppress autoVariables ; until the end of the filling */
	rows->populate = &populate;
	error = event_rows_fill(rows, table, UINT64_MAX);
	rows->populate = NULL;
	populate_end(&populate);
	if (error) {
		table_drop(table);
		return error;
	}
	*made = table;
	return 0;
}

static int table_events(struct evprof_trace *handle, const struct options *options, struct evprof_table **table,
			const struct why *why)
{
	const struct function_names *names = handle_names(handle);
	struct event_rows rows;
	int error;

	(void)why;
	if (!names)
		return -ENOMEM;
	error = event_rows_init(&rows, handle->trace, options, names);
	if (!error)
		error = fill_events(&rows, handle, table);
	event_rows_done(&rows);
	return error;
}

static const struct {
	const char *name;
	make_table *make;
} table_kinds[] = {
    {"events", table_events},
    {"definitions", table_definitions},
    {"calls", table_calls},
    {"functions", table_functions},
    {"lines", table_lines},
    {"memory", table_memory},
    {"tasks", table_tasks},
    {"callers", table_callers},
    {"memory_lines", table_memory_lines},
};

static int make(struct evprof_trace *handle, const char *what, const char *const *pairs, struct evprof_table **table,
		const struct why *why)
{
	struct options options;
	int error = options_parse(&options, pairs, why);
	size_t i = 0;

	while (i < sizeof(table_kinds) / sizeof(table_kinds[0]) && strcmp(table_kinds[i].name, what) != 0)
		i++;
	if (!error && i == sizeof(table_kinds) / sizeof(table_kinds[0]))
		error = why_set(why, -EINVAL, "evprof: \"%s\" is none of the tables", what);
	if (!error)
		error = options_check(&options, handle->trace, why);
	if (!error) {
		handle->trace->clock = options.filter.clock;
		error = table_kinds[i].make(handle, &options, table, why);
	}
	options_done(&options);
	if (!error)
		table_trim(*table);
	return error;
}

int evprof_trace_table(struct evprof_trace *trace, const char *what, const char *const *options,
		       struct evprof_table **table, char *error, size_t error_bytes)
{
	const struct why why = {error, error_bytes};
	struct handle_call call;
	int result;

	if (error_bytes)
		error[0] = 0;
	result = handle_enter(&call, trace, &why);
	if (!result) {
		result = make(trace, what, options, table, &why);
		handle_leave(&call);
	}
	if (result && error_bytes && !error[0])
		why_set(&why, result, "evprof: %s", strerror(-result));
	return result;
}
