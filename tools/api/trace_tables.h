/*
 * trace_tables.h - the tables that evprof_trace_table() makes.
 */
#ifndef EVPROF_TOOLS_API_TRACE_TABLES_H
#define EVPROF_TOOLS_API_TRACE_TABLES_H

#include "api/handle.h"
#include "api/table.h"

/* A table of the library. make() adds its rows to a new one. Returns 0 or -errno; it may write its reason to why. */
struct table_kind {
	const char *name;
	const struct table_field *fields;
	uint32_t field_count;
	int (*make)(struct request *request, struct evprof_table *table);
};

extern const struct table_kind table_events;	  /* event_rows.c */
extern const struct table_kind table_definitions; /* the functions of all processes, by process number and id */
extern const struct table_kind table_calls, table_tasks;
extern const struct table_kind table_functions, table_memory, table_memory_lines, table_lines; /* functions.c */
extern const struct table_kind table_callers;

#endif
