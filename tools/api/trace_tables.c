/*
 * trace_tables.c - evprof_trace_table(): which tables there are. See api.h.
 */
#include "api/trace_tables.h"

#include <errno.h>
#include <string.h>

static const struct table_kind *const table_kinds[] = {&table_events,	 &table_definitions, &table_calls,
						       &table_functions, &table_lines,	     &table_memory,
						       &table_tasks,	 &table_callers,     &table_memory_lines};

static int make(struct request *request, const char *what, struct evprof_table **made)
{
	size_t i = 0, count = sizeof(table_kinds) / sizeof(table_kinds[0]);
	struct evprof_table *table;
	int error;

	while (i < count && strcmp(table_kinds[i]->name, what) != 0)
		i++;
	if (i == count)
		return why_set(&request->why, -EINVAL, "evprof: \"%s\" is none of the tables", what);
	table = table_new(table_kinds[i]->fields, table_kinds[i]->field_count);
	error = table ? table_kinds[i]->make(request, table) : -ENOMEM;
	if (error) {
		table_drop(table);
		return error;
	}
	table_trim(table);
	*made = table;
	return 0;
}

int evprof_trace_table(struct evprof_trace *trace, const char *what, const char *const *options,
		       struct evprof_table **table, char *error, size_t error_bytes)
{
	struct request request;
	int result = request_begin(&request, trace, options, error, error_bytes);

	return request_end(&request, result ? result : make(&request, what, table));
}
