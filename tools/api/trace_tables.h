/*
 * trace_tables.h - the tables that evprof_trace_table() makes, one function each.
 *
 * Each returns 0 or -errno. It may write its reason to why. It runs within a call (handle.h), with options that fit the
 * trace.
 */
#ifndef EVPROF_TOOLS_API_TRACE_TABLES_H
#define EVPROF_TOOLS_API_TRACE_TABLES_H

#include "api/handle.h"
#include "api/options.h"
#include "api/table.h"

typedef int make_table(struct evprof_trace *handle, const struct options *options, struct evprof_table **table,
		       const struct why *why);

/* The functions of all processes, by process number and id. */
make_table table_definitions;
/* calls.c */
make_table table_calls;
make_table table_tasks;
/* functions.c */
make_table table_functions;
make_table table_memory;
make_table table_memory_lines;
make_table table_lines;
/* callers.c */
make_table table_callers;

#endif
