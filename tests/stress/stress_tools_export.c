/*
 * stress_tools_export.c - the exporters that have a second thread (batches.h) write one trace over and over. Run by
 * `make stress`, and under the thread sanitizer by `make TSAN=1 stress`.
 *
 *   stress_tools_export [SECONDS]     default: 6
 *
 * Each file must be what it is with one processor, where there is no second thread, byte by byte; a disk that is full
 * must be reported, whichever thread meets it.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/trace_fixture.h"
#include "tools/export/export.h"
#include "tools/cmd/verbs.h"

#define PROCESSES 3
#define THREADS 3 /* of each */
#define CHUNKS 8  /* of each thread */
#define EVENTS 6000

static const char *const names[] = {"html", "csv", "firefox", "speedscope"};

#define FORMATS (sizeof(names) / sizeof(names[0]))

struct written {
	char *bytes;
	size_t length;
};

static void require(bool holds, const char *what, const char *format)
{
	if (holds)
		return;
	fprintf(stderr, "stress_tools_export: %s: %s\n", format, what);
	exit(1);
}

/* One call of a pseudo-random length, with a block of memory; some raise or call C. */
static void add_events(struct fixture *fixture, uint32_t thread, uint32_t number)
{
	uint32_t random = number * 2654435761u;
	uint32_t code = 1 + (random >> 8) % 9, ticks = (random >> 20) % 7 ? 50 : 40000 + (random >> 12);

	fixture_event(fixture, thread, WIRE_CALL, code, 20);
	if (random % 3 == 0) {
		fixture_event(fixture, thread, WIRE_C_CALL, 1, 10);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 16 * ((uint64_t)number % 500 + 1), 100, 0,
			       5);
		fixture_event(fixture, thread, WIRE_C_RETURN, 1, 15);
	}
	if (random % 91 == 0)
		fixture_event(fixture, thread, WIRE_EXCEPTION, 1, 1);
	if (random % 7 == 0)
		fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 16 * ((uint64_t)number % 500 + 1), 0, 0, 5);
	fixture_event(fixture, thread, random % 91 ? WIRE_RETURN : WIRE_UNWIND, code, ticks);
}

static char *make_trace(void)
{
	struct fixture *fixture = fixture_new();
	char *path;

	for (uint32_t i = 0; i < PROCESSES; i++) {
		uint32_t process = fixture_process(fixture, 10 + (int)i, 1);

		for (uint32_t code = 1; code < 10; code++) {
			char name[16];

			snprintf(name, sizeof(name), "f, \"%u\"", code);
			fixture_code(fixture, process, code, "a.py", code, name);
		}
		fixture_function(fixture, process, 1, "", "len", "builtins");
		fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, "", "KeyError", "KeyError", "builtins");
		for (uint32_t k = 0; k < THREADS; k++)
			fixture_thread(fixture, process, 100 * i + k, 1000 + k);
	}
	for (uint32_t chunk = 0; chunk < CHUNKS; chunk++)
		for (uint32_t thread = 0; thread < PROCESSES * THREADS; thread++) {
			for (uint32_t i = 0; i < EVENTS / 3; i++)
				add_events(fixture, thread, (chunk * 64 + thread) * EVENTS + i);
			fixture_flush(fixture, thread);
		}
	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

static const struct export_format *format_of(const char *name)
{
	size_t i;

	for (i = 0; i < export_format_count; i++)
		if (strcmp(export_formats[i].name, name) == 0)
			return &export_formats[i];
	require(false, "there is no such format", name);
	return NULL;
}

/* Returns what the exporter or the closing of the output said. */
static int export_to(const char *trace_path, const struct export_format *format, const char *path)
{
	struct filter filter = {0};
	struct export export = {.trace = trace_open_with_message(trace_path), .filter = &filter};
	struct progress progress;
	struct output output;
	int error;

	require(export.trace && output_open(&output, path) == 0, "nothing opens", format->name);
	progress_begin(&progress, "exporting", 0);
	error = format->write(&export, &output, &progress);
	progress_end(&progress);
	if (error)
		output_abandon(&output);
	else
		error = output_close(&output);
	trace_close(export.trace);
	return error;
}

static struct written export_and_read(const char *trace_path, const struct export_format *format)
{
	struct written written = {0};
	struct stat status;
	char path[] = "/tmp/stress-export-XXXXXX";
	int file = mkstemp(path);
	FILE *stream;

	close(file);
	require(export_to(trace_path, format, path) == 0, "it is not written", format->name);
	stream = fopen(path, "r");
	require(stream && fstat(fileno(stream), &status) == 0, "it is not there", format->name);
	written.length = (size_t)status.st_size;
	written.bytes = malloc(written.length + 1);
	require(fread(written.bytes, 1, written.length, stream) == written.length, "it cannot be read", format->name);
	fclose(stream);
	unlink(path);
	return written;
}

static void export_alone(const char *path, struct written expected[FORMATS])
{
	cpu_set_t before, one;
	int cpu = 0;

	require(sched_getaffinity(0, sizeof(before), &before) == 0, "no affinity", "all");
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (size_t i = 0; i < FORMATS; i++)
		expected[i] = export_and_read(path, format_of(names[i]));
	sched_setaffinity(0, sizeof(before), &before);
}

int main(int argc, char **argv)
{
	struct written expected[FORMATS];
	char *path = make_trace();
	unsigned files = 0, full = 0;
	time_t end;

	export_alone(path, expected);
	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 6);
	for (size_t i = 0; time(NULL) < end || files < FORMATS; i = (i + 1) % FORMATS) {
		const struct export_format *format = format_of(names[i]);
		struct written written = export_and_read(path, format);

		require(written.length == expected[i].length &&
			    memcmp(written.bytes, expected[i].bytes, written.length) == 0,
			"the file is not what it is without a second thread", format->name);
		free(written.bytes);
		files++;
		if (access("/dev/full", W_OK) == 0)
			require(export_to(path, format, "/dev/full") == -ENOSPC, "a full disk is not reported",
				format->name);
		full++;
	}
	for (size_t i = 0; i < FORMATS; i++)
		free(expected[i].bytes);
	unlink(path);
	free(path);
	printf("%u files as they are without a second thread; %u times the disk was full\n", files, full);
	return 0;
}
