/*
 * rows.h - which functions, processes and threads of a host a view shows, and in which order. For evprof top and evprof
 * serve.
 */
#ifndef EVPROF_TOOLS_WATCH_ROWS_H
#define EVPROF_TOOLS_WATCH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/model.h"

enum watch_order { WATCH_BY_OWN, WATCH_BY_TOTAL, WATCH_BY_CALLS, WATCH_BY_ALLOCATIONS, WATCH_BY_BYTES, WATCH_ORDERS };

/* The name of an order, as --sort has it; the order of a name, WATCH_ORDERS: there is none. */
const char *watch_order_name(enum watch_order order);
enum watch_order watch_order_of(const char *name);

struct watch_view {
	enum watch_order order;
	const char *filter; /* rows whose name or file has this text in it, in any case; "": all */
};

/* A row by what it is sorted by: first the stretch, then all stretches. */
struct watch_row {
	uint64_t now, since;
	uint64_t number; /* of the function, or index in host->processes or host->threads */
};

/* Of a function that is looked at: who called it, or what it called. */
enum watch_side { WATCH_ALL, WATCH_CALLERS, WATCH_CALLEES };

/* What a row of functions shows. NULL: the function is none of these. */
const struct watch_times *watch_times_of(const struct watch_function *function, enum watch_side side);

/*
 * The rows in their order. functions: by number, as many as `known`. The caller frees them. NULL: no memory.
 */
struct watch_row *watch_function_rows(const struct watch_view *view, const struct labels *labels,
				      const struct watch_function *functions, uint32_t known, enum watch_side side,
				      size_t *count);
struct watch_row *watch_process_rows(const struct watch_view *view, const struct watch_host *host, size_t *count);
struct watch_row *watch_thread_rows(const struct watch_view *view, const struct watch_host *host, size_t *count);

#endif
