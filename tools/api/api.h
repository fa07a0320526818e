/*
 * api.h - the C interface of libevprof-reader.so: a trace as tables, texts and Arrow streams. For the Python package
 * (tools/python/evprof), which calls it by ctypes, and for any other program.
 *
 * Functions return 0 or -errno. On an error they write one line to error, which has error_bytes bytes, and leave
 * their results unchanged. -EINVAL, -EBADMSG and -ENOTSUP are about the trace or the options; others are the
 * system's. Nothing is printed, and nothing ends the process; a damaged trace gives what is intact of it.
 *
 * options are pairs of names and values, ended by NULL; NULL: none. Names are those of the options of `evprof
 * export` and `evprof report` without dashes, and those that options.h lists. process, thread, include and exclude
 * may come again.
 *
 * Threads: any thread may call with any trace; calls with one trace wait for each other. A table never changes, and
 * needs no trace. After a fork only the process that opened a trace can read it: -ECHILD.
 *
 * Ownership: what a function returns is the caller's, who frees it with the function named. A table lives until its
 * last reference is dropped; an Arrow array holds one.
 */
#ifndef EVPROF_TOOLS_API_API_H
#define EVPROF_TOOLS_API_API_H

#include <stddef.h>
#include <stdint.h>

#define EVPROF_READER_API __attribute__((visibility("default")))

/* It changes when the interface does. */
#define EVPROF_READER_VERSION 2

struct evprof_trace;
struct evprof_table;
struct arrow_stream; /* struct ArrowArrayStream of Arrow's C stream interface */

/* A column of a table. Everything it points to is valid as long as the table. */
struct evprof_column {
	const char *name;
	const char *format; /* of the values, as in Arrow's C data interface: c, s, i, l, g */
	const void *data;   /* one value a row */
	/* Values are indices of these texts; NULL: numbers. Text i is UTF-8 from text_offsets[i] up to [i + 1]. */
	const char *text_bytes;
	const int32_t *text_offsets; /* text_count + 1 */
	uint64_t text_count;
};

EVPROF_READER_API uint32_t evprof_reader_version(void);
/* The release of evprof, such as "1.0". */
EVPROF_READER_API const char *evprof_reader_release(void);

/* Opens a trace and reads everything but its events. evprof_trace_close() frees it. */
EVPROF_READER_API int evprof_trace_open(const char *path, struct evprof_trace **trace, char *error, size_t error_bytes);
/* Streams of the trace stay valid. NULL is allowed. */
EVPROF_READER_API void evprof_trace_close(struct evprof_trace *trace);

/*
 * Makes a table: "events" (docs/table.md), "definitions", or an analysis that table_kinds of trace_tables.c lists.
 * evprof_table_free() drops it.
 */
EVPROF_READER_API int evprof_trace_table(struct evprof_trace *trace, const char *what, const char *const *options,
					 struct evprof_table **table, char *error, size_t error_bytes);
/*
 * Makes the table of the functions of two traces, matched, and their counts (diff.c), the largest change of own time
 * first.
 */
EVPROF_READER_API int evprof_trace_diff(struct evprof_trace *a, const char *const *options_a, struct evprof_trace *b,
					const char *const *options_b, struct evprof_table **table, char *error,
					size_t error_bytes);
/*
 * Makes a text, not terminated, in text and length: "info" (JSON), "counted-info" (the same; the whole file is read and
 * checked), "damage" (one line about what was read until now; empty without damage), and outputs of the tool that
 * text_kinds of trace_texts.c lists. evprof_text_free() frees it.
 */
EVPROF_READER_API int evprof_trace_text(struct evprof_trace *trace, const char *what, const char *const *options,
					char **text, size_t *length, char *error, size_t error_bytes);
EVPROF_READER_API void evprof_text_free(char *text);

/*
 * Makes an Arrow stream of the events, which are read as the consumer asks for batches. Memory: two batches, and what
 * the event stream needs (replay/event_stream.h). The option batch-rows sets the least number of rows of a batch.
 */
EVPROF_READER_API int evprof_trace_stream(struct evprof_trace *trace, const char *const *options,
					  struct arrow_stream *stream, char *error, size_t error_bytes);

/*
 * Takes a batch of rows, which is valid until it returns; an Arrow stream of it, made meanwhile, stays valid. It may
 * make other calls with the trace, or wait for threads that do. Not 0: no more rows are wanted.
 */
typedef int evprof_take_rows(void *owner, struct evprof_table *rows);
/*
 * Makes a table in batches of batch-rows rows, without a limit for their number: "calls", a row each when it ends
 * (call_rows.c), or "samples" (sample_rows.c). The first batch comes even if it has no rows. Memory: the batches that
 * the caller keeps and one more, and what a call walk needs (replay/call_walk.h). -ECANCELED: no more were wanted.
 */
EVPROF_READER_API int evprof_trace_rows(struct evprof_trace *trace, const char *what, const char *const *options,
					evprof_take_rows *take, void *owner, char *error, size_t error_bytes);

EVPROF_READER_API uint64_t evprof_table_rows(const struct evprof_table *table);
EVPROF_READER_API uint32_t evprof_table_columns(const struct evprof_table *table);
EVPROF_READER_API void evprof_table_column(const struct evprof_table *table, uint32_t number,
					   struct evprof_column *column);
EVPROF_READER_API void evprof_table_free(struct evprof_table *table);
/* Makes an Arrow stream of one batch, which shares the table's memory. */
EVPROF_READER_API int evprof_table_stream(struct evprof_table *table, struct arrow_stream *stream);

/* Memory for an Arrow stream; freeing it also releases the stream, if nobody has moved it. */
EVPROF_READER_API struct arrow_stream *evprof_stream_new(void);
EVPROF_READER_API void evprof_stream_free(struct arrow_stream *stream);
/*
 * The destructor of a PyCapsule that owns a stream of evprof_stream_new(). Python's PyCapsule_GetPointer has to be
 * passed to evprof_capsule_setup() once.
 */
EVPROF_READER_API void evprof_capsule_setup(void *(*get_pointer)(void *capsule, const char *name));
EVPROF_READER_API void evprof_capsule_done(void *capsule);

#endif
