/*
 * progress.h - a bar on stderr for what takes more than a second on a terminal. Nothing is shown otherwise.
 */
#ifndef EVPROF_TOOLS_UTIL_PROGRESS_H
#define EVPROF_TOOLS_UTIL_PROGRESS_H

#include <stdint.h>

struct progress {
	const char *what;
	uint64_t total;
	uint64_t done;
	uint64_t began_ns;
	uint64_t shown_ns; /* 0: not shown yet */
	int terminal;
};

/* what: a word or two, kept. total: in whatever progress_add() counts; 0 where it is not known. */
void progress_begin(struct progress *progress, const char *what, uint64_t total);
void progress_add(struct progress *progress, uint64_t amount);
/* Takes the bar away. */
void progress_end(struct progress *progress);

#endif
