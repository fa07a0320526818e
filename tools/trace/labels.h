/*
 * labels.h - labels: the names of functions as cProfile writes them, shared by all processes of all traces.
 *
 * The label of a Python function is (co_filename, co_firstlineno, co_name); that of a C function is ('~', 0, text).
 * Used by the profile and by everything that prints names.
 */
#ifndef EVPROF_TOOLS_TRACE_LABELS_H
#define EVPROF_TOOLS_TRACE_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"
#include "util/output.h"
#include "util/text.h"
#include "util/u64_map.h"

struct label {
	struct text file;
	struct text name;
	uint32_t line;
	struct text display; /* label_display() of the first function with this label; empty: not known */
	char *bytes;	     /* holds the texts if the label owns them */
};

/* A set of labels, numbered from 0. */
struct labels {
	struct label *at;
	uint32_t count;
	size_t allocated;
	struct u64_map numbers; /* by hash: number + 1 */
};

/* The text of a C function as in cProfile: "<built-in method builtins.len>". NULL if memory ran out. */
char *label_c_function(const struct wire_definition *definition);

/*
 * The name that viewers show for a function: the qualified name, "str.join", "builtins.len", or "<unknown function 7>".
 * The caller frees it; NULL if memory ran out. May contain any byte but NUL.
 */
char *label_display(const struct wire_definition *definition, bool c_function, uint32_t id);

/*
 * The number of the label of code id, or of C function id if c_function. A new label is added. UINT32_MAX: no memory.
 * An id without a definition has the file "?".
 */
uint32_t labels_find(struct labels *labels, const struct trace_process *process, uint32_t id, bool c_function);
/* The same for a given label. Copies its texts. */
uint32_t labels_add(struct labels *labels, const struct label *label);
void labels_done(struct labels *labels);

/* The __qualname__ of a C function, of a definition's texts or in room. */
#define LABEL_QUALNAME_BYTES (2 * WIRE_STRING_MAX_BYTES + 64)
struct text label_qualname(const struct wire_definition *definition, char room[LABEL_QUALNAME_BYTES]);

/*
 * The module of a function as a label. For Python: its file, with line 0 and no name. For C functions: the class or
 * else the module as the name, as in "<builtins>", with the file "~". The texts are those of the definition, except the
 * name of C functions, which is written to `room`. NULL definition: "?".
 */
#define LABEL_MODULE_BYTES (WIRE_STRING_MAX_BYTES + 2)
struct label label_module(const struct wire_definition *definition, bool c_function, char room[LABEL_MODULE_BYTES]);

/* Prints "file:line(name)", or "{name}" for C functions, as pstats does. */
void label_print(const struct label *label, struct output *output);
/* Compares in the order of that text. */
int label_compare(const struct label *a, const struct label *b);

#endif
