/*
 * stacks.h - the different call stacks of a thread as one tree, with the calls and the time of each; and numbers for
 * functions that are the same for all processes.
 *
 * Used by the exporters of flame graphs (folded, speedscope, pprof, firefox). Memory grows with the number of different
 * stacks of one thread (100 to 200 bytes each) and the number of functions, not with the number of calls.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_STACKS_H
#define EVPROF_TOOLS_ANALYSIS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/call_walk.h"
#include "replay/filter.h"
#include "trace/labels.h"
#include "trace/reader.h"
#include "util/output.h"
#include "util/progress.h"
#include "util/u64_map.h"

/* --- the tree --- */

/* A stack: that of its parent, and one more function. */
struct stack_node {
	uint32_t parent;      /* number of a node; smaller than its own */
	uint32_t function;    /* on top: a number of the owner's */
	uint32_t latest;      /* the child that was looked for last; 0: none yet */
	uint64_t calls;	      /* of a sampled process: samples with just this stack */
	uint64_t own_ns;      /* time with just this stack */
	uint64_t allocations; /* made with just this stack, and their bytes: where they are counted */
	uint64_t bytes;
	uint64_t live_blocks; /* alive at the moment that is asked for, and their bytes */
	uint64_t live_bytes;
};

/* at[0] is the empty stack. A parent comes before its children. */
struct stacks {
	struct stack_node *at;
	uint32_t count;
	uint32_t allocated;
	struct u64_map children; /* parent + 1 << 32 | function: number */
	uint32_t *path;		 /* what stacks_path() gives */
	uint32_t path_allocated;
};

/* Room for one more stack; the empty one is there from then on. False where memory ran out. */
bool stacks_reserve(struct stacks *stacks);
/* The number of the stack that has one more function than parent; 0 where memory ran out. */
uint32_t stacks_find(struct stacks *stacks, uint32_t parent, uint32_t function);
/* The numbers of a stack and of those below it, outermost first, without the empty one. NULL where memory ran out. */
const uint32_t *stacks_path(struct stacks *stacks, uint32_t number, uint32_t *length);
/* The time of all stacks. */
uint64_t stacks_own_ns(const struct stacks *stacks);
/* Forgets all stacks; the tree can be used again. */
void stacks_clear(struct stacks *stacks);
void stacks_done(struct stacks *stacks);

/* --- functions --- */

struct stack_function {
	char *name;	  /* label_display() */
	struct text file; /* "~" for C functions; owned by the labels */
	uint32_t line;	  /* 0: none */
	uint32_t begins;  /* the line where it begins: another one for a function at the line of a sample */
	bool native;	  /* a C function */
	/* Of a native stack: the base name of the program or library, and the source; length 0 for all others. */
	struct text library;
	struct text source;
};

/* The functions of one native frame, the outermost first: numbers in a pool. count 0: what runs Python's functions. */
struct stack_natives {
	uint32_t first;
	uint32_t count;
	bool known;
};

/* Functions are the same if cProfile's names for them are, in whatever process they were called. */
struct stack_functions {
	struct stack_function *at; /* by number */
	uint32_t count;
	uint32_t allocated;
	struct labels labels;
	uint32_t *numbers;	       /* number + 1 by key of the process being visited */
	struct stack_natives *natives; /* by native frame of that process; NULL: none was met */
	uint32_t *pool;
	size_t pool_count;
	size_t pool_allocated;
	bool has_native;	 /* the process being visited has native stacks */
	uint64_t without_native; /* allocations of such processes, so far, that have none */
	bool sampled;		 /* likewise */
};

/* For each allocation that is counted, with its native frame. */
static inline void stack_functions_note(struct stack_functions *functions, uint32_t frame)
{
	functions->without_native += functions->has_native && !frame;
}

/* Before a process is visited. Returns 0 or -ENOMEM. */
int stack_functions_process(struct stack_functions *functions, const struct call_walk *walk);
/* The number of a function, counted from 0; a new one equals the count before. UINT32_MAX where memory ran out. */
uint32_t stack_functions_find(struct stack_functions *functions, const struct call_walk *walk, uint32_t key);
/* The functions of one frame of a native stack, the outermost first. NULL where memory ran out. */
const struct stack_natives *stack_functions_native(struct stack_functions *functions,
						   const struct trace_process *process, uint32_t frame);
/*
 * Of samples the lines are shown. The number of the function on top of the shown stack at the line that an event says;
 * UINT32_MAX where it says none, or memory ran out and the visit has failed.
 */
uint32_t stack_functions_at_line(struct stack_functions *functions, struct call_walk *walk, uint32_t head);
void stack_functions_done(struct stack_functions *functions);

/* --- counting --- */

/*
 * The stack of the call that a visitor's push() gets, with that function on top of the caller's; it is in frame->user
 * from then on. 0 where memory ran out, and the visit has failed.
 */
uint32_t stacks_push(struct stacks *stacks, struct call_walk *walk, struct walk_frame *frame, uint32_t function);

/*
 * The stack of the allocation at hand: native functions on top of Python's, whose stack is given; the same where none
 * are recorded. 0 where memory ran out, and the visit has failed.
 */
uint32_t stacks_find_native(struct stacks *stacks, struct stack_functions *functions, struct call_walk *walk,
			    uint32_t python);

/* The base name of a file: "b.py" of "/a/b.py". Points into it. */
struct text stack_base_name(struct text file);

/* --- names of places, to be freed; NULL where memory ran out --- */

/* "app.py (4711)" */
char *stack_process_name(const struct trace_process *process);
/* "MainThread (4711)" */
char *stack_thread_name(const struct trace_thread *thread);

#endif
