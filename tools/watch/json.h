/*
 * json.h - what processes did in the last stretch, as JSON: the lines of evprof top --json, and the data of the page of
 * evprof serve. docs/formats.md describes it.
 */
#ifndef EVPROF_TOOLS_WATCH_JSON_H
#define EVPROF_TOOLS_WATCH_JSON_H

#include <stdint.h>

#include "util/output.h"
#include "watch/model.h"
#include "watch/query.h"
#include "watch/rows.h"

/* One line. rows: of functions, as in the view. Returns 0 or -errno. */
int watch_json_put(struct output *output, const struct watch_view *view, const struct watch_host *host, size_t rows);

/* The same for a page, which looks at one process or function. */
struct watch_detail {
	struct watch_view view;
	size_t rows; /* of functions, callers, callees, threads and tasks: the most of each */
	struct watch_query query;
	bool has_stacks; /* threads with their stacks */
};

/*
 * The members of that line without its braces, and those of a page: ids of functions, which stay, tasks, stacks,
 * callers and callees. Returns 0 or -errno.
 */
int watch_json_put_detail(struct output *output, const struct watch_detail *detail, struct watch_host *host);

/* "member": "name" */
void watch_json_put_text(struct output *output, const char *member, struct text text);

#endif
