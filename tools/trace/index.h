/*
 * index.h - finds the chunks of a trace: by its index, or by a scan if the index is missing or damaged.
 */
#ifndef EVPROF_TOOLS_TRACE_INDEX_H
#define EVPROF_TOOLS_TRACE_INDEX_H

#include <stdint.h>

#include "trace/trace.h"

/* Fills trace->places. Returns 0, -ENOMEM, or -EBADMSG. */
int trace_find_places(struct trace *trace);
/*
 * Finds the next valid chunk at offset or later, at any byte, because a damaged file may have lost some. Returns its
 * offset, or end.
 */
uint64_t trace_find_chunk(const struct trace *trace, uint64_t offset, uint64_t end, struct trace_chunk *chunk);

#endif
