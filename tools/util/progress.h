/*
 * progress.h - a progress bar on stderr, on a terminal, for operations longer than a second.
 */
#ifndef EVPROF_TOOLS_UTIL_PROGRESS_H
#define EVPROF_TOOLS_UTIL_PROGRESS_H

#include <stdint.h>

struct progress {
	const char *what;
	uint64_t total;
	uint64_t done;
	int64_t began_ns; /* of CLOCK_MONOTONIC */
	int64_t shown_ns; /* 0: not shown yet */
	int terminal;
};

/* what: a word or two; must stay valid. total: in the unit of progress_add(); 0 if not known. */
void progress_begin(struct progress *progress, const char *what, uint64_t total);
void progress_add(struct progress *progress, uint64_t amount);
/* Removes the bar. */
void progress_end(struct progress *progress);
/* Removes the bar, and shows none from here on: a pager has the terminal. */
void progress_hide(void);

#endif
