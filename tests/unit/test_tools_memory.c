/*
 * test_tools_memory.c - every verb and every format of evprof with each of its allocations failing in turn, over a
 * trace with all kinds of events: it says that memory ran out, or its output is whole; and it frees what it took. No
 * regular expressions: glibc's regcomp() frees twice where its memory runs out.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef EVPROF_INSTRUMENTED
Test(tools_memory, needs_malloc_of_its_own)
{
	cr_skip_test("the sanitizer has its own malloc()");
}
#else

#include "failing_memory.h"
#include "tools/export/export.h"
#include "tools/trace/reader.h"
#include "tools/cmd/verbs.h"
#include "trace_fixture.h"

#define PRINTED_BYTES ((size_t)1 << 20)

static struct fixture *fixture;
static char *path;

/* Events of a thread without extra words. */
static const struct {
	unsigned kind;
	uint32_t argument;
} plain[] = {
    {WIRE_PROCESS_START, WIRE_START_EXEC},
    {WIRE_CALL, 1},
    {WIRE_LINE, 7},
    {WIRE_C_CALL, 1},
    {WIRE_C_EXCEPTION, 1},
    {WIRE_EXCEPTION, 1},
    {WIRE_MARK, 1},
    {WIRE_CALL, 2},
    {WIRE_YIELD, 2},
    {WIRE_RESUME, 2},
    {WIRE_C_CALL, 1},
    {WIRE_C_RETURN, 1},
    {WIRE_UNWIND, 2},
    {WIRE_THROW, 2},
    {WIRE_RETURN, 2},
    {WIRE_FORK, 4711},
    {WIRE_EXEC_FAILED, 0},
    {WIRE_MARK, 2},
};

static void add_thread(uint32_t process, uint32_t tid)
{
	uint32_t thread = fixture_thread(fixture, process, tid, 1000);

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		fixture_event(fixture, thread, plain[i].kind, plain[i].argument, 500);
	fixture_event(fixture, thread, WIRE_NATIVE_STACK, 2, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0xabc0 + tid, 100, 0, 5);
	fixture_memory(fixture, thread, WIRE_CALLOC, WIRE_DOMAIN_RAW, 0xeee0 + tid, 1000, 0, 5);
	fixture_memory(fixture, thread, WIRE_REALLOC, WIRE_DOMAIN_MEM, 0xdef0 + tid, 5000, 0xabc0 + tid, 5);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0xdef0 + tid, 0, 0, 5);
	fixture_event(fixture, thread, WIRE_SWITCH, 0, 5);
	fixture_extra(fixture, thread, 0x2000);
	fixture_extra(fixture, thread, 0x1000);
	fixture_event(fixture, thread, WIRE_TASK, 2, 5);
	fixture_extra(fixture, thread, 0x7000);
	fixture_event(fixture, thread, WIRE_CALL, 2, 0);
	fixture_event(fixture, thread, WIRE_SWITCH, 0, 5);
	fixture_extra(fixture, thread, 0x1000);
	fixture_extra(fixture, thread, 0x2000);
	fixture_event(fixture, thread, WIRE_OPEN, 1, 5);
	fixture_flush(fixture, thread);
	fixture_event(fixture, thread, WIRE_GAP, 0, 5);
	fixture_extra(fixture, thread, 77);
	fixture_event(fixture, thread, WIRE_STACK, 1, 5);
	fixture_event(fixture, thread, WIRE_FRAME, 1, 0);
	fixture_event(fixture, thread, WIRE_PAUSE, 0, 5);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 5);
	fixture_flush(fixture, thread);
	fixture_event(fixture, thread, WIRE_EXIT, 3, 5);
	fixture_event(fixture, thread, WIRE_THREAD_END, 0, 5);
}

static void add_process(int pid)
{
	uint32_t process = fixture_process(fixture, pid, pid == 10 ? 1 : 10);

	fixture_code(fixture, process, 1, "/usr/lib/python3/a.py", 7, "f");
	fixture_code(fixture, process, 2, "b.py", 8, "g");
	fixture_function(fixture, process, 1, "str", "join", "");
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, "", "KeyError", "KeyError", "builtins");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "a", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 2, 0, "", "b", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 11, 0, "", "Main", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_CALIBRATION, 1, 0, "", "call 20 10 0 c_call 8 4 0 malloc 3", "",
		       "");
	fixture_native(fixture, process, 1, 0, 0x401000, 0);
	fixture_native(fixture, process, 2, 1, 0x402000, 0);
	fixture_symbol(fixture, process, 1, 0x401000, 0, "main", "main.c", 3, "/bin/python");
	add_thread(process, 11);
	add_thread(process, 12);
}

/* One processor: no thread reads ahead or works in parallel, so that the same allocation is the n-th each time. */
static void set_up(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	fixture = fixture_new();
	add_process(10);
	add_process(20);
	fixture_clock(fixture, 0, 0, 1000, 1000);
	fixture_end(fixture);
	path = fixture_save(fixture);
}

static void tear_down(void)
{
	unlink(path);
	free(path);
	fixture_free(fixture);
}

TestSuite(tools_memory, .init = set_up, .fini = tear_down, .timeout = 600);

/* A zip has the times of its files, some of which are made while it is written. Here all are the same. */
struct tm *localtime_r(const time_t *when, struct tm *parts)
{
	(void)when;
	*parts = (struct tm){.tm_year = 100, .tm_mday = 1};
	return parts;
}

/* What a verb does: its status, and what it printed where. */
struct result {
	int status;
	long asked; /* allocations */
	long lost;  /* blocks that are alive afterwards and were not before */
	size_t out_bytes;
	char out[PRINTED_BYTES], err[4096];
};

static int outputs[2]; /* files in place of stdout and stderr, while a verb runs */

/* Returns the length. */
static size_t read_output(int fd, char *text, size_t bytes)
{
	ssize_t count = pread(fd, text, bytes - 1, 0);

	if (count < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	text[count] = '\0';
	return (size_t)count;
}

/* Words are separated by blanks; TRACE stands for the trace. */
static void run(int (*verb)(int argc, char **argv), const char *words, long failing, bool stays, struct result *result)
{
	char *arguments[32] = {(char *)"verb"}, copy[256], *state = NULL;
	int count = 1, before[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
	long blocks;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
		arguments[count++] = strcmp(word, "TRACE") == 0 ? path : word;
	fflush(NULL);
	dup2(outputs[0], STDOUT_FILENO);
	dup2(outputs[1], STDERR_FILENO);
	optind = 0;
	blocks = atomic_load(&memory_blocks);
	memory_fail(failing, stays);
	result->status = verb(count, arguments);
	result->asked = atomic_load(&memory_asked);
	memory_fail(0, false);
	fflush(stdout);
	result->lost = atomic_load(&memory_blocks) - blocks;
	for (int i = 0; i < 2; i++) {
		dup2(before[i], STDOUT_FILENO + i);
		close(before[i]);
	}
	result->out_bytes = read_output(outputs[0], result->out, sizeof(result->out));
	read_output(outputs[1], result->err, sizeof(result->err));
}

/* Also where the output is binary. */
static bool is_the_same(const struct result *one, const struct result *other)
{
	return one->status == other->status && one->out_bytes == other->out_bytes &&
	       memcmp(one->out, other->out, one->out_bytes) == 0;
}

/* One line, or some, each of which begins as a message of evprof does, and one of which says what is missing. */
static bool says_why(const char *err)
{
	return strncmp(err, "evprof", 6) == 0 && strcasestr(err, "memory");
}

static void fail_each(int (*verb)(int argc, char **argv), const char *words, bool stays)
{
	static struct result good, bad;

	run(verb, words, 0, false, &good); /* libc keeps what it allocates at first */
	run(verb, words, 0, false, &good);
	cr_assert(good.out_bytes && good.lost == 0, "%s: status %d, %ld blocks: %s", words, good.status, good.lost,
		  good.err);
	for (long n = 1; n <= good.asked; n++) {
		run(verb, words, n, stays, &bad);
		cr_expect(bad.lost == 0, "%s: %ld blocks lost with allocation %ld failing", words, bad.lost, n);
		if (!is_the_same(&bad, &good))
			cr_expect(bad.status && says_why(bad.err), "%s: allocation %ld fails: status %d, \"%s\"", words,
				  n, bad.status, bad.err);
	}
}

static void fail_all(int (*verb)(int argc, char **argv), const char *const *words)
{
	for (int i = 0; i < 2; i++)
		outputs[i] = memfd_create("output", MFD_CLOEXEC);
	for (; *words; words++)
		for (int stays = 0; stays < 2; stays++)
			fail_each(verb, *words, stays);
}

Test(tools_memory, info_and_dump)
{
	static const char *const infos[] = {"TRACE", "--json TRACE", "--quick TRACE", NULL};
	static const char *const dumps[] = {"TRACE", "--thread 11 --from 1us TRACE", NULL};

	fail_all(cmd_info, infos);
	fail_all(cmd_dump, dumps);
}

Test(tools_memory, report)
{
	static const char *const words[] = {"TRACE",
					    "--callers --sort time --limit 5 TRACE",
					    "--callees --calibrate --strip-dirs TRACE",
					    "--by process --format json TRACE",
					    "--by thread --format csv --reverse TRACE",
					    "--by module --restrict 0.5 --restrict 3 TRACE",
					    "--between a,b --callers --json TRACE",
					    "TRACE TRACE",
					    "--min-duration 5 --max-depth 3 --include *a* --exclude-syspath TRACE",
					    NULL};

	fail_all(cmd_report, words);
}

Test(tools_memory, export)
{
	static const char *const others[] = {
	    "-f csv -o - --clean-file-name /usr --no-freed-sizes --min-duration 5 TRACE",
	    "-f callgrind --zip -o - TRACE",
	    "-f folded --weight bytes -o - TRACE",
	    "-f folded --weight live --from 1us -o - TRACE",
	    "-f folded --weight peak -o - TRACE",
	    "-f perfetto -o - --min-duration 5 --from 2us TRACE",
	    NULL};

	for (size_t i = 0; i < export_format_count; i++) {
		char words[64];

		snprintf(words, sizeof(words), "-f %s -o - TRACE", export_formats[i].name);
		fail_all(cmd_export, (const char *const[]){words, NULL});
	}
	fail_all(cmd_export, others);
}

Test(tools_memory, annotate_diff_and_check)
{
	static const char *const trees[] = {"TRACE", "--min-percent 0 --max-depth 2 TRACE", NULL};
	static const char *const annotates[] = {"TRACE", "--by thread -f json TRACE", NULL};
	static const char *const diffs[] = {"TRACE TRACE", "--json --sort calls TRACE TRACE", "--csv TRACE TRACE",
					    NULL};
	static const char *const checks[] = {
	    "--max-calls TOTAL=9 --max-calls *:*=1 --max-time *:a*=1us --max-alloc 1K --junit /dev/null TRACE", NULL};

	fail_all(cmd_annotate, annotates);
	fail_all(cmd_tree, trees);
	fail_all(cmd_diff, diffs);
	fail_all(cmd_check, checks);
}

#endif
