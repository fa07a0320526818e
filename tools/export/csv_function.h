/*
 * csv_function.h - the options of the table of all events (csv.c), and the columns of a function in it.
 *
 * Fields are quoted after RFC 4180 where necessary. Invalid text and NUL become U+FFFD.
 */
#ifndef EVPROF_TOOLS_EXPORT_CSV_FUNCTION_H
#define EVPROF_TOOLS_EXPORT_CSV_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#include "export/export.h"
#include "trace/reader.h"

/* The columns of a function, made at its first event: ",name,mod,lineno"; for a C function ",name,mod". */
struct csv_function {
	char *bytes;
	size_t length;
	size_t line_at; /* offset of ",lineno" */
};

/*
 * Fills in the columns of the function of a key (replay/replay.h). The caller frees function->bytes. Returns 0 or
 * -ENOMEM, with bytes NULL.
 */
int csv_function_make(struct csv_function *function, const struct export *export, const struct trace_process *process,
		      uint32_t key);

/* Writes a string of a definition as a field; an empty one where there is no definition. */
void csv_put_text(struct output *output, const struct wire_definition *definition, unsigned string);

#endif
