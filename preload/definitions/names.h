/* names.h - gives ids to exception types and marks, and finds those of code, all by a hash of the name. */
#ifndef PRELOAD_NAMES_H
#define PRELOAD_NAMES_H

#include <stdint.h>

#include "definitions/define.h"

/* The key of code (definition_key.h). lines: its table of lines, if readers get it, or empty. */
uint64_t names_code_key(const struct wire_definition *record, const struct string strings[WIRE_DEFINITION_STRINGS],
			const struct string *lines);

/* The id of code with this key. 0: it has none, or it was too long ago. */
uint32_t names_code(uint64_t key);
void names_store_code(uint64_t key, uint32_t id);

/* The id of an exception's type. */
uint32_t definitions_type(const void *type);

/*
 * The id of a mark, or of another name that is defined like one. Past WIRE_NAMES_MAX names that of WIRE_NAMES_OTHER; 0:
 * its definition could not be written. No GIL needed.
 */
uint32_t definitions_mark(const char *name);

#endif
