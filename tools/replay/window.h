/*
 * window.h - the window: the part of each thread that a profile counts, between two times or between two marks.
 *
 * In the thread that sets the marks, order of events decides; in all other threads, also of child processes, time.
 */
#ifndef EVPROF_TOOLS_REPLAY_WINDOW_H
#define EVPROF_TOOLS_REPLAY_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

/* An edge: counting begins or ends. */
struct window_edge {
	uint64_t ticks;
	uint32_t thread; /* the thread that sets the mark; TRACE_NOBODY: a time, for all threads */
	uint32_t mark;	 /* index of the mark in that thread, from 0 */
	bool begins;
};

/* The edges of one process in order of time, begins and ends alternating. */
struct window {
	struct window_edge *edges;
	size_t count;
	bool open_at_start; /* counting from the first event on */
};

/* The window between two times in ns since the start of the trace; NULL: unbounded. Returns 0 or -ENOMEM. */
int window_of_times(struct window *window, const struct trace *trace, const struct trace_process *process,
		    const int64_t *from_ns, const int64_t *to_ns);
/*
 * The windows between marks of these names; each begin pairs with the next end. A process without such windows has
 * those of the process that started it, by time. windows: by number of the process, those before this one are there.
 * Returns 0 or -ENOMEM.
 */
int window_of_marks(struct window *windows, struct trace *trace, const struct trace_process *process, const char *begin,
		    const char *end);
/* How many ticks between two times are inside. */
uint64_t window_inside(const struct window *window, uint64_t begin, uint64_t end);
void window_done(struct window *window);

enum { WINDOW_MARK_BEGINS = 1, WINDOW_MARK_ENDS = 2 };

/* What the marks of the process with these names do, by mark id. The caller frees it. NULL: no memory. */
uint8_t *window_marks_named(const struct trace_process *process, const char *begin, const char *end);

#endif
