/*
 * test_tools_api.c - the library for other languages, by its C interface: tables, Arrow streams, who owns what, errors,
 * and damaged traces.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/api/arrow.h"
#include "trace_fixture.h"

#define CALLS 1000

static struct fixture *fixture;
static struct evprof_trace *trace;
static char *path;
static char error[256];

/* main calls f CALLS times, each a step of 10 ns; each f allocates a block of 64 bytes and frees it. */
static void set_up(void)
{
	uint32_t process, thread;

	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, 1, "a.py", 1, "main");
	fixture_code(fixture, process, 2, "b.py", 20, "f");
	thread = fixture_thread(fixture, process, 11, 1000);
	fixture_event(fixture, thread, WIRE_CALL, 1, 10);
	for (int i = 0; i < CALLS; i++) {
		fixture_event(fixture, thread, WIRE_CALL, 2, 10);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 64, 0, 1);
		fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 4096, 0, 0, 1);
		fixture_event(fixture, thread, WIRE_RETURN, 2, 8);
	}
	fixture_event(fixture, thread, WIRE_RETURN, 1, 10);
	fixture_flush(fixture, thread);
	fixture_end(fixture);
	path = fixture_save(fixture);
	cr_assert_eq(evprof_trace_open(path, &trace, error, sizeof(error)), 0, "%s", error);
}

static void tear_down(void)
{
	evprof_trace_close(trace);
	unlink(path);
	free(path);
	fixture_free(fixture);
}

TestSuite(api, .init = set_up, .fini = tear_down, .timeout = 60);

static struct evprof_column column_of(const struct evprof_table *table, const char *name)
{
	struct evprof_column column;

	for (uint32_t i = 0; i < evprof_table_columns(table); i++) {
		evprof_table_column(table, i, &column);
		if (strcmp(column.name, name) == 0)
			return column;
	}
	cr_expect_fail("there is no column %s", name);
	exit(1);
}

static bool has_text(const struct evprof_column *column, int32_t number, const char *wanted)
{
	int32_t from = column->text_offsets[number], length = column->text_offsets[number + 1] - from;

	return (size_t)length == strlen(wanted) && memcmp(column->text_bytes + from, wanted, (size_t)length) == 0;
}

Test(api, events)
{
	static const char *const since[] = {"since-start", "", NULL};
	struct evprof_column time, name, from, size;
	struct evprof_table *table;

	cr_assert_eq(evprof_trace_table(trace, "events", since, &table, error, sizeof(error)), 0, "%s", error);
	cr_expect_eq(evprof_table_rows(table), 4 * CALLS + 2);
	time = column_of(table, "time");
	name = column_of(table, "name");
	from = column_of(table, "from_name");
	size = column_of(table, "value2");
	/* A table needs no trace. */
	evprof_trace_close(trace);
	trace = NULL;
	cr_expect_str_eq(time.format, "l");
	cr_expect_str_eq(name.format, "i");
	for (size_t i = 1; i < 4 * CALLS + 1; i++) {
		cr_assert(((const int64_t *)time.data)[i] >= ((const int64_t *)time.data)[i - 1], "row %zu", i);
		cr_assert(has_text(&name, ((const int32_t *)name.data)[i], "f"), "row %zu", i);
		cr_assert(has_text(&from, ((const int32_t *)from.data)[i], "main"), "row %zu", i);
		cr_assert_eq(((const int64_t *)size.data)[i], i % 4 == 2 ? 64 : i % 4 == 3 ? -64 : 0, "row %zu", i);
	}
	evprof_table_free(table);
}

/* Opens what another fixture has. */
static struct evprof_trace *open_other(struct fixture *other)
{
	struct evprof_trace *opened = NULL;
	char *other_path;

	fixture_end(other);
	other_path = fixture_save(other);
	fixture_free(other);
	cr_assert_eq(evprof_trace_open(other_path, &opened, error, sizeof(error)), 0, "%s", error);
	unlink(other_path);
	free(other_path);
	return opened;
}

#define MANY 400000 /* 4 rows each: more than a second thread makes at once */

/* A second thread makes the memory of a large table. Each row has its values all the same. */
Test(api, large_table)
{
	static const char *const since[] = {"since-start", "", NULL};
	struct fixture *many = fixture_new();
	uint32_t process = fixture_process(many, 10, 1), thread;
	struct evprof_column time, name, address, size, tid;
	struct evprof_table *table;
	struct evprof_trace *opened;

	fixture_code(many, process, 1, "a.py", 1, "f");
	thread = fixture_thread(many, process, 11, 1000);
	for (uint64_t i = 0; i < MANY; i++) {
		fixture_event(many, thread, WIRE_CALL, 1, 10);
		fixture_memory(many, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 16 * i + 16, 64, 0, 1);
		fixture_memory(many, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 16 * i + 16, 0, 0, 1);
		fixture_event(many, thread, WIRE_RETURN, 1, 8);
		if (i % 10000 == 0)
			fixture_flush(many, thread);
	}
	opened = open_other(many);
	cr_assert_eq(evprof_trace_table(opened, "events", since, &table, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(evprof_table_rows(table), 4 * MANY);
	time = column_of(table, "time");
	name = column_of(table, "name");
	address = column_of(table, "value1");
	size = column_of(table, "value2");
	tid = column_of(table, "tid");
	for (size_t i = 0; i < 4 * MANY; i++) {
		bool block = i % 4 == 1 || i % 4 == 2;
		int64_t at = (int64_t)(20 * (i / 4) + (i % 4 == 3 ? 20 : 10 + i % 4));

		cr_assert_eq(((const int64_t *)time.data)[i] - ((const int64_t *)time.data)[0], at - 10, "row %zu", i);
		cr_assert_eq(((const int64_t *)address.data)[i], block ? (int64_t)(16 * (i / 4) + 16) : 0, "row %zu",
			     i);
		cr_assert_eq(((const int64_t *)size.data)[i], i % 4 == 1 ? 64 : i % 4 == 2 ? -64 : 0, "row %zu", i);
		cr_assert_eq(((const int32_t *)name.data)[i], ((const int32_t *)name.data)[0], "row %zu", i);
		cr_assert_eq(((const int32_t *)tid.data)[i], 11, "row %zu", i);
	}
	evprof_table_free(table);
	evprof_trace_close(opened);
}

static void put_blocks(struct fixture *many, uint32_t thread)
{
	for (uint64_t i = 0; i < MANY; i++) {
		fixture_memory(many, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 16 * i + 16, 64, 0, 1);
		fixture_memory(many, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 16 * i + 24, 8, 0, 1);
		if (i % 10000 == 0)
			fixture_flush(many, thread);
	}
}

/* The pid or tid that all rows have is written at the end, and others with each row. */
static void expect_columns(bool threads, bool processes)
{
	struct fixture *many = fixture_new();
	uint32_t first = fixture_process(many, 10, 1), second = processes ? fixture_process(many, 20, 10) : first;
	uint32_t thread = fixture_thread(many, first, 11, 1000), other;
	uint64_t rows = 2 * MANY + threads;
	struct evprof_table *table;
	struct evprof_trace *opened;
	const int32_t *pid, *tid;

	other = threads ? fixture_thread(many, second, 12, UINT64_C(1) << 40) : 0;
	put_blocks(many, thread);
	if (threads)
		fixture_memory(many, other, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 8, 8, 0, 1);
	opened = open_other(many);
	cr_assert_eq(evprof_trace_table(opened, "events", NULL, &table, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(evprof_table_rows(table), rows);
	pid = column_of(table, "pid").data;
	tid = column_of(table, "tid").data;
	for (uint64_t i = 0; i < rows; i++) {
		bool last = threads && i == rows - 1;

		cr_assert_eq(pid[i], last && processes ? 20 : 10, "row %zu", (size_t)i);
		cr_assert_eq(tid[i], last ? 12 : 11, "row %zu", (size_t)i);
	}
	evprof_table_free(table);
	evprof_trace_close(opened);
}

Test(api, one_thread_and_several)
{
	expect_columns(false, false);
	expect_columns(true, false);
	expect_columns(true, true);
}

/* It frees a block of another thread. */
Test(api, blocks_of_hidden_threads)
{
	static const char *const options[] = {"thread", "12", NULL};
	struct fixture *other = fixture_new();
	struct evprof_column size, tid;
	struct evprof_table *table;
	struct evprof_trace *opened;

	fixture_meta(other, 0,
		     "{\"type\":\"process\",\"process\":0,\"pid\":10,\"ppid\":1,\"start\":\"exec\","
		     "\"python\":\"3.11.2\",\"clock_kind\":0,\"clock_shift\":0,\"start_ticks\":0,"
		     "\"events\":[\"mem\"]}");
	other->processes = 1;
	fixture_thread(other, 0, 11, 1000);
	fixture_thread(other, 0, 12, 1000);
	fixture_memory(other, 0, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 64, 0, 1);
	fixture_memory(other, 1, WIRE_FREE, WIRE_DOMAIN_OBJ, 4096, 0, 0, 2);
	opened = open_other(other);
	cr_assert_eq(evprof_trace_table(opened, "events", options, &table, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(evprof_table_rows(table), 1);
	size = column_of(table, "value2");
	tid = column_of(table, "tid");
	cr_expect(((const int64_t *)size.data)[0] == -64 && ((const int32_t *)tid.data)[0] == 12);
	evprof_table_free(table);
	evprof_trace_close(opened);
}

/* A damaged trace of a few bytes may have a million ids without a definition. */
Test(api, unknown_functions_share_a_name)
{
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process(other, 10, 1), thread;
	struct evprof_trace *opened;
	struct evprof_table *table;
	struct evprof_column name;

	fixture_code(other, process, 1 << 20, "a.py", 1, "last");
	thread = fixture_thread(other, process, 11, 1000);
	fixture_event(other, thread, WIRE_CALL, 1 << 20, 10);
	fixture_event(other, thread, WIRE_CALL, 7, 10);
	fixture_event(other, thread, WIRE_CALL, (1 << 20) - 1, 10);
	opened = open_other(other);
	cr_assert_eq(evprof_trace_table(opened, "events", NULL, &table, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(evprof_table_rows(table), 3);
	name = column_of(table, "name");
	cr_expect_lt(name.text_count, 1 << 17, "%llu names", (unsigned long long)name.text_count);
	cr_expect(has_text(&name, ((const int32_t *)name.data)[0], "last"));
	cr_expect(has_text(&name, ((const int32_t *)name.data)[1], "<unknown function 7>"));
	cr_expect(has_text(&name, ((const int32_t *)name.data)[2], "<unknown function>"));
	evprof_table_free(table);
	evprof_trace_close(opened);
}

/* Who calls f, in all and in a part; and a pattern that is none. */
Test(api, callers)
{
	static const char *const f[] = {"function", "b.py:f", NULL};
	static const char *const part[] = {"function", "*:f", "from", "31", "to", "131", NULL};
	static const char *const main_function[] = {"function", "a:main", NULL};
	static const char *const none[] = {"function", "a:f", NULL};
	static const char *const wrong[] = {"function", "f", NULL};
	static const struct {
		const char *const *options;
		int64_t calls;
		int32_t line;
		const char *file, *name;
	} cases[] = {{f, CALLS, 1, "a.py", "main"}, {part, 5, 1, "a.py", "main"}, {main_function, 1, 0, "", ""}};
	struct evprof_table *table;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct evprof_column column;

		cr_assert_eq(evprof_trace_table(trace, "callers", cases[i].options, &table, error, sizeof(error)), 0,
			     "%s", error);
		cr_assert_eq(evprof_table_rows(table), 1, "case %zu", i);
		column = column_of(table, "calls");
		cr_expect_eq(*(const int64_t *)column.data, cases[i].calls, "case %zu: %lld calls", i,
			     (long long)*(const int64_t *)column.data);
		column = column_of(table, "line");
		cr_expect_eq(*(const int32_t *)column.data, cases[i].line, "case %zu", i);
		column = column_of(table, "file");
		cr_expect(has_text(&column, *(const int32_t *)column.data, cases[i].file), "case %zu", i);
		column = column_of(table, "name");
		cr_expect(has_text(&column, *(const int32_t *)column.data, cases[i].name), "case %zu", i);
		evprof_table_free(table);
	}
	cr_assert_eq(evprof_trace_table(trace, "callers", none, &table, error, sizeof(error)), 0, "%s", error);
	cr_expect_eq(evprof_table_rows(table), 0);
	evprof_table_free(table);
	cr_expect_eq(evprof_trace_table(trace, "callers", wrong, &table, error, sizeof(error)), -EINVAL);
	cr_expect(strstr(error, "MODULE:FUNCTION, not \"f\""), "%s", error);
}

/* Batches are small, and each is kept: no memory is used again that somebody has. */
Test(api, arrow_arrays_outlive_everything)
{
	static const char *const options[] = {"batch-rows", "100", "kind", "malloc", NULL};
	struct arrow_array arrays[32], child;
	struct arrow_schema schema;
	struct arrow_stream stream;
	int64_t rows = 0;
	size_t count = 0;

	cr_assert_eq(evprof_trace_stream(trace, options, &stream, error, sizeof(error)), 0, "%s", error);
	evprof_trace_close(trace);
	trace = NULL;
	cr_assert_eq(stream.get_schema(&stream, &schema), 0);
	cr_expect_eq(schema.child_count, 13);
	cr_expect_str_eq(schema.children[4]->name, "name");
	cr_expect_str_eq(schema.children[4]->dictionary->format, "u");
	schema.release(&schema);
	while (count < 32 && stream.get_next(&stream, &arrays[count]) == 0 && arrays[count].release)
		rows += arrays[count++].length;
	stream.release(&stream);
	cr_expect_eq(rows, CALLS);
	for (size_t i = 0; i < count; i++) {
		/* A consumer may take a child and release the rest. */
		child = *arrays[i].children[2];
		arrays[i].children[2]->release = NULL;
		arrays[i].release(&arrays[i]);
		for (int64_t row = 0; row < child.length; row++)
			cr_assert_eq(((const int64_t *)child.buffers[1])[row], 64);
		child.release(&child);
	}
}

/* A loop of Python has a batch until it has the next one: two tables are enough for any number of batches.
 * A mark behind the rows of the first two is found again. An address says nothing, as new memory may have the old
 * one.
 */
Test(api, memory_of_batches_is_used_again)
{
	static const char *const options[] = {"batch-rows", "1", NULL};
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process(other, 10, 1), thread = fixture_thread(other, process, 11, 1000);
	struct arrow_array arrays[2] = {{0}};
	struct evprof_trace *opened;
	struct arrow_stream stream;
	int64_t *mark;
	unsigned count;

	for (unsigned i = 0; i < 50000; i++) {
		fixture_event(other, thread, WIRE_CALL, 1, 10);
		fixture_event(other, thread, WIRE_RETURN, 1, 10);
		if (i % 1000 == 0)
			fixture_flush(other, thread);
	}
	opened = open_other(other);
	cr_assert_eq(evprof_trace_stream(opened, options, &stream, error, sizeof(error)), 0, "%s", error);
	for (count = 0;; count++) {
		struct arrow_array *array = &arrays[count % 2];

		if (array->release)
			array->release(array);
		cr_assert_eq(stream.get_next(&stream, array), 0);
		if (!array->release)
			break;
		mark = (int64_t *)array->children[0]->buffers[1] + 16384; /* behind any batch of one step */
		if (count < 2)
			*mark = -1;
		cr_expect_eq(*mark, -1, "batch %u", count);
	}
	cr_assert_geq(count, 4);
	arrays[(count - 1) % 2].release(&arrays[(count - 1) % 2]);
	stream.release(&stream);
	evprof_trace_close(opened);
}

Test(api, errors)
{
	static const char *const wrong[][3] = {
	    {"process", "77", NULL},   {"from", "soon", NULL}, {"max-depth", "0", NULL}, {"kind", "calls", NULL},
	    {"include", "re:(", NULL}, {"colour", "", NULL},   {"clock", "cpu", NULL}};
	struct evprof_table *table = NULL;
	struct evprof_trace *other = NULL;
	struct arrow_stream stream;

	cr_expect_eq(evprof_trace_open("/nonexistent.evp", &other, error, sizeof(error)), -ENOENT);
	cr_expect(strstr(error, "/nonexistent.evp: No such file"), "%s", error);
	cr_expect_eq(evprof_trace_open("/proc/self/exe", &other, error, sizeof(error)), -EINVAL);
	cr_expect(strstr(error, "not an evprof trace"), "%s", error);
	cr_expect_null(other);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(evprof_trace_table(trace, "events", wrong[i], &table, error, sizeof(error)), -EINVAL);
		cr_expect(strncmp(error, "evprof: ", 8) == 0, "%s: %s", wrong[i][0], error);
		cr_expect_eq(evprof_trace_stream(trace, wrong[i], &stream, error, sizeof(error)), -EINVAL);
	}
	cr_expect_eq(evprof_trace_table(trace, "nothing", NULL, &table, error, sizeof(error)), -EINVAL);
	cr_expect_null(table);
}

/* f holds the block that it has allocated last; what main calls is not main's. */
Test(api, memory_at_the_peak)
{
	struct evprof_column name, bytes, peak_blocks, peak_bytes;
	struct evprof_table *table;

	cr_assert_eq(evprof_trace_table(trace, "memory", NULL, &table, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(evprof_table_rows(table), 2);
	name = column_of(table, "name");
	bytes = column_of(table, "bytes");
	peak_blocks = column_of(table, "peak_blocks");
	peak_bytes = column_of(table, "peak_bytes");
	for (size_t i = 0; i < 2; i++) {
		bool f = has_text(&name, ((const int32_t *)name.data)[i], "f");

		cr_expect_eq(((const int64_t *)bytes.data)[i], f ? 64 * CALLS : 0);
		cr_expect_eq(((const int64_t *)peak_blocks.data)[i], f ? 1 : 0);
		cr_expect_eq(((const int64_t *)peak_bytes.data)[i], f ? 64 : 0);
	}
	evprof_table_free(table);
}

/* The lines were not recorded. */
Test(api, memory_by_line)
{
	struct evprof_column name, line, bytes, peak_bytes, end_bytes, temporary, pid;
	struct evprof_table *table;

	cr_assert_eq(evprof_trace_table(trace, "memory_lines", NULL, &table, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(evprof_table_rows(table), 1);
	name = column_of(table, "name");
	line = column_of(table, "line");
	bytes = column_of(table, "bytes");
	peak_bytes = column_of(table, "peak_bytes");
	end_bytes = column_of(table, "end_bytes");
	temporary = column_of(table, "temporary");
	pid = column_of(table, "pid");
	cr_expect(has_text(&name, ((const int32_t *)name.data)[0], "f"));
	cr_expect_eq(((const int32_t *)line.data)[0], 0);
	cr_expect_eq(((const int64_t *)bytes.data)[0], 64 * CALLS);
	cr_expect_eq(((const int64_t *)peak_bytes.data)[0], 64);
	cr_expect_eq(((const int64_t *)end_bytes.data)[0], 0);
	cr_expect_eq(((const int64_t *)temporary.data)[0], CALLS);
	cr_expect_gt(((const int64_t *)pid.data)[0], 0);
	evprof_table_free(table);
}

/* The lock and the threads of a trace are the parent's. */
Test(api, not_in_a_child)
{
	struct evprof_table *table;
	int status;
	pid_t child = fork();

	if (!child)
		_exit(-evprof_trace_table(trace, "events", NULL, &table, error, sizeof(error)));
	cr_assert(waitpid(child, &status, 0) == child);
	cr_expect_eq(WEXITSTATUS(status), ECHILD);
}

static void read_all(const char *damaged)
{
	static const char *const tables[] = {"events", "definitions"}, *const texts[] = {"info", "counted-info",
											 "damage"};
	struct evprof_trace *opened;
	struct evprof_table *table;
	size_t length;
	char *text;

	if (evprof_trace_open(damaged, &opened, error, sizeof(error)) < 0)
		return;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (evprof_trace_table(opened, tables[i], NULL, &table, error, sizeof(error)) == 0)
			evprof_table_free(table);
	if (evprof_trace_diff(opened, NULL, trace, NULL, &table, error, sizeof(error)) == 0)
		evprof_table_free(table);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (evprof_trace_text(opened, texts[i], NULL, &text, &length, error, sizeof(error)) == 0)
			evprof_text_free(text);
	evprof_trace_close(opened);
}

/* One bit after the other; what is found is only that nothing happens. */
Test(api, damage)
{
	char name[] = "/tmp/evprof-api.XXXXXX";
	int fd = mkstemp(name);

	cr_assert(fd >= 0);
	for (size_t at = 0; at < fixture->size; at += fixture->size / 400 + 1) {
		uint8_t flipped = fixture->bytes[at] ^ (uint8_t)(1u << at % 8);

		cr_assert(pwrite(fd, fixture->bytes, fixture->size, 0) == (ssize_t)fixture->size);
		cr_assert(pwrite(fd, &flipped, 1, (off_t)at) == 1);
		read_all(name);
		cr_assert(ftruncate(fd, (off_t)at) == 0);
		read_all(name);
	}
	close(fd);
	unlink(name);
}

/* The names outlive the walk that finds no call. */
static int take_none(void *owner, struct evprof_table *rows)
{
	struct evprof_column name = column_of(rows, "name");
	bool found = false;

	cr_expect_eq(evprof_table_rows(rows), 0);
	for (int32_t i = 0; i < (int32_t)name.text_count; i++)
		found |= has_text(&name, i, "main");
	cr_expect(found);
	++*(int *)owner;
	return 0;
}

static const char *const short_batches[] = {"batch-rows", "10", NULL};

/* By either way to name the file of a cut. */
Test(api, a_cut_leaves_the_trace)
{
	static const char *const ways[] = {"output", "span-path"};
	char *span, *text;
	size_t length;

	cr_assert(asprintf(&span, "10:1=%s", path) > 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		const char *options[] = {ways[i], i ? span : path, NULL};

		error[0] = 0;
		cr_expect_eq(evprof_trace_text(trace, "cut", options, &text, &length, error, sizeof(error)), -EINVAL);
		cr_expect(strstr(error, "is the trace itself"), "%s: %s", ways[i], error);
	}
	free(span);
}

static int take_rows(void *owner, struct evprof_table *rows)
{
	*(uint64_t *)owner += evprof_table_rows(rows);
	return 0;
}

/* What the trace is used for meanwhile changes nothing of the walk. */
static int take_and_read(void *owner, struct evprof_table *rows)
{
	uint64_t others = 0;
	size_t length;
	char *damage;

	cr_assert_eq(evprof_trace_text(trace, "damage", NULL, &damage, &length, error, sizeof(error)), 0, "%s", error);
	evprof_text_free(damage);
	cr_assert_eq(evprof_trace_rows(trace, "calls", short_batches, take_rows, &others, error, sizeof(error)), 0,
		     "%s", error);
	cr_expect_eq(others, CALLS + 1);
	return take_rows(owner, rows);
}

Test(api, the_trace_may_be_used_between_batches)
{
	uint64_t count = 0;

	cr_assert_eq(evprof_trace_rows(trace, "calls", short_batches, take_and_read, &count, error, sizeof(error)), 0,
		     "%s", error);
	cr_expect_eq(count, CALLS + 1);
}

/* The bytes of a dictionary are those of the first batch. */
static int take_names(void *owner, struct evprof_table *rows)
{
	struct evprof_column thread = column_of(rows, "thread");
	const char **bytes = owner;

	cr_assert(!*bytes || *bytes == thread.text_bytes);
	*bytes = thread.text_bytes;
	return 0;
}

/* The texts have room for less than another name. */
Test(api, batches_share_the_names_of_threads)
{
	static const char *const names[] = {"MainThread", "Thread-1 (worker)"};
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process(other, 10, 1);
	struct evprof_trace *opened;
	const char *bytes = NULL;

	fixture_code(other, process, 1, "a.py", 1, "f");
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t thread = fixture_thread(other, process, 10 + i, 1000);

		fixture_define(other, process, WIRE_DEFINE_THREAD_NAME, 10 + i, 0, "", names[i], "", "");
		for (int k = 0; k < 20; k++) {
			fixture_event(other, thread, WIRE_CALL, 1, 1);
			fixture_event(other, thread, WIRE_RETURN, 1, 1);
		}
	}
	opened = open_other(other);
	cr_assert_eq(evprof_trace_rows(opened, "calls", short_batches, take_names, &bytes, error, sizeof(error)), 0,
		     "%s", error);
	evprof_trace_close(opened);
}

/* A stack that only allocations have is none of calls. */
Test(api, memory_alone_has_no_calls)
{
	const uint64_t place = wire_place(1, 0);
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process_with(other, "\"events\":[\"mem\"]");
	uint32_t thread = fixture_thread(other, process, 10, 1000);
	struct evprof_trace *opened;
	struct evprof_table *table;
	uint64_t count = 0;

	fixture_code(other, process, 1, "a.py", 1, "f");
	fixture_extended(other, thread, WIRE_STACK_CHANGE, 0, &place, 1, 0);
	fixture_memory(other, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 64, 0, 10);
	opened = open_other(other);
	cr_assert_eq(evprof_trace_table(opened, "calls", NULL, &table, error, sizeof(error)), 0, "%s", error);
	cr_expect_eq(evprof_table_rows(table), 0);
	evprof_table_free(table);
	cr_assert_eq(evprof_trace_rows(opened, "calls", short_batches, take_rows, &count, error, sizeof(error)), 0,
		     "%s", error);
	cr_expect_eq(count, 0);
	evprof_trace_close(opened);
}

Test(api, a_stretch_without_calls)
{
	static const char *const nothing[] = {"from", "1000000000", NULL};
	int batches = 0;

	cr_assert_eq(evprof_trace_rows(trace, "calls", nothing, take_none, &batches, error, sizeof(error)), 0, "%s",
		     error);
	cr_assert_eq(batches, 1);
}

Test(api, parts_are_of_calls_and_one_of_their_number)
{
	static const struct {
		const char *what, *options[5], *line;
	} wrong[] = {
	    {"samples", {"part", "1", "parts", "2", NULL}, "evprof: \"samples\" does not come in parts"},
	    {"calls", {"part", "3", "parts", "2", NULL}, "evprof: part is from 1 to parts"},
	    {"calls", {"parts", "2", NULL}, "evprof: part is from 1 to parts"},
	    {"calls", {"part", "1", NULL}, "evprof: part is from 1 to parts"},
	};
	int batches = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(evprof_trace_rows(trace, wrong[i].what, wrong[i].options, take_none, &batches, error,
					       sizeof(error)),
			     -EINVAL);
		cr_expect_str_eq(error, wrong[i].line);
	}
	cr_assert_eq(batches, 0);
}

/* --- clocks --- */

static struct evprof_trace *open_with_cpu_times(void)
{
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process_with(other, "\"events\":[\"call\",\"mem\",\"cpu\"]"), thread;

	fixture_code(other, process, 1, "a.py", 1, "main");
	thread = fixture_thread(other, process, 11, 1000);
	fixture_event(other, thread, WIRE_CALL, 1, 10);
	fixture_memory(other, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 64, 0, 1);
	fixture_event(other, thread, WIRE_RETURN, 1, 10);
	return open_other(other);
}

#define CPU "clock", "cpu"

/* What adds times up takes any clock; what has times of all threads, or their order, refuses all but the wall's. */
Test(api, clocks)
{
	static const struct {
		const char *what, *options[5];
	} added[] = {{"functions", {CPU}}, {"lines", {CPU}},
		     {"calls", {CPU}},	   {"callers", {CPU, "function", "a:main"}},
		     {"folded", {CPU}},	   {"folded", {CPU, "weight", "bytes"}}},
	  refused[] = {{"events", {CPU}},
		       {"memory", {CPU}},
		       {"memory_lines", {CPU}},
		       {"tasks", {CPU}},
		       {"html", {CPU}},
		       {"folded", {CPU, "weight", "live"}},
		       {"cut", {CPU, "output", "/nonexistent/cut.evp"}}};
	static const char *const cpu[] = {CPU, NULL}, *const by_line[] = {CPU, "by", "line", NULL};
	struct evprof_trace *opened = open_with_cpu_times();
	struct evprof_table *table;
	struct arrow_stream stream;
	size_t length;
	int batches = 0;
	char *text;

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		if (strcmp(added[i].what, "folded") != 0) {
			cr_assert_eq(
			    evprof_trace_table(opened, added[i].what, added[i].options, &table, error, sizeof(error)),
			    0, "%s: %s", added[i].what, error);
			evprof_table_free(table);
			continue;
		}
		cr_assert_eq(
		    evprof_trace_text(opened, added[i].what, added[i].options, &text, &length, error, sizeof(error)), 0,
		    "%s: %s", added[i].what, error);
		evprof_text_free(text);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *what = refused[i].what, *const *options = refused[i].options;
		int result = i < 4 ? evprof_trace_table(opened, what, options, &table, error, sizeof(error))
				   : evprof_trace_text(opened, what, options, &text, &length, error, sizeof(error));

		cr_expect_eq(result, -EINVAL, "%s", what);
		cr_expect(strstr(error, " the wall clock only"), "%s: %s", what, error);
	}
	cr_expect_eq(evprof_trace_stream(opened, cpu, &stream, error, sizeof(error)), -EINVAL);
	cr_expect_eq(evprof_trace_rows(opened, "calls", cpu, take_none, &batches, error, sizeof(error)), -EINVAL);
	cr_expect_eq(evprof_trace_rows(opened, "samples", cpu, take_none, &batches, error, sizeof(error)), -EINVAL);
	cr_expect_eq(evprof_trace_diff(opened, by_line, opened, by_line, &table, error, sizeof(error)), -EINVAL);
	cr_assert_eq(evprof_trace_diff(opened, cpu, opened, cpu, &table, error, sizeof(error)), 0, "%s", error);
	evprof_table_free(table);
	cr_expect_eq(batches, 0);
	evprof_trace_close(opened);
}

/* --- damage --- */

static char *text_of_trace(struct evprof_trace *opened, const char *what)
{
	size_t length;
	char *text;

	cr_assert_eq(evprof_trace_text(opened, what, NULL, &text, &length, error, sizeof(error)), 0, "%s", error);
	return text;
}

/* A trace with its end is opened by its index, and has the numbers of events: nobody need read the chunk. */
Test(api, damage_that_nobody_has_read)
{
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process(other, 10, 1), thread = fixture_thread(other, process, 11, 1000);
	struct evprof_trace *opened;
	char *before, *counted, *after, *again;
	size_t chunk;

	fixture_code(other, process, 1, "a.py", 1, "main");
	for (int i = 0; i < 3; i++) {
		chunk = other->size;
		fixture_event(other, thread, WIRE_CALL, 1, 10);
		fixture_event(other, thread, WIRE_RETURN, 1, 10);
		fixture_flush(other, thread);
	}
	other->bytes[chunk + sizeof(struct trace_chunk)] ^= 1;
	fixture_meta(other, process,
		     "{\"type\":\"thread_end\",\"thread\":0,\"events\":{\"call\":3,\"return\":3},\"lost\":{}}");
	opened = open_other(other);
	before = text_of_trace(opened, "damage");
	counted = text_of_trace(opened, "counted-info");
	after = text_of_trace(opened, "damage");
	evprof_text_free(text_of_trace(opened, "counted-info"));
	again = text_of_trace(opened, "damage");
	cr_expect_str_eq(before, "");
	cr_expect(strstr(counted, "\"call\":3"), "%s", counted);
	cr_expect(strstr(after, "1 damaged chunk"), "%s", after);
	cr_expect_str_eq(again, after);
	evprof_text_free(before);
	evprof_text_free(counted);
	evprof_text_free(after);
	evprof_text_free(again);
	evprof_trace_close(opened);
}

/* --- what the tool says on stderr --- */

/* A block, and events that are missing. */
static struct evprof_trace *open_with_memory(const char *members)
{
	struct fixture *other = fixture_new();
	uint32_t process = fixture_process_with(other, members), thread;

	fixture_code(other, process, 1, "a.py", 1, "main");
	thread = fixture_thread(other, process, 11, 1000);
	fixture_event(other, thread, WIRE_CALL, 1, 10);
	fixture_memory(other, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 64, 0, 1);
	fixture_event(other, thread, WIRE_GAP, 0, 10);
	fixture_extra(other, thread, 1);
	return open_other(other);
}

/* Where the tool prints a note, an error if the weight is not in the trace, and nothing if it is. */
Test(api, nothing_is_printed)
{
	static const char *const weights[] = {"time", "bytes", "allocations", "live", "peak", "temporary"};
	static const struct {
		const char *members, *refused, *line;
	} traces[] = {{"\"events\":[\"call\",\"mem\"],\"memory_interval\":65536", "temporary",
		       "evprof: memory was sampled, which cannot show temporary allocations"},
		      {"\"events\":[\"call\",\"mem\"],\"alive_only\":true", "peak",
		       "evprof: the trace keeps what is alive at its end, and no peak"}};
	int kept = dup(STDERR_FILENO);
	FILE *said = tmpfile();

	cr_assert(said && kept >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
	for (size_t i = 0; i < 12; i++) {
		const char *weight = weights[i % 6], *options[] = {"weight", weight, NULL}, *line = traces[i / 6].line;
		struct evprof_trace *opened = open_with_memory(traces[i / 6].members);
		size_t length;
		char *text;

		if (evprof_trace_text(opened, "folded", options, &text, &length, error, sizeof(error)) == 0)
			evprof_text_free(text);
		cr_expect_str_eq(error, strcmp(weight, traces[i / 6].refused) == 0 ? line : "", "%s", weight);
		evprof_trace_close(opened);
	}
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	cr_expect_eq(lseek(fileno(said), 0, SEEK_END), 0, "something is printed");
	fclose(said);
}
