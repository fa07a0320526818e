/*
 * query.h - details of the last stretch that are made on request: of one process, of one function, the stack of a
 * thread. For evprof serve, whose pages look at different ones at the same time. Valid until the next refresh.
 */
#ifndef EVPROF_TOOLS_WATCH_QUERY_H
#define EVPROF_TOOLS_WATCH_QUERY_H

#include <stdint.h>

#include "watch/model.h"

#define WATCH_NO_FOCUS WATCH_FOCI

struct watch_query {
	int64_t pid;	/* 0: of all processes */
	unsigned focus; /* slot of host->foci whose callers and callees are wanted; WATCH_NO_FOCUS: none */
};

/*
 * Functions by number, as many as host->labels.count, with their times in that process. The caller frees them. Returns
 * 0 or -ENOMEM.
 */
int watch_query_functions(struct watch_host *host, const struct watch_query *query, struct watch_function **functions);

struct watch_frame {
	uint32_t number; /* of the function */
	uint32_t line;	 /* its current line; 0: not known */
};

/*
 * The stack of a thread at the end of the stretch, innermost frame first: at most that number of frames. Returns how
 * many it has in all; -ENOMEM; 0: it has none, or the thread has gone.
 */
int watch_query_stack(struct watch_host *host, const struct watch_thread_row *thread, struct watch_frame *frames,
		      unsigned most);

#endif
