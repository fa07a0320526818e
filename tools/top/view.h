/*
 * view.h - the pages of evprof top as lines of text: for the screen, and for plain output. And as JSON.
 */
#ifndef EVPROF_TOOLS_TOP_VIEW_H
#define EVPROF_TOOLS_TOP_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "top/host.h"
#include "util/output.h"

enum top_page { TOP_FUNCTIONS, TOP_PROCESSES, TOP_THREADS };
enum top_order { TOP_BY_OWN, TOP_BY_TOTAL, TOP_BY_CALLS, TOP_BY_ALLOCATIONS, TOP_BY_BYTES, TOP_ORDERS };

/* The name of an order, as --sort has it; the order of a name, TOP_ORDERS: there is none. */
const char *top_order_name(enum top_order order);
enum top_order top_order_of(const char *name);

struct top_view {
	enum top_page page; /* with host->focus, functions are the callers and callees of that one */
	enum top_order order;
	const char *filter; /* rows whose name or file has this text in it, in any case; "": all */
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
int top_lines_make(struct top_lines *lines, const struct top_view *view, const struct top_host *host, unsigned columns,
		   size_t rows);
void top_lines_done(struct top_lines *lines);

/* One line: docs/formats.md describes it. rows: of functions, as in the view. Returns 0 or -errno. */
int top_json_put(struct output *output, const struct top_view *view, const struct top_host *host, size_t rows);

#endif
