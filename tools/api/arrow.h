/*
 * arrow.h - Arrow's C data and C stream interfaces: tables for pyarrow, polars, DuckDB and others, without a copy.
 *
 * Source of the layouts: https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html.
 */
#ifndef EVPROF_TOOLS_API_ARROW_H
#define EVPROF_TOOLS_API_ARROW_H

#include <stdint.h>

#include "api/api.h"
#include "api/table.h"

struct arrow_schema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t child_count;
	struct arrow_schema **children;
	struct arrow_schema *dictionary;
	void (*release)(struct arrow_schema *schema); /* NULL: released */
	void *owner;
};

struct arrow_array {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t buffer_count;
	int64_t child_count;
	const void **buffers;
	struct arrow_array **children;
	struct arrow_array *dictionary;
	void (*release)(struct arrow_array *array);
	void *owner;
};

struct arrow_stream {
	/* Both return 0 or errno. At the end the array is released: its release is NULL. */
	int (*get_schema)(struct arrow_stream *stream, struct arrow_schema *schema);
	int (*get_next)(struct arrow_stream *stream, struct arrow_array *array);
	const char *(*get_last_error)(struct arrow_stream *stream);
	void (*release)(struct arrow_stream *stream);
	void *owner;
};

/* The type of a table: a struct of its columns; columns of texts are dictionaries. Returns 0 or -ENOMEM. */
int arrow_schema_of(const struct evprof_table *table, struct arrow_schema *schema);
/* The rows of a table. The array and its children hold references to it. Returns 0 or -ENOMEM. */
int arrow_array_of(struct evprof_table *table, struct arrow_array *array);

#endif
