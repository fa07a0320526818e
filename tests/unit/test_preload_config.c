/* test_preload_config.c - the EVPROF_* variables: good values, bad values, the line that says so. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/config.h"
#include "preload/base/log_line.h"
#include "evprof/ring.h"

static void read_with(const char *name, const char *value)
{
	setenv(name, value, 1);
	config_read(true);
	unsetenv(name);
}

/* What config_read() says on stderr. */
static const char *said_with(const char *name, const char *value)
{
	static char text[4096];
	int fds[2], saved = dup(2);
	ssize_t n;

	cr_assert_eq(pipe(fds), 0);
	dup2(fds[1], 2);
	read_with(name, value);
	dup2(saved, 2);
	close(fds[1]);
	n = read(fds[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	close(fds[0]);
	close(saved);
	return text;
}

static void check_complaint(const char *name, const char *value, const char *allowed)
{
	const char *text = said_with(name, value);

	cr_assert_not_null(strstr(text, name), "%s is not named in: %s", name, text);
	cr_assert_not_null(strstr(text, allowed), "'%s' is not in: %s", allowed, text);
	cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1, "one line, not: %s", text);
}

Test(config, defaults)
{
	config_read(true);
	cr_assert(config.enabled);
	cr_assert(config.children);
	cr_assert_eq(config.events, EVENT_CALL | EVENT_C_CALL | EVENT_EXCEPTION | EVENT_MEM);
	cr_assert_eq(config.ring_bytes, RING_BYTES_DEFAULT);
	cr_assert_gt(config.wait_ms, 0);
	cr_assert_eq(config.output[0], '/');
	cr_assert_str_empty(config.socket);
	cr_assert_str_empty(config.session);
}

Test(config, events)
{
	read_with("EVPROF_EVENTS", "call,mem");
	cr_assert_eq(config.events, EVENT_CALL | EVENT_MEM);
	read_with("EVPROF_EVENTS", "c_call");
	cr_assert_eq(config.events, EVENT_C_CALL);
	read_with("EVPROF_EVENTS", "mem,line");
	cr_assert_eq(config.events, EVENT_CALL | EVENT_MEM | EVENT_LINE, "lines want calls");
	check_complaint("EVPROF_EVENTS", "call,calls", "c_call, exception, mem, line, cpu");
	cr_assert_eq(config.events, EVENT_CALL | EVENT_C_CALL | EVENT_EXCEPTION | EVENT_MEM);
}

Test(config, ring_size)
{
	read_with("EVPROF_RING_SIZE", "65536");
	cr_assert_eq(config.ring_bytes, 65536);
	read_with("EVPROF_RING_SIZE", "8M");
	cr_assert_eq(config.ring_bytes, UINT64_C(8) << 20);
	read_with("EVPROF_RING_SIZE", "1g");
	cr_assert_eq(config.ring_bytes, UINT64_C(1) << 30);
	read_with("EVPROF_RING_SIZE", "100k");
	cr_assert_eq(config.ring_bytes, 131072, "rounded up to a power of two");
	for (const char *const *bad = (const char *const[]){"1", "2G", "-1", "x", "4MB", "99999999999999999999G", NULL};
	     *bad; bad++) {
		check_complaint("EVPROF_RING_SIZE", *bad, "64K to 1G");
		cr_assert_eq(config.ring_bytes, RING_BYTES_DEFAULT);
	}
}

Test(config, on_full)
{
	read_with("EVPROF_ON_FULL", "drop");
	cr_assert_eq(config.wait_ms, 0);
	read_with("EVPROF_ON_FULL", "wait:250");
	cr_assert_eq(config.wait_ms, 250);
	check_complaint("EVPROF_ON_FULL", "wait:", "drop");
	check_complaint("EVPROF_ON_FULL", "wait:0", "drop");
	check_complaint("EVPROF_ON_FULL", "block", "drop");
}

Test(config, switches_and_log)
{
	read_with("EVPROF", "0");
	cr_assert_not(config.enabled);
	read_with("EVPROF_CHILDREN", "0");
	cr_assert_not(config.children);
	check_complaint("EVPROF_CHILDREN", "no", "0 (off) or 1 (on)");
	read_with("EVPROF_LOG", "debug");
	cr_assert_eq(log_level, LOG_DEBUG);
	check_complaint("EVPROF_LOG", "loud", "error, warning, info or debug");
}

/* A longer time has no number of nanoseconds. */
Test(config, keep_at_most)
{
	read_with("EVPROF_KEEP", "106751d,8589934591G");
	cr_assert_eq(config.keep.ns, UINT64_C(106751) * 86400 * 1000000000);
	cr_assert_eq(config.keep.bytes, UINT64_C(8589934591) << 30);
	for (int i = 0; i < 5; i++)
		check_complaint(
		    "EVPROF_KEEP",
		    (const char *const[]){"106752d", "213504d", "999999d", "9223372037s", "99999999999999999999K"}[i],
		    "a time such as 30s");
}

/* What is alive has a stretch, too, and means memory without calls. */
Test(config, keep_alive)
{
	read_with("EVPROF_KEEP", "alive");
	cr_assert(config.keep.alive);
	cr_assert_eq(config.keep.ns, 1000000000);
	cr_assert_eq(config.keep.bytes, 0);
	cr_assert_eq(config.events, EVENT_MEM | EVENT_MALLOC);
	read_with("EVPROF_KEEP", "alive,30s,2K");
	cr_assert(config.keep.alive);
	cr_assert_eq(config.keep.ns, UINT64_C(30000000000));
	cr_assert_eq(config.keep.bytes, 2048);
	read_with("EVPROF_KEEP", "30s");
	cr_assert_not(config.keep.alive);
	for (int i = 0; i < 4; i++)
		check_complaint("EVPROF_KEEP", (const char *const[]){"alive,", "alive,x", "30s,alive", "alive30s"}[i],
				"both with a comma; alive");
	setenv("EVPROF_EVENTS", "mem", 1);
	read_with("EVPROF_KEEP", "alive");
	cr_assert(config.keep.alive);
	cr_assert_eq(config.events, EVENT_MEM);
	setenv("EVPROF_EVENTS", "call,mem", 1);
	check_complaint("EVPROF_KEEP", "alive", "needs memory without calls");
	cr_assert_not(config.keep.alive);
	cr_assert_eq(config.keep.ns, 1000000000);
	unsetenv("EVPROF_EVENTS");
}

Test(config, memory_lines)
{
	config_read(true);
	cr_assert_not(config.memory_lines);
	read_with("EVPROF_MEMORY_LINES", "1");
	cr_assert(config.memory_lines);
	check_complaint("EVPROF_MEMORY_LINES", "yes", "0 (off) or 1 (on)");
}

Test(config, program_only)
{
	config_read(true);
	cr_assert_not(config.program_only);
	setenv("EVPROF_EVENTS", "mem", 1);
	read_with("EVPROF_PROGRAM_ONLY", "1");
	cr_assert(config.program_only);
	cr_assert_eq(config.events, EVENT_CALL | EVENT_MEM, "calls show where the program begins and ends");
	check_complaint("EVPROF_PROGRAM_ONLY", "yes", "0 (off) or 1 (on)");
	setenv("EVPROF_EVENTS", "sample", 1);
	check_complaint("EVPROF_PROGRAM_ONLY", "1", "EVPROF_EVENTS=sample");
	cr_assert_not(config.program_only);
	cr_assert_eq(config.events, EVENT_SAMPLE);
	unsetenv("EVPROF_EVENTS");
}

Test(config, start)
{
	config_read(true);
	cr_assert(config.start);
	read_with("EVPROF_START", "0");
	cr_assert_not(config.start);
	check_complaint("EVPROF_START", "later", "0 (off) or 1 (on)");
}

Test(config, signal)
{
	config_read(true);
	cr_assert_eq(config.signal, 0);
	read_with("EVPROF_SIGNAL", "USR2");
	cr_assert_eq(config.signal, SIGUSR2);
	read_with("EVPROF_SIGNAL", "SIGHUP");
	cr_assert_eq(config.signal, SIGHUP);
	read_with("EVPROF_SIGNAL", "RTMIN+3");
	cr_assert_eq((int)config.signal, SIGRTMIN + 3);
	cr_assert(!config.signal_snapshot);
	read_with("EVPROF_SIGNAL", "USR2:snapshot");
	cr_assert(config.signal == SIGUSR2 && config.signal_snapshot);
	check_complaint("EVPROF_SIGNAL", "USR2:", "alone or with :snapshot");
	check_complaint("EVPROF_SIGNAL", "USR2:snapshots", "alone or with :snapshot");
	check_complaint("EVPROF_SIGNAL", "USR2AAAAAAAAAAAAA:snapshot", "USR1, USR2");
	check_complaint("EVPROF_SIGNAL", "KILL", "USR1, USR2");
	check_complaint("EVPROF_SIGNAL", "RTMIN+90", "RTMIN+1 and up");
	check_complaint("EVPROF_SIGNAL", "12", "USR1, USR2");
}

Test(config, an_unknown_name_is_reported)
{
	check_complaint("EVPROF_EVENT", "call", "EVPROF_EVENTS");
}

Test(config, paths_are_made_absolute)
{
	char cwd[4096], expected[4200];

	cr_assert_not_null(getcwd(cwd, sizeof(cwd)));
	snprintf(expected, sizeof(expected), "%s/a b:c.evp", cwd);
	read_with("EVPROF_OUTPUT", "a b:c.evp");
	cr_assert_str_eq(config.output, expected);
	read_with("EVPROF_SOCKET", "@abstract");
	cr_assert_str_eq(config.socket, "@abstract");
}

/* Too long for a socket's address, by itself or with the working directory before it; and for any path. */
Test(config, sockets_that_are_too_long)
{
	char path[PATH_MAX + 100];

	memset(path, 'a', sizeof(path));
	for (const size_t *length = (const size_t[]){108, PATH_MAX - 10, PATH_MAX + 99, 0}; *length; length++) {
		path[*length] = 0;
		check_complaint("EVPROF_SOCKET", path, "at most 107 bytes");
		cr_assert_str_empty(config.socket);
		path[*length] = 'a';
	}
	path[0] = '/';
	path[107] = 0;
	cr_expect_str_empty(said_with("EVPROF_SOCKET", path));
	cr_expect_str_eq(config.socket, path);
	cr_assert_eq(chdir("/tmp"), 0);
	path[0] = 'a';
	check_complaint("EVPROF_SOCKET", path, "at most 107 bytes");
}

Test(config, templates)
{
	const char *end;

	read_with("EVPROF_OUTPUT", "a-%n-%p-%h-%t-%%.evp");
	cr_assert_not_null(strstr(config.output, "/a-%n-%p-%h-%t-%%.evp"));
	for (const char *const *bad = (const char *const[]){"%x", "100%", "%%%", NULL}; *bad; bad++) {
		check_complaint("EVPROF_OUTPUT", *bad, "%p, %n, %h, %t");
		end = strrchr(config.output, '/');
		cr_assert_str_eq(end + 1, OUTPUT_DEFAULT);
	}
}

Test(config, a_working_directory_that_is_gone)
{
	char folder[] = "/tmp/evprof-gone-XXXXXX";

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
	cr_assert_eq(rmdir(folder), 0);
	cr_expect_str_eq(said_with("EVPROF_OUTPUT", "/tmp/x.evp"), "");
	cr_expect_str_eq(config.output, "/tmp/x.evp");
	cr_expect_str_eq(said_with("EVPROF_OUTPUT", ""),
			 "evprof: the working directory has no path; the trace goes to /" OUTPUT_DEFAULT
			 "; set EVPROF_OUTPUT to an absolute path\n");
	cr_expect_str_eq(config.output, "/" OUTPUT_DEFAULT);
}

Test(config, session)
{
	read_with("EVPROF_SESSION", "0123456789abcdef0123456789abcdef:12:34:/run/a b:c.sock");
	cr_assert_str_eq(config.session, "0123456789abcdef0123456789abcdef");
	cr_assert_eq(config.session_first, 12);
	cr_assert_eq(config.session_owner, 34);
	cr_assert_str_eq(config.session_socket, "/run/a b:c.sock");
	for (const char *const *bad =
		 (const char *const[]){"", "x", "0123456789abcdef0123456789abcdef",
				       "0123456789abcdef0123456789abcdef:1", "0123456789abcdef0123456789abcdef:1:2",
				       "0123456789abcdef0123456789abcdef:1:2:", NULL};
	     *bad; bad++) {
		read_with("EVPROF_SESSION", *bad);
		cr_assert_str_empty(config.session, "%s", *bad);
	}
}
