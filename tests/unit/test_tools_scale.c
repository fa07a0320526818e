/*
 * test_tools_scale.c - what a reader costs when a trace has eight times as many processes: eight times as much.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/export/export.h"
#include "tools/cmd/verbs.h"
#include "tools_verb.h"
#include "trace_fixture.h"

static struct fixture *fixture;
static uint32_t root;

static void begin(void)
{
	fixture = fixture_new();
	fixture->plain = true;
	root = fixture_thread(fixture, fixture_process(fixture, 1, 0), 1, 1000);
	fixture_memory(fixture, root, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0xabc0, 100, 0, 5);
}

static char *finish(void)
{
	char *path;

	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

/* Children that have left nothing but that they began: with them, what is done for each pair of processes shows. */
static char *bare_processes(uint32_t count)
{
	begin();
	for (uint32_t i = 0; i < count; i++) {
		fixture_process(fixture, (int)(100 + i), 1);
		fixture_event(fixture, root, WIRE_FORK, 100 + i, 5);
	}
	return finish();
}

/* Children with a name for a thread that never comes, a clock pair, a call and memory. */
static char *full_processes(uint32_t count)
{
	begin();
	for (uint32_t i = 0; i < count; i++) {
		uint32_t process = fixture_process(fixture, (int)(100 + i), 1), thread;

		fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 7, 0, "", "of no thread", "", "");
		thread = fixture_thread(fixture, process, 100 + i, 1000);
		fixture_code(fixture, process, 1, "a.py", 1, "f");
		fixture_clock(fixture, 1, 3, 1000 + i, 1000 + i);
		fixture_event(fixture, root, WIRE_FORK, 100 + i, 5);
		fixture_event(fixture, thread, WIRE_CALL, 1, 5);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0xabc0, 100, 0, 5);
		fixture_event(fixture, thread, WIRE_RETURN, 1, 5);
		fixture_flush(fixture, thread);
	}
	return finish();
}

struct reader {
	const char *name;
	int (*verb)(int argc, char **argv);
	char words[80];
	int status;
};

static double cpu_s(const struct reader *reader, const char *path)
{
	struct timespec before, after;
	struct tools_verb ran;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	ran = tools_verb_run(reader->verb, reader->words, path, path);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	cr_assert(ran.status == reader->status, "%s %s: %s", reader->name, reader->words, ran.err);
	tools_verb_done(&ran);
	return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

#define TIMES 16
#define LIMIT 40 /* squares cost 256 times as much; what no cache holds any more costs up to twice as much for each */
#define ROUNDS 5

/* The least of some rounds, as others use the machine, too. */
static void expect_linear(const struct reader *reader, const char *few, const char *many)
{
	double least[2] = {cpu_s(reader, few), cpu_s(reader, many)};

	for (int round = 1; round < ROUNDS && least[1] >= LIMIT * least[0]; round++) {
		double cost[2] = {cpu_s(reader, few), cpu_s(reader, many)};

		for (int i = 0; i < 2; i++)
			least[i] = cost[i] < least[i] ? cost[i] : least[i];
	}
	cr_expect(least[1] < LIMIT * least[0], "%s %s: %f s, %f s for %d times the processes", reader->name,
		  reader->words, least[0], least[1], TIMES);
}

static void expect_readers_linear(char *few, char *many)
{
	static const struct reader readers[] = {
	    {"info", cmd_info, "TRACE", 0},
	    {"report", cmd_report, "TRACE", 0},
	    {"report", cmd_report, "--by process TRACE", 0},
	    {"report", cmd_report, "--format json TRACE", 0},
	    {"dump", cmd_dump, "TRACE", 0},
	    {"diff", cmd_diff, "TRACE OTHER", 0},
	    {"check", cmd_check, "--max-time TOTAL=1000 TRACE", 0},
	    /* The processes do not say that they record memory. */
	    {"check", cmd_check, "--max-alloc 1000M TRACE", 2},
	    {"export", cmd_export, "-f folded --weight peak -o /dev/null TRACE", 0}};

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		expect_linear(&readers[i], few, many);
	for (size_t i = 0; i < export_format_count; i++) {
		struct reader export = {.name = "export", .verb = cmd_export};

		snprintf(export.words, sizeof(export.words), "-f %s -o /dev/null TRACE", export_formats[i].name);
		expect_linear(&export, few, many);
	}
	unlink(few);
	unlink(many);
	free(few);
	free(many);
}

#ifdef __SANITIZE_ADDRESS__
TestSuite(scale, .disabled = true); /* the sanitizer's own cost grows otherwise */
#endif

Test(scale, bare_processes)
{
	expect_readers_linear(bare_processes(1250), bare_processes(TIMES * 1250));
}

Test(scale, full_processes)
{
	expect_readers_linear(full_processes(500), full_processes(TIMES * 500));
}
