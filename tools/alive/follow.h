/*
 * follow.h - counts what is alive in the processes of a trace, also of one that is being written (alive.h).
 *
 * For recordings of memory without calls, where each allocation has a stack of its own. Each thread is replayed alone,
 * whenever it has new events.
 *
 *   end      what is alive when the program ends (replay/program_end.h) is what counts, as finalization frees nearly
 *            all. Whether a function was the end of the program is known later: what came after is counted apart, and
 *            joined if the program goes on
 *   memory   that of alive.h, and 120 bytes for each stack. Of processes that have ended, the last ALIVE_ENDED_MAX are
 *            kept; events are not kept at all
 */
#ifndef EVPROF_TOOLS_ALIVE_FOLLOW_H
#define EVPROF_TOOLS_ALIVE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "alive/alive.h"
#include "analysis/stacks.h"
#include "trace/reader.h"
#include "util/u64_map.h"

#define ALIVE_ENDED_MAX 64u /* processes that have ended */

/* Numbers of struct stacks: of a frame, and with this bit of a native frame. */
#define ALIVE_NATIVE (UINT32_C(1) << 31)
/* The outermost node of each stack: whether it has all frames. */
#define ALIVE_WHOLE (ALIVE_NATIVE - 1)
#define ALIVE_CUT (ALIVE_NATIVE - 2)

struct alive_thread;

struct alive_process {
	const struct trace_process *process;
	struct stacks stacks;
	struct u64_map frame_numbers;
	uint64_t *frames; /* wire_place() by number - 1 */
	uint32_t frame_count;
	size_t frames_allocated;
	struct alive base;  /* up to end_ticks */
	struct alive after; /* from there on */
	uint64_t end_ticks; /* right behind the program's end; UINT64_MAX: it goes on */
	uint32_t program;   /* code id of the function that is the program; 0: none was seen */
	uint8_t *programs;  /* by key: enum in follow.c */
	uint32_t program_count;
	uint64_t last_ticks; /* the latest time of all threads */
	uint64_t lost;	     /* events */
	bool any;	     /* an allocation was counted */
	bool forgotten;	     /* nothing but `process` is left */
};

struct alive_follow {
	/* Set by the owner. */
	struct trace *trace;
	uint64_t so_far; /* number of the last wish for what is alive so far, which is written with it; 0: none */
	/* Internal. */
	struct alive_process **processes; /* by number; NULL: none */
	struct alive_thread **threads;	  /* likewise, and NULL: it has ended */
	uint32_t process_count, thread_count;
	uint64_t forgotten; /* processes */
	bool out_of_memory;
};

/* Whether a process records what is followed here: memory, and no calls or samples. */
bool alive_takes(const struct trace_process *process);
/* Takes the chunks that the trace has now: after it was opened, and after each trace_follow(). 0 or -ENOMEM. */
int alive_follow_next(struct alive_follow *follow);
void alive_follow_done(struct alive_follow *follow);

/* Whether the function is the program, where it is the outermost one. */
bool alive_is_program(struct alive_process *process, uint32_t code);

#endif
