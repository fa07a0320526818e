/*
 * test_tools_summary.c - the summary that evprof run prints, over traces of the fixture: each line, and nothing where
 * the trace is not that of the run, is damaged or has too many events.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/run/summary.h"
#include "trace_fixture.h"

#define SESSION "00000000000000000000000000000000" /* that of the fixture */
#define OTHER_SESSION "00000000000000000000000000000001"

static char shown[8192];

/* What run_summary_print() prints on stderr. */
static void summarize_end(const struct run_recording *recording, struct run_end end)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	ssize_t bytes;

	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	run_summary_print(recording, &end);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	bytes = pread(fileno(file), shown, sizeof(shown) - 1, 0);
	shown[bytes > 0 ? bytes : 0] = 0;
	fclose(file);
	cr_expect(waitpid(-1, NULL, WNOHANG) < 0, "no process is left");
}

static void summarize(const char *path, uint64_t events)
{
	summarize_end(&(const struct run_recording){.trace = path, .session = SESSION, .events = events},
		      (struct run_end){0});
}

/* more: members of its object. */
static uint32_t process_with_more(struct fixture *fixture, int pid, const char *events, const char *more)
{
	uint32_t number = fixture->processes++;

	fixture_meta(fixture, number,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":%d,\"ppid\":1,\"start\":\"exec\",\"argv\":[\"a\"],"
		     "\"program\":\"a\",\"clock_kind\":0,\"clock_shift\":0,\"start_ticks\":0,\"events\":[%s]%s}",
		     number, pid, events, more);
	return number;
}

static uint32_t process_with(struct fixture *fixture, int pid, const char *events)
{
	return process_with_more(fixture, pid, events, "");
}

/* Seven functions, each with that many ms of own time more than the one before; blocks of 3 MiB and 1 MiB. */
static struct fixture *seven_functions_with(int pid, const char *more)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = process_with_more(fixture, pid, "\"call\",\"mem\"", more), thread;

	for (uint32_t id = 1; id <= 7; id++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", id);
		fixture_code(fixture, process, id, "/srv/app.py", 10 * id, name);
	}
	thread = fixture_thread(fixture, process, (uint32_t)pid, 1000);
	for (uint32_t id = 1; id <= 7; id++) {
		fixture_event(fixture, thread, WIRE_CALL, id, 0);
		fixture_event(fixture, thread, WIRE_RETURN, id, id * 1000000);
	}
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x1000, 3 << 20, 0, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x1000, 0, 0, 1);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x2000, 1 << 20, 0, 1);
	return fixture;
}

static struct fixture *seven_functions(int pid)
{
	return seven_functions_with(pid, "");
}

#define SEVEN_EVENTS 17

static char *save(struct fixture *fixture)
{
	char *path;

	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

Test(summary, lines)
{
	char *path = save(seven_functions(10));
	const char *expected = "evprof:   own time    7.00 ms  f7  /srv/app.py:70\n"
			       "evprof:               6.00 ms  f6  /srv/app.py:60\n"
			       "evprof:               5.00 ms  f5  /srv/app.py:50\n"
			       "evprof:               4.00 ms  f4  /srv/app.py:40\n"
			       "evprof:               3.00 ms  f3  /srv/app.py:30\n"
			       "evprof:   memory     3.00 MiB at the peak, in Python's allocators\n"
			       "evprof:   recording  17 events, ";

	summarize(path, SEVEN_EVENTS);
	cr_expect(strncmp(shown, expected, strlen(expected)) == 0, "%s", shown);
	cr_expect(!strstr(shown, "waiting") && !strstr(shown, "of the time"), "nothing that was not recorded: %s",
		  shown);
	unlink(path);
	free(path);
}

/* A thread that runs for 1 ms and is off its processor for 3 ms. */
Test(summary, waiting)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = process_with(fixture, 10, "\"call\",\"cpu\""), thread;
	char *path;

	fixture_code(fixture, process, 1, "/srv/app.py", 10, "main");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_event(fixture, thread, WIRE_CPU, 0, 0); /* the CPU time, and the time in the extra word */
	fixture_extra(fixture, thread, 1000);
	fixture_event(fixture, thread, WIRE_CALL, 1, 0);
	fixture_event(fixture, thread, WIRE_CPU, 0, 1000000);
	fixture_extra(fixture, thread, 4001000);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 0);
	path = save(fixture);
	summarize(path, 2);
	cr_expect(strstr(shown, "evprof:   waiting    75 % of the time of its threads: "), "%s", shown);
	cr_expect(!strstr(shown, "memory"), "%s", shown);
	unlink(path);
	free(path);
}

/* Without cpu events the kernel's count of the process is used, if all of its life is in the trace. */
Test(summary, waiting_of_a_process)
{
	static const struct {
		struct run_end end;
		bool shown;
	} cases[] = {{{.pid = 10, .wall_ns = 4000000, .cpu_ns = 1000000}, true},
		     {{.pid = 10, .wall_ns = 4000000}, false},
		     {{.pid = 10, .wall_ns = 9000000, .cpu_ns = 1000000}, false},
		     {{.pid = 11, .wall_ns = 4000000, .cpu_ns = 1000000}, false},
		     {{.pid = 10, .wall_ns = 4000000, .cpu_ns = 5000000}, false}};
	struct fixture *fixture = fixture_new();
	uint32_t process = process_with(fixture, 10, "\"call\""), thread;
	char *path;

	fixture_code(fixture, process, 1, "/srv/app.py", 10, "main");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_event(fixture, thread, WIRE_CALL, 1, 0);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 4000000);
	path = save(fixture);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		summarize_end(&(const struct run_recording){.trace = path, .session = SESSION, .events = 2},
			      cases[i].end);
		cr_expect(!strstr(shown, "waiting") == !cases[i].shown, "%zu: %s", i, shown);
		cr_expect(!cases[i].shown || strstr(shown, "waiting    75 % of the time of its threads: "), "%s",
			  shown);
	}
	unlink(path);
	free(path);
}

Test(summary, nothing_of_another_trace)
{
	char *path = save(seven_functions(10));
	const struct run_recording other = {.trace = path, .session = OTHER_SESSION, .events = SEVEN_EVENTS};

	summarize_end(&other, (struct run_end){0});
	cr_expect_str_eq(shown, "", "the trace has another session");
	summarize(path, SEVEN_EVENTS + 1);
	cr_expect_str_eq(shown, "", "the trace has other events");
	summarize("/nonexistent/trace.evp", SEVEN_EVENTS);
	cr_expect_str_eq(shown, "", "the file is missing");
	summarize("/dev/null", SEVEN_EVENTS);
	cr_expect_str_eq(shown, "", "it is not a trace");
	cr_assert(truncate(path, 400) == 0);
	summarize(path, SEVEN_EVENTS);
	cr_expect_str_eq(shown, "", "the trace is cut short");
	unlink(path);
	free(path);
}

/* The events that were recorded, of which the trace has the last. */
Test(summary, of_what_is_kept)
{
	static const char *const kept[] = {",\"keep_ns\":1000000000", ",\"keep_bytes\":65536", ",\"alive_only\":true"};

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		char *path = save(seven_functions_with(10, kept[i]));

		summarize(path, RUN_SUMMARY_EVENTS + 1);
		cr_expect(strstr(shown, "own time    7.00 ms  f7 ") && strstr(shown, "recording  5000001 events, "),
			  "%s: %s", kept[i], shown);
		unlink(path);
		free(path);
	}
}

Test(summary, many_events)
{
	struct fixture *fixture = seven_functions(10);
	char *path;

	fixture->events = RUN_SUMMARY_EVENTS + 1;
	path = save(fixture);
	summarize(path, RUN_SUMMARY_EVENTS + 1);
	cr_expect_str_eq(shown, "");
	unlink(path);
	free(path);
}

/* A trace that never comes, from a pipe that nobody writes to: it ends with the time. */
Test(summary, takes_no_longer, .timeout = 20)
{
	char path[] = "/tmp/evprof-summary-XXXXXX";

	cr_assert(mkdtemp(path));
	cr_assert(chdir(path) == 0 && mkfifo("trace", 0600) == 0);
	summarize("trace", SEVEN_EVENTS);
	cr_expect_str_eq(shown, "");
	unlink("trace");
	rmdir(path);
}
