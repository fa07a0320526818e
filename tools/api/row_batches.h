/*
 * row_batches.h - tables that are too long for memory, in batches: a walk writes rows, and the caller of the library
 * takes them table by table. See evprof_trace_rows() in api.h.
 *
 * The memory of a batch is used again when nobody else has it any more.
 */
#ifndef EVPROF_TOOLS_API_ROW_BATCHES_H
#define EVPROF_TOOLS_API_ROW_BATCHES_H

#include <stdint.h>

#include "api/handle.h"
#include "api/table.h"

#define ROW_BATCHES_POOL 4u

struct row_batches {
	const struct table_field *fields;
	uint32_t field_count;
	struct texts *shared[TABLE_COLUMNS_MAX]; /* texts that all batches have; NULL: each has its own. Not owned */
	uint64_t rows;				 /* of a batch */
	uint64_t given;				 /* batches */
	struct request *request;
	evprof_take_rows *take;
	void *owner;
	struct evprof_table *table; /* being filled; NULL: none yet */
	struct evprof_table *pool[ROW_BATCHES_POOL];
};

/* A table of the library that is made in batches. make() adds its rows. Returns 0 or -errno. */
struct row_kind {
	const char *name;
	const struct table_field *fields;
	uint32_t field_count;
	int (*make)(struct request *request, struct row_batches *batches);
};

extern const struct row_kind rows_of_calls;   /* call_rows.c */
extern const struct row_kind rows_of_samples; /* sample_rows.c */

/* What is added to times since the start of the trace: nothing with since-start, or else it makes ns since 1970. */
static inline int64_t row_origin_ns(const struct request *request)
{
	const struct trace *trace = request->trace;

	return request->options.since_start ? 0 : trace->start_ns + trace_realtime_offset(trace);
}

/* The table for the next row, which goes to its row number table->rows. NULL: memory ran out. */
struct evprof_table *row_batches_table(struct row_batches *batches);
/* Ends the row; a full batch is handed over. Returns 0, -ECANCELED if the caller wants no more, or -errno. */
int row_batches_end_row(struct row_batches *batches);

#endif
