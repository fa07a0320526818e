/*
 * line_table.h - which line an instruction belongs to, in the tables of all versions of CPython. Used by the sampler.
 */
#ifndef COLLECTOR_LINE_TABLE_H
#define COLLECTOR_LINE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "evprof/sampling.h"

/*
 * table: co_lnotab or co_linetable, as lines says, and may be anything. first: co_firstlineno. instruction: offset in
 * bytes. Returns the line, or 0: the table has none for it.
 */
int line_of(enum sampling_lines lines, const uint8_t *table, size_t size, int first, int64_t instruction);

#endif
