/*
 * native_stack.h - the native stacks of allocations: which C functions ran between Python's and the allocator.
 *
 * Used by dump and by the exporters that show allocations by function. The tables are in struct trace_process.
 */
#ifndef EVPROF_TOOLS_TRACE_NATIVE_STACK_H
#define EVPROF_TOOLS_TRACE_NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

/* A function of a native stack; those that were inlined are there, too. Texts belong to the trace, or to the walk. */
struct native_place {
	struct text function; /* "lib.so+0x1234" or "0x7f..." where it has no name */
	struct text file;     /* of the source; length 0: not known */
	uint32_t line;	      /* 0: not known */
	struct text module;   /* the base name of the program or library; length 0: none */
};

/* A stack that is gone through, from the innermost function on. */
struct native_walk {
	const struct trace_process *process;
	uint32_t frame;			   /* 0: it is at its end */
	const struct trace_symbol *symbol; /* the next of those at the frame's address; NULL: the first */
	bool cut;			   /* at the end: there are callers that are not known */
	char name[64];
};

/* Of processes that recorded native stacks. */
struct native_counts {
	uint64_t allocations;
	uint64_t without; /* of them, those that have none: there was no place for more frames */
};

/* An event of such a process. frame: of the native stack that was told for it, which is then used up. */
static inline void native_count(struct native_counts *counts, uint32_t head, const uint64_t *extra, uint32_t *frame)
{
	unsigned kind = wire_head_kind(head);

	if (!wire_is_memory(kind) || kind == WIRE_FREE || !wire_memory_address(extra[0]))
		return;
	counts->allocations++;
	counts->without += !*frame;
	*frame = 0;
}

/* All of one process, added to the counts. */
void native_count_process(struct native_counts *counts, struct trace *trace, const struct trace_process *process);

void native_begin(struct native_walk *walk, const struct trace_process *process, uint32_t frame);
/* False at the end: Python's functions follow, or nothing. */
bool native_next(struct native_walk *walk, struct native_place *place);

#endif
