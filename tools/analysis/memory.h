/*
 * memory.h - what a process allocated, by site: for evprof memory, evprof check and the tables of the API.
 *
 * Reads each process once (live.h). A site is the innermost Python function of a stack, at its line where that is
 * recorded, with the native frames above it. C functions belong to the function that calls them; where no Python
 * function runs, the outermost C function is the site.
 *
 * Sites of a process add up to all its allocations by the shown threads. Memory is that of live.h.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_MEMORY_H
#define EVPROF_TOOLS_ANALYSIS_MEMORY_H

#include <stdint.h>

#include "analysis/live.h"
#include "analysis/resident.h"
#include "analysis/stacks.h"
#include "replay/filter.h"
#include "trace/reader.h"
#include "util/progress.h"

/* What one row stands for. */
enum memory_by {
	MEMORY_BY_SITE, /* function, line, and native frames */
	MEMORY_BY_LINE,
	MEMORY_BY_FUNCTION,
	MEMORY_BY_MODULE, /* the file */
	MEMORY_BY_THREAD,
	MEMORY_BY_TASK,
	MEMORY_BY_LIBRARY, /* of the innermost native frame */
	MEMORY_BYS
};

/* As users give them; "" for MEMORY_BY_SITE. NULL at the end. */
extern const char *const memory_by_names[MEMORY_BYS + 1];

/*
 * Whose a block is, as far as its stack shows:
 *
 *   imports      allocated below importlib: code, functions and classes of modules
 *   caches       below functions of the standard library that keep what they make: re.compile, linecache, ...
 *   interned     by sys.intern
 *   interpreter  while no function runs
 *   program      all else
 */
enum memory_kind {
	MEMORY_OF_PROGRAM,
	MEMORY_OF_IMPORTS,
	MEMORY_OF_CACHES,
	MEMORY_INTERNED,
	MEMORY_OF_INTERPRETER,
	MEMORY_KINDS
};
extern const char *const memory_kind_names[MEMORY_KINDS];

/* The kind of a stack; kinds: those of the stacks before it. 0 is the empty stack, and below it are the threads. */
enum memory_kind memory_kind_of_stack(const struct stacks *stacks, const struct stack_functions *functions,
				      uint32_t number, const uint8_t *kinds);

struct memory_options {
	const struct filter *filter;
	enum memory_by by;
	unsigned kinds;		/* a bit for each shown; 0: all */
	const char *mark_begin; /* NULL: none */
	const char *mark_end;
};

/* Its texts are those of struct memory. */
struct memory_site {
	struct text name; /* of the function, thread, task or library; of a module its file */
	struct text file; /* empty: none. "~": a C function */
	uint32_t line;	  /* 0: not known, or none */
	uint32_t begins;  /* the first line of the function; 0: none */
	/* The functions of its native frames, outermost first, for memory_site_native(). 0: none. */
	uint32_t native;
	struct live_weights weights;
};

/* The memory of one process. Valid in the visitor's call. */
struct memory {
	const struct memory_options *options;
	const struct trace_process *process;
	struct live live;
	struct stack_functions functions;
	int64_t end_ns;		       /* PROGRAM_END_NONE: the end of the trace, or of the shown time */
	struct live_weights all;       /* of the shown threads, of all kinds */
	struct resident resident_peak; /* known where malloc() was recorded, and all of the process is read */
	struct resident resident_end;
	struct live_weights kinds[MEMORY_KINDS];
	struct memory_site *sites; /* of the shown kinds */
	uint32_t site_count;
	unsigned marks; /* WINDOW_MARK_BEGINS, WINDOW_MARK_ENDS: a process has a mark of that name */
	/* Internal. */
	int (*visit)(void *owner, struct memory *memory);
	void *owner;
	struct progress *progress;
	struct stacks paths; /* of sites: what distinguishes them */
	uint32_t *path_sites;
	uint32_t path_site_count;
	size_t sites_allocated;
};

/*
 * Calls visit() for each process of the filter that recorded memory, or has memory events. Sets up *memory;
 * memory_done() frees it after use. Returns 0, -ENOMEM, or the first error of visit().
 */
int memory_visit(struct memory *memory, struct trace *trace, const struct memory_options *options,
		 struct progress *progress, int (*visit)(void *owner, struct memory *memory), void *owner);
void memory_done(struct memory *memory);

/*
 * The numbers of the functions of the site's native frames, outermost first; *count: how many. Valid until the next
 * call. NULL: memory ran out.
 */
const uint32_t *memory_site_native(struct memory *memory, const struct memory_site *site, uint32_t *count);

#endif
