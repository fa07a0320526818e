/*
 * line_table.h - maps an instruction to its line, for the tables of all versions of CPython. Used by the sampler, and
 * by readers of allocations.
 */
#ifndef SHARED_LINE_TABLE_H
#define SHARED_LINE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "evprof/sampling.h"

/*
 * table: co_lnotab or co_linetable, according to lines; not trusted; NULL: not known. first: co_firstlineno.
 * instruction: offset in bytes; below 0: before the first one. Returns the line; 0: none.
 */
int line_of(enum sampling_lines lines, const uint8_t *table, size_t size, int first, int64_t instruction);

#endif
