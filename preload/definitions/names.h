/* names.h - gives ids to exception types and marks. They are found by a hash of the name. */
#ifndef PRELOAD_NAMES_H
#define PRELOAD_NAMES_H

#include <stdint.h>

/* The id of an exception's type. */
uint32_t definitions_type(const void *type);

/*
 * The id of a mark, or of another name that is defined like one. Past WIRE_NAMES_MAX names that of WIRE_NAMES_OTHER; 0:
 * its definition could not be written. No GIL needed.
 */
uint32_t definitions_mark(const char *name);

#endif
