/*
 * window.h - which part of each thread a profile counts: between two times, or between two marks.
 *
 * Marks count in order of events in the thread that set them, and by time in all others.
 */
#ifndef EVPROF_TOOLS_REPLAY_WINDOW_H
#define EVPROF_TOOLS_REPLAY_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

/* Where counting begins or ends. */
struct window_edge {
	uint64_t ticks;
	uint32_t thread; /* that set the mark; TRACE_NOBODY: a time, for all threads */
	uint32_t mark;	 /* the how manyth mark of that thread, from 0 */
	bool begins;
};

/* The edges of one process, in order of time: begins and ends in turn. */
struct window {
	struct window_edge *edges;
	size_t count;
	bool open_at_start; /* counting from the first event on */
};

/* Between two times in ns since the start of the trace; NULL: no bound. Returns 0 or -ENOMEM. */
int window_of_times(struct window *window, const struct trace *trace, const struct trace_process *process,
		    const int64_t *from_ns, const int64_t *to_ns);
/* Between marks of these names; each begin is followed by the next end. Returns 0 or -ENOMEM. */
int window_of_marks(struct window *window, struct trace *trace, const struct trace_process *process, const char *begin,
		    const char *end);
void window_done(struct window *window);

#endif
