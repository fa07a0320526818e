/*
 * stacks.h - the tree of call stacks of a thread, with the calls and time of each stack; and function numbers that are
 * shared by all processes.
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

/* A stack: its parent's functions and one more on top. */
struct stack_node {
	uint32_t parent;      /* node number, smaller than this node's */
	uint32_t function;    /* on top; a number of the owner's */
	uint32_t latest;      /* the child found last; 0: none yet */
	uint64_t calls;	      /* of exactly this stack; in a sampled process, samples */
	uint64_t own_ns;      /* time in the top function itself */
	uint64_t allocations; /* allocations with exactly this stack, and their bytes, where they are counted */
	uint64_t bytes;
	uint64_t live_blocks; /* live blocks at the requested moment, and their bytes */
	uint64_t live_bytes;
};

/* at[0] is the empty stack. Parents precede their children. */
struct stacks {
	struct stack_node *at;
	uint32_t count;
	size_t allocated;
	struct u64_map children; /* parent + 1 << 32 | function: number */
	uint32_t *path;		 /* result of stacks_path() */
	uint32_t path_allocated;
};

/* Makes room for one more stack, and adds the empty stack if it is missing. False if memory ran out. */
bool stacks_reserve(struct stacks *stacks);
/* The number of the stack with one more function than parent; 0 if memory ran out. */
uint32_t stacks_find(struct stacks *stacks, uint32_t parent, uint32_t function);
/* The stack numbers from the outermost to `number`, without the empty stack. NULL if memory ran out. */
const uint32_t *stacks_path(struct stacks *stacks, uint32_t number, uint32_t *length);
/* The sum of the own time of all stacks. */
uint64_t stacks_own_ns(const struct stacks *stacks);
/* Drops all stacks. The tree can be used again. */
void stacks_clear(struct stacks *stacks);
void stacks_done(struct stacks *stacks);

/* --- functions --- */

struct stack_function {
	char *name;	  /* label_display() */
	struct text file; /* "~" for C functions; owned by the labels */
	uint32_t line;	  /* 0: none */
	uint32_t begins;  /* first line of the function; differs from `line` for a function at the line of a sample */
	uint32_t whole;	  /* of a function at a line, the number + 1 of the whole function; 0: it is whole */
	bool is_c;	  /* a C function, or a function of a native frame */
	/* For native frames: the base name of the program or library, and the source file; empty for all others. */
	struct text library;
	struct text source;
};

/* The functions of one native frame, outermost first, in the pool. count 0: a frame of the interpreter loop. */
struct native_functions {
	uint32_t first;
	uint32_t count;
	bool known;
};

/* Functions of all processes. They are the same if cProfile's names for them are. */
struct stack_functions {
	struct stack_function *at; /* by number */
	uint32_t count;
	size_t allocated;
	struct labels labels;
	uint32_t *numbers;			/* number + 1 by key of the current process */
	struct u64_map at_lines;		/* instruction << 32 | key, of the current process: number + 1 */
	struct native_functions *native_frames; /* of the current process, by frame; NULL: no native stack so far */
	uint32_t *pool;
	size_t pool_count;
	size_t pool_allocated;
	bool has_native_stacks;	       /* the current process has native stacks */
	uint64_t without_native_stack; /* allocations without a native stack, in processes that have them */
	bool sampled;		       /* the current process is sampled */
};

/* Counts an allocation that has no native stack in a process that records them. Call it for each allocation. */
static inline void stack_functions_note(struct stack_functions *functions, uint32_t frame)
{
	functions->without_native_stack += functions->has_native_stacks && !frame;
}

/* Call it before each process. Returns 0 or -ENOMEM. */
int stack_functions_process(struct stack_functions *functions, const struct call_walk *walk);
/*
 * For a trace that is followed, instead of that: makes room for the keys of functions that were defined since. known:
 * the number of keys at the last call, 0 at first. Returns 0 or -ENOMEM.
 */
int stack_functions_add_keys(struct stack_functions *functions, uint32_t known, uint32_t keys);
/* The number of a function, from 0; a new one equals the previous count. UINT32_MAX if memory ran out. */
uint32_t stack_functions_find(struct stack_functions *functions, const struct call_walk *walk, uint32_t key);
/* The number of a function at a line; a new one equals the previous count. UINT32_MAX if memory ran out. */
uint32_t stack_functions_find_line(struct stack_functions *functions, uint32_t function, uint32_t line);
/* The number of something that is no function, by its kind ("~task") and name. UINT32_MAX if memory ran out. */
uint32_t stack_functions_find_name(struct stack_functions *functions, const char *kind, const char *name);
/* The number of a given label: its name is shown as it is. UINT32_MAX if memory ran out. */
uint32_t stack_functions_find_place(struct stack_functions *functions, const struct label *label, uint32_t begins);
/*
 * The number of a frame's function: at the line at which it stands, where allocations have that. UINT32_MAX if memory
 * ran out.
 */
uint32_t stack_functions_of(struct stack_functions *functions, const struct call_walk *walk,
			    const struct walk_frame *frame);
/* The functions of one frame of a native stack, outermost first. NULL if memory ran out. */
const struct native_functions *stack_functions_of_frame(struct stack_functions *functions,
							const struct trace_process *process, uint32_t frame);
/*
 * For samples, which show lines: the number of the top shown function at the line of this event. UINT32_MAX if the
 * event has no line, or memory ran out and the walk has failed.
 */
uint32_t stack_functions_at_line(struct stack_functions *functions, struct call_walk *walk, uint32_t head);
void stack_functions_done(struct stack_functions *functions);

/* --- counting --- */

/*
 * The stack of a call, for a visitor's push(): the caller's stack with `function` on top. Stores it in frame->user. 0
 * if memory ran out and the walk has failed.
 */
uint32_t stacks_push(struct stacks *stacks, struct call_walk *walk, struct walk_frame *frame, uint32_t function);

/*
 * The stack of the current allocation: the functions of its native frames on top of the given Python stack. Returns the
 * Python stack if no native stack is recorded; 0 if memory ran out and the walk has failed.
 */
uint32_t stacks_find_with_native_frames(struct stacks *stacks, struct stack_functions *functions,
					struct call_walk *walk, uint32_t python);

/* --- labels of processes and threads; the caller frees them; NULL if memory ran out --- */

/* "app.py (4711)" */
char *stack_process_name(const struct trace_process *process);
/* "MainThread (4711)" */
char *stack_thread_name(const struct trace_thread *thread);

#endif
