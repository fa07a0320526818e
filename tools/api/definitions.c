/*
 * definitions.c - the table of functions as the trace defines them. See trace_tables.h.
 *
 *   process      its number in the trace
 *   c_function   1: of C, 0: of Python
 *   id           from 1, in the process
 *   file         co_filename; of a C function the class that it is a method of, as tp_name, or ""
 *   name         co_name, or __name__
 *   qualname     co_qualname, "" where the version of Python has none
 *   module       __name__ of the module
 *   line         co_firstlineno; 0 of a C function
 */
#include <errno.h>

#include "api/trace_tables.h"

enum { PROCESS, C_FUNCTION, ID, FILE_NAME, NAME, QUALNAME, MODULE, LINE, COLUMNS };

static const struct table_field fields[COLUMNS] = {
    [PROCESS] = {"process", TABLE_INT32, false}, [C_FUNCTION] = {"c_function", TABLE_INT8, false},
    [ID] = {"id", TABLE_INT32, false},		 [FILE_NAME] = {"file", TABLE_INT32, true},
    [NAME] = {"name", TABLE_INT32, true},	 [QUALNAME] = {"qualname", TABLE_INT32, true},
    [MODULE] = {"module", TABLE_INT32, true},	 [LINE] = {"line", TABLE_INT32, false},
};

static int put_definition(struct evprof_table *table, const struct trace_process *process, bool c_function, uint32_t id)
{
	const struct wire_definition *definition = trace_name(c_function ? &process->functions : &process->codes, id);
	uint64_t row = table->rows;

	if (!definition)
		return 0;
	if (table_reserve_one(table) < 0)
		return -ENOMEM;
	table_int32(table, PROCESS)[row] = (int32_t)process->number;
	((int8_t *)table->columns[C_FUNCTION].data)[row] = c_function;
	table_int32(table, ID)[row] = (int32_t)id;
	table_int32(table, LINE)[row] = c_function ? 0 : (int32_t)(definition->number & INT32_MAX);
	for (uint32_t column = FILE_NAME; column <= MODULE; column++)
		if (!table_put_text(table, column, trace_string(definition, column - FILE_NAME)))
			return -ENOMEM;
	table->rows++;
	return 0;
}

static int put_process(struct evprof_table *table, const struct trace_process *process)
{
	int error = 0;
	uint32_t id;

	for (id = 1; id < process->codes.count && !error; id++)
		error = put_definition(table, process, false, id);
	for (id = 1; id < process->functions.count && !error; id++)
		error = put_definition(table, process, true, id);
	return error;
}

static int make_definitions(struct request *request, struct evprof_table *table)
{
	int error = 0;

	for (uint32_t i = 0; i < request->trace->process_count && !error; i++)
		if (request->trace->processes[i])
			error = put_process(table, request->trace->processes[i]);
	return error;
}

const struct table_kind table_definitions = {"definitions", fields, COLUMNS, make_definitions};
