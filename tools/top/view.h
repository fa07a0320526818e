/*
 * view.h - the pages of evprof top as lines of text: for the screen, and for plain output.
 */
#ifndef EVPROF_TOOLS_TOP_VIEW_H
#define EVPROF_TOOLS_TOP_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "util/output.h"
#include "watch/model.h"
#include "watch/rows.h"

enum top_page { TOP_FUNCTIONS, TOP_PROCESSES, TOP_THREADS };

struct top_view {
	enum top_page page; /* with host->foci[0], functions are the callers and callees of that one */
	struct watch_view rows;
};

#define TOP_NO_ROW UINT64_MAX

struct top_line {
	size_t begin, length; /* in the text */
	bool bold;
	uint64_t row; /* the function number, pid, or index in host->threads that the line is of; TOP_NO_ROW: a title */
};

struct top_lines {
	struct output text; /* in memory; each line ends with a newline */
	struct top_line *at;
	size_t count, allocated;
	size_t titles; /* lines before the first row */
};

/* Makes the lines of a view, with at most that number of rows, each in `columns`. Returns 0 or -ENOMEM. */
int top_lines_make(struct top_lines *lines, const struct top_view *view, const struct watch_host *host,
		   unsigned columns, size_t rows);
void top_lines_done(struct top_lines *lines);

#endif
