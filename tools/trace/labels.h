/*
 * labels.h - functions as cProfile names them, the same for all processes of all traces.
 *
 * Python functions are (co_filename, co_firstlineno, co_name), C functions ('~', 0, text). Used by the profile and by
 * what prints names.
 */
#ifndef EVPROF_TOOLS_TRACE_LABELS_H
#define EVPROF_TOOLS_TRACE_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"
#include "util/output.h"
#include "util/text.h"

struct label {
	struct text file;
	struct text name;
	uint32_t line;
	char *bytes; /* of both, if the label owns them */
};

/* A set of labels; each has a number, counted from 0. */
struct labels {
	struct label *at;
	uint32_t count;
	uint32_t allocated;
	uint32_t *slots; /* hash table of numbers + 1; its size is slot_mask + 1 */
	uint32_t slot_mask;
};

/* The text of a C function, as cProfile has it: "<built-in method builtins.len>". Returns NULL where memory ran out. */
char *label_native(const struct wire_definition *definition);

/*
 * What viewers show for a function: the qualified name, "str.join", "builtins.len", or "<unknown function 7>". The
 * caller frees it; NULL where memory ran out. Any bytes but NUL.
 */
char *label_display(const struct wire_definition *definition, bool native, uint32_t id);

/*
 * The number of the label of code id, or of C function id if native, made if it is new; UINT32_MAX where memory ran
 * out. An id without definition has the file "?".
 */
uint32_t labels_find(struct labels *labels, const struct trace_process *process, uint32_t id, bool native);
/* The same for a label made elsewhere, whose texts are copied. */
uint32_t labels_add(struct labels *labels, const struct label *label);
void labels_done(struct labels *labels);

/* "file:line(name)", or "{name}" for C functions, as pstats writes them. */
void label_print(const struct label *label, struct output *output);
/* Orders by that text. */
int label_compare(const struct label *a, const struct label *b);

#endif
