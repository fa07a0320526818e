/*
 * function_names.h - all functions of a trace as rows of the table of events have them: numbers of names, of files and
 * modules, and lines; and the names of spans, marks and counters.
 *
 * name: co_name, or __qualname__ of a C function. mod: co_filename, or __module__ of a C function. See docs/table.md.
 */
#ifndef EVPROF_TOOLS_API_FUNCTION_NAMES_H
#define EVPROF_TOOLS_API_FUNCTION_NAMES_H

#include <stdint.h>

#include "api/texts.h"
#include "trace/reader.h"

struct function_name {
	int32_t name;
	int32_t mod;
	int32_t line; /* -1: a C function, which has none */
	int32_t unused;
};

/* All zeros: not made. */
struct function_names {
	struct texts *names;
	struct texts *mods;
	struct function_name **of; /* by process number, then by key + 1 (replay.h); 0 is nobody */
	int32_t **marks;	   /* by process number, then by a mark's id, below process->marks.count: its name */
	uint32_t process_count;
	uint32_t unknown;		/* ids without a definition */
	struct function_name shared[2]; /* of those that share a name: a Python function, a C function */
};

/* Returns 0 or -ENOMEM. function_names_done() must follow in both cases. */
int function_names_make(struct function_names *functions, const struct trace *trace);
void function_names_done(struct function_names *functions);

#endif
