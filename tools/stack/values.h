/*
 * values.h - plain values of Python's objects in another process as text, without running anything there.
 *
 * None, bool, int, float, str and bytes have the text of repr(), cut if it is long. Containers have their type and
 * length, other objects their type only: repr() of these would run the program's code.
 */
#ifndef EVPROF_TOOLS_STACK_VALUES_H
#define EVPROF_TOOLS_STACK_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/layout.h"

#define VALUE_TEXT_BYTES 512
#define VALUE_TYPE_BYTES 64

struct value {
	char type[VALUE_TYPE_BYTES];
	bool plain;		     /* it has a text */
	bool is_str;		     /* the text is that of the str itself, of bytes; else as repr() */
	bool cut;		     /* the text is its beginning */
	char text[VALUE_TEXT_BYTES]; /* UTF-8, NUL-terminated */
	size_t bytes;		     /* of the text: a str may have NULs */
	int64_t length;		     /* of a container, a str and bytes; -1: it has none */
};

/* False: there is no object, or it cannot be read. */
bool value_read(const struct layout *layout, struct process *process, uint64_t object, struct value *value);

#endif
