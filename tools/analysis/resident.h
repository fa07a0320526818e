/*
 * resident.h - what the resident size of a process consists of: its live blocks, and what the kernel says of its
 * mappings. For evprof memory.
 *
 * At the peak the collector knows anonymous memory, files and shared memory apart; at the end of a process that came
 * to it by itself also stacks and evprof's rings. The live blocks of that time are taken off the anonymous memory;
 * shared ranges among them (WIRE_MMAP_SHARED) off the shared memory, as far as they are resident there. What remains
 * is what allocators hold and nobody uses, their own tables, and memory from before the recording. At the end the slack
 * of malloc() is a part of its own, free blocks, heads and rounding: what is resident of brk() and of glibc's arenas
 * without the live blocks that are there by their size and address. It is at most what remains. The rest is that of
 * Python's arenas, and what is not known. Blocks count as they were asked for: where the program has not touched them
 * the rest is too small, and may be negative. So the parts always add up to the resident size.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_RESIDENT_H
#define EVPROF_TOOLS_ANALYSIS_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/live.h"
#include "trace/reader.h"

/* The first ones are those of enum block_source. */
enum resident_part {
	RESIDENT_STACKS = BLOCK_SOURCES,
	RESIDENT_FILES,
	RESIDENT_SHARED,
	RESIDENT_EVPROF,
	RESIDENT_HEAP_SLACK, /* of malloc(), at the end */
	RESIDENT_REST,
	RESIDENT_PARTS
};
extern const char *const resident_part_names[RESIDENT_PARTS];

struct resident {
	bool known;
	int64_t ns; /* since the start of the trace */
	uint64_t bytes;
	uint64_t in_use;    /* of the live blocks in anonymous memory */
	uint64_t anonymous; /* all of it */
	int64_t parts[RESIDENT_PARTS];
};

/* When the resident size was most, as far as the collector saw it; 0: not known. */
uint64_t resident_peak_ticks(const struct trace_process *process);
/* live: read with that time, and to the end of the process. */
struct resident resident_at_peak(const struct trace *trace, const struct trace_process *process,
				 const struct live *live);
struct resident resident_at_end(const struct trace *trace, const struct trace_process *process,
				const struct live *live);

#endif
