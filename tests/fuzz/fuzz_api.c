/*
 * fuzz_api.c - any bytes as a trace, read through the C interface of the library (tools/api/api.h): every table, text
 * and stream.
 *
 * The first byte is the number of what is read, the second that of the options, the rest is the file; so the inputs of
 * fuzz_trace.c are inputs here. Nothing may crash or leak. Whatever is wrong with the file, a table holds together: its
 * numbers of texts have a text, its texts follow one another, and a stream has the rows of the table. Built by `make
 * fuzz`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/api/arrow.h"
#include "trace_mutator.h"

#define PREFIX 2
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ERROR_BYTES 256

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
				 uint8_t *out, size_t room, unsigned seed);

/* Options that every table and text takes, or refuses with a line. */
static const char *const options[][7] = {
    {NULL},
    {NULL},
    {"since-start", "", "batch-rows", "7", NULL},
    {"event-numbers", "", NULL},
    {"kind", "free", "kind", "span_end", "kind", "counter", NULL},
    {"from", "10", "to", "1us", NULL},
    {"from", "1us", NULL},
    {"max-depth", "2", "include", "*a*", NULL},
    {"min-duration", "5", "exclude", "re:^a", NULL},
    {"process", "1", "thread", "1", NULL},
    {"exclude-syspath", "", NULL},
    {"function", "*:*", NULL},
    {"weight", "peak", NULL},
    {"weight", "live", "clock", "cpu", NULL},
};

static const char *const tables[] = {"events", "definitions", "calls", "functions", "lines", "memory", "tasks"};
static const char *const texts[] = {"info", "counted-info", "damage", "folded", "html"};

static int file = -1;
static char path[64];
static char why[ERROR_BYTES];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	file = memfd_create("trace", MFD_CLOEXEC);
	if (file < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return 0;
}

/* An error is a line; without one there is none. */
static void expect_line(int result)
{
	if (result > 0 || (result < 0 && (!why[0] || strchr(why, '\n') || strlen(why) >= sizeof(why))))
		abort();
}

static int64_t value_at(const struct evprof_column *column, uint64_t row)
{
	switch (column->format[0]) {
	case 'c':
		return ((const int8_t *)column->data)[row];
	case 's':
		return ((const int16_t *)column->data)[row];
	case 'i':
		return ((const int32_t *)column->data)[row];
	case 'l':
	case 'g':
		return ((const int64_t *)column->data)[row];
	default:
		abort();
	}
}

static void check_texts(const struct evprof_column *column)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < column->text_count; i++) {
		if (column->text_offsets[i + 1] < column->text_offsets[i])
			abort();
		for (int32_t at = column->text_offsets[i]; at < column->text_offsets[i + 1]; at++)
			bytes += (uint8_t)column->text_bytes[at];
	}
	if (bytes == UINT64_MAX)
		abort();
}

static void check_table(const struct evprof_table *table)
{
	for (uint32_t number = 0; number < evprof_table_columns(table); number++) {
		struct evprof_column column;

		evprof_table_column(table, number, &column);
		check_texts(&column);
		for (uint64_t row = 0; row < evprof_table_rows(table); row++) {
			int64_t value = value_at(&column, row);

			if (column.text_offsets && (value < 0 || (uint64_t)value >= column.text_count))
				abort();
		}
	}
}

static void read_table(struct evprof_trace *trace, const char *name, const char *const *given)
{
	struct evprof_table *table = NULL;
	int result;

	why[0] = 0;
	result = evprof_trace_table(trace, name, given, &table, why, sizeof(why));
	expect_line(result);
	if (result == 0)
		check_table(table);
	if (table)
		evprof_table_free(table);
}

static void read_text(struct evprof_trace *trace, const char *name, const char *const *given)
{
	size_t length = 0, sum = 0;
	char *text = NULL;
	int result;

	why[0] = 0;
	result = evprof_trace_text(trace, name, given, &text, &length, why, sizeof(why));
	expect_line(result);
	if (result < 0)
		return;
	for (size_t i = 0; i < length; i++)
		sum += (uint8_t)text[i];
	if (sum == SIZE_MAX)
		abort();
	evprof_text_free(text);
}

/* The rows of all batches; -1: the stream failed. */
static int64_t read_batches(struct arrow_stream *stream)
{
	struct arrow_schema schema;
	struct arrow_array array;
	int64_t rows = 0;

	if (stream->get_schema(stream, &schema) != 0)
		return -1;
	for (;;) {
		if (stream->get_next(stream, &array) != 0) {
			rows = -1;
			break;
		}
		if (!array.release)
			break;
		if (array.child_count != schema.child_count || array.length <= 0)
			abort();
		for (int64_t i = 0; i < array.child_count; i++)
			if (array.children[i]->length != array.length)
				abort();
		rows += array.length;
		array.release(&array);
	}
	schema.release(&schema);
	return rows;
}

static void read_stream(struct evprof_trace *trace, const char *const *given)
{
	struct evprof_table *table = NULL;
	struct arrow_stream stream;
	int result;

	why[0] = 0;
	result = evprof_trace_stream(trace, given, &stream, why, sizeof(why));
	expect_line(result);
	if (result < 0)
		return;
	if (evprof_trace_table(trace, "events", given, &table, why, sizeof(why)) == 0) {
		int64_t rows = read_batches(&stream);

		if (rows >= 0 && (uint64_t)rows != evprof_table_rows(table))
			abort();
		evprof_table_free(table);
	}
	stream.release(&stream);
}

static void read_diff(struct evprof_trace *trace, const char *const *given)
{
	struct evprof_table *table = NULL;
	int result;

	why[0] = 0;
	result = evprof_trace_diff(trace, given, trace, NULL, &table, why, sizeof(why));
	expect_line(result);
	if (result == 0) {
		check_table(table);
		evprof_table_free(table);
	}
}

static void read_all(struct evprof_trace *trace, const char *const *given)
{
	for (size_t i = 0; i < COUNT_OF(tables); i++)
		read_table(trace, tables[i], given);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		read_text(trace, texts[i], given);
	read_stream(trace, given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evprof_trace *trace = NULL;
	const char *const *given;
	size_t what;
	int result;

	if (size < PREFIX)
		return 0;
	if (ftruncate(file, 0) < 0 || pwrite(file, data + PREFIX, size - PREFIX, 0) != (ssize_t)(size - PREFIX))
		abort();
	why[0] = 0;
	result = evprof_trace_open(path, &trace, why, sizeof(why));
	expect_line(result);
	if (result < 0)
		return 0;
	what = data[0] % (COUNT_OF(tables) + COUNT_OF(texts) + 3);
	given = options[data[1] % COUNT_OF(options)];
	if (what < COUNT_OF(tables))
		read_table(trace, tables[what], given);
	else if (what < COUNT_OF(tables) + COUNT_OF(texts))
		read_text(trace, texts[what - COUNT_OF(tables)], given);
	else if (what == COUNT_OF(tables) + COUNT_OF(texts))
		read_stream(trace, given);
	else if (what == COUNT_OF(tables) + COUNT_OF(texts) + 1)
		read_diff(trace, given);
	else
		read_all(trace, given);
	evprof_trace_close(trace);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	return trace_mutate(data, size, room, PREFIX, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
				 uint8_t *into, size_t room, unsigned seed)
{
	return trace_cross(one, one_size, other, other_size, into, room, PREFIX, seed);
}
