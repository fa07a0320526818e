/*
 * objects.h - attributes of Python's objects in another process, without running anything there.
 *
 * Only what is in the object's own dict is found: no descriptors, no classes.
 */
#ifndef EVPROF_TOOLS_STACK_OBJECTS_H
#define EVPROF_TOOLS_STACK_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/layout.h"

/* The type of an object; 0: it cannot be read. */
uint64_t object_type(const struct layout *layout, struct process *process, uint64_t object);

/* Reads the name of a type, NUL-terminated, cut if it does not fit. False: it cannot be read. */
bool object_type_name(const struct layout *layout, struct process *process, uint64_t type, char *name, size_t bytes);

/* Reads the value of a name in the object's dict: its address. False: it has no such name, or cannot be read. */
bool object_attribute(const struct layout *layout, struct process *process, uint64_t object, const char *name,
		      uint64_t *value);

/* Likewise, in a dict. Only its first entries are searched, some thousands. */
bool object_item(const struct layout *layout, struct process *process, uint64_t dict, const char *name,
		 uint64_t *value);

/* Reads a str, NUL-terminated UTF-8, cut if it does not fit. False: it is no str, or cannot be read. */
bool object_text(const struct layout *layout, struct process *process, uint64_t object, char *text, size_t bytes);

#endif
