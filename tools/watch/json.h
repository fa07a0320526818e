/*
 * json.h - what processes did in the last stretch, as JSON: the lines of evprof top --json, and the data of evprof
 * serve. docs/formats.md describes it.
 */
#ifndef EVPROF_TOOLS_WATCH_JSON_H
#define EVPROF_TOOLS_WATCH_JSON_H

#include <stdint.h>

#include "util/output.h"
#include "watch/host.h"
#include "watch/rows.h"

/* One line. rows: of functions, as in the view. Returns 0 or -errno. */
int watch_json_put(struct output *output, const struct watch_view *view, const struct watch_host *host, size_t rows);

#endif
