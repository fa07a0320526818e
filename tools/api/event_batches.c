/*
 * event_batches.c - the table of events as an Arrow stream, batch by batch. See evprof_trace_stream() in api.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/arrow.h"
#include "api/event_rows.h"
#include "api/handle.h"

#define ERROR_BYTES 256
/* Python's loops drop a batch when they have the next one. */
#define POOL 2

struct event_batches {
	struct evprof_trace *handle;
	struct options options;
	struct event_rows rows;
	struct evprof_table *pool[POOL]; /* in turn; the memory is used again if nobody else has it */
	unsigned given;
	char error[ERROR_BYTES];
};

/* --- a batch --- */

static struct evprof_table *fresh_table(struct event_batches *batches)
{
	uint64_t rows = (uint64_t)batches->options.batch_rows + UINT64_C(2) * EVENT_ROWS_STEP;
	struct evprof_table **place = &batches->pool[batches->given++ % POOL];

	if (*place && atomic_load_explicit(&(*place)->references, memory_order_acquire) == 1) {
		event_rows_clear(&batches->rows, *place);
		return *place;
	}
	table_drop(*place);
	*place = event_rows_table(&batches->rows);
	if (*place && table_reserve(*place, rows) < 0) {
		table_drop(*place);
		*place = NULL;
	}
	return *place;
}

static int next_batch(struct event_batches *batches, struct arrow_array *array)
{
	struct evprof_table *table = fresh_table(batches);
	int error;

	if (!table)
		return -ENOMEM;
	error = event_rows_fill(&batches->rows, table, batches->options.batch_rows);
	if (error || !table->rows) {
		array->release = NULL;
		return error;
	}
	return arrow_array_of(table, array);
}

/* --- the stream --- */

static int fail(struct event_batches *batches, int error)
{
	return -why_end(&(struct why){batches->error, ERROR_BYTES}, error);
}

static int get_schema(struct arrow_stream *stream, struct arrow_schema *schema)
{
	struct event_batches *batches = stream->owner;
	struct evprof_table *table = event_rows_table(&batches->rows);
	int error = table ? arrow_schema_of(table, schema) : -ENOMEM;

	table_drop(table);
	return error ? fail(batches, error) : 0;
}

static int get_next(struct arrow_stream *stream, struct arrow_array *array)
{
	struct event_batches *batches = stream->owner;
	struct handle_call call;
	int error;

	batches->error[0] = 0;
	error = handle_enter(&call, batches->handle, &(struct why){batches->error, ERROR_BYTES});
	if (!error) {
		error = next_batch(batches, array);
		handle_leave(&call);
	}
	return error ? fail(batches, error) : 0;
}

static const char *get_last_error(struct arrow_stream *stream)
{
	const struct event_batches *batches = stream->owner;

	return batches->error;
}

static void release(struct arrow_stream *stream)
{
	struct event_batches *batches = stream->owner;
	struct handle_call call;

	for (unsigned i = 0; i < POOL; i++)
		table_drop(batches->pool[i]);
	/* What cannot be locked belongs to the parent of a fork. */
	if (handle_enter(&call, batches->handle, &(struct why){NULL, 0}) == 0) {
		event_rows_done(&batches->rows);
		options_done(&batches->options);
		handle_leave(&call);
	}
	handle_drop(batches->handle);
	free(batches);
	stream->release = NULL;
}

/* --- opening --- */

static int open_batches(struct event_batches *batches, struct evprof_trace *handle, const char *const *options,
			const struct why *why)
{
	const struct function_names *names;
	int error = options_parse(&batches->options, options, handle->trace, why);

	if (!error)
		error = options_need_wall_clock(&batches->options, EVENT_ROWS_NAME, why);
	if (error)
		return error;
	names = handle_names(handle);
	return names ? event_rows_init(&batches->rows, handle->trace, &batches->options, names) : -ENOMEM;
}

int evprof_trace_stream(struct evprof_trace *trace, const char *const *options, struct arrow_stream *stream,
			char *error, size_t error_bytes)
{
	struct why why = why_begin(error, error_bytes);
	struct event_batches *batches = calloc(1, sizeof(*batches));
	struct handle_call call;
	int result;

	if (!batches)
		return why_set(&why, -ENOMEM, "evprof: out of memory");
	result = handle_enter(&call, trace, &why);
	if (!result) {
		result = open_batches(batches, trace, options, &why);
		if (result) {
			event_rows_done(&batches->rows);
			options_done(&batches->options);
		}
		handle_leave(&call);
	}
	if (result) {
		free(batches);
		return why_end(&why, result);
	}
	batches->handle = handle_share(trace);
	*stream = (struct arrow_stream){get_schema, get_next, get_last_error, release, batches};
	return 0;
}
