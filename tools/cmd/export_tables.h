/*
 * export_tables.h - evprof export --format parquet and arrow, which the Python package writes (evprof.tables), on
 * pyarrow.
 */
#ifndef EVPROF_TOOLS_CMD_EXPORT_TABLES_H
#define EVPROF_TOOLS_CMD_EXPORT_TABLES_H

#include <stdbool.h>

/* The command line, whose options are known to be the verb's. */
struct export_tables {
	const char *format;
	const char *python; /* NULL: python3 */
	int count;	    /* arguments after the name of the verb */
	char *const *arguments;
};

bool export_tables_has(const char *format);
/* Becomes the exporter. Returns only on failure, after a line on stderr: the exit status. */
int export_tables_run(const struct export_tables *tables);

#endif
