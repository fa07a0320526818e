/*
 * native_stack.h - the native stacks of allocations: the native frames between Python's functions and the allocator.
 *
 * Used by dump and by the exporters that show allocations by function. The tables are in struct trace_process.
 */
#ifndef EVPROF_TOOLS_TRACE_NATIVE_STACK_H
#define EVPROF_TOOLS_TRACE_NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

/* A function of a native frame, possibly inlined. The trace or the walk owns its texts. */
struct native_function {
	struct text function; /* "lib.so+0x1234" or "0x7f..." if it has no name */
	struct text file;     /* source file; length 0: not known */
	uint32_t line;	      /* 0: not known */
	struct text module;   /* the base name of the program or library; length 0: none */
};

/* A walk over a native stack, from the innermost function out. */
struct native_stack_walk {
	const struct trace_process *process;
	uint32_t frame;			   /* 0: the walk is at its end */
	const struct trace_symbol *symbol; /* the next symbol at the frame's address; NULL: the first */
	bool cut;			   /* at the end: further callers were not recorded */
	char name[64];
};

/* Counts of a process that records native stacks. */
struct native_stack_counts {
	uint64_t allocations;
	uint64_t without; /* of them, those without a native stack: there was no space for more frames */
};

/* Counts an event. frame: the native stack recorded for the next allocation; set to 0 by it. */
static inline void native_stack_count(struct native_stack_counts *counts, uint32_t head, const uint64_t *extra,
				      uint32_t *frame)
{
	unsigned kind = wire_head_kind(head);

	if (!wire_is_memory(kind) || kind == WIRE_FREE || !wire_memory_address(extra[0]))
		return;
	counts->allocations++;
	counts->without += !*frame;
	*frame = 0;
}

/* Adds all events of one process to the counts. */
void native_stack_count_process(struct native_stack_counts *counts, struct trace *trace,
				const struct trace_process *process);

void native_stack_begin(struct native_stack_walk *walk, const struct trace_process *process, uint32_t frame);
/* False at the end: Python's functions come next, or nothing. */
bool native_stack_next(struct native_stack_walk *walk, struct native_function *place);

#endif
