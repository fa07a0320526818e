/*
 * event_rows.h - the table of events (docs/table.md), row by row from the event stream, into a table.
 *
 * export/csv.c writes the same table as text; tests compare them.
 */
#ifndef EVPROF_TOOLS_API_EVENT_ROWS_H
#define EVPROF_TOOLS_API_EVENT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/function_names.h"
#include "api/options.h"
#include "api/populate.h"
#include "api/table.h"
#include "replay/event_stream.h"
#include "util/progress.h"

/* Events that one step takes: what it writes stays in the processor's caches. */
#define EVENT_ROWS_STEP 8192u
#define EVENT_ROWS_NAME "the table of events"

struct row_process;

struct event_rows {
	const struct trace *trace;
	const struct options *options;
	const struct function_names *names;
	struct texts *kinds;
	struct event_stream *stream;
	struct progress progress;
	struct row_process **processes; /* by number; NULL unless running */
	uint32_t wanted;		/* bits by number of the event */
	bool sizes;			/* sizes of freed blocks are wanted */
	bool has_named;			/* a row of a span, mark or counter was written: value is not all 0 */
	int64_t origin_ns;		/* added to CLOCK_MONOTONIC */
	/* The table that is being filled, and its columns. */
	struct evprof_table *table;
	uint64_t row;
	const struct trace_thread *thread; /* of the current step */
	int64_t *time, *value1, *value2;
	void *event;
	int32_t *name, *mod, *lineno, *from_name, *from_mod, *from_line;
	double *value;
	struct populate *populate; /* NULL: nothing is made ahead */
	bool one_pid, one_tid;	   /* the column is the same in all rows, and written at the end */
};

/* names and options must stay valid. Returns 0 or -errno; event_rows_done() must follow in both cases. */
int event_rows_init(struct event_rows *rows, struct trace *trace, const struct options *options,
		    const struct function_names *names);
void event_rows_done(struct event_rows *rows);
/* A table without rows, for event_rows_fill(). NULL if memory ran out. */
struct evprof_table *event_rows_table(const struct event_rows *rows);
/* Takes the rows of a table off, so that it can be filled again: value1, value2 and value are written for some rows. */
void event_rows_clear(const struct event_rows *rows, struct evprof_table *table);
/*
 * Fills the table with the next rows, at least `rows` of them and at most 2 * EVENT_ROWS_STEP more; UINT64_MAX: all.
 * table->rows says how many; fewer: these are the last. Returns 0 or -errno.
 */
int event_rows_fill(struct event_rows *rows, struct evprof_table *table, uint64_t wanted);

#endif
