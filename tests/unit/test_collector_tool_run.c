/*
 * test_collector_tool_run.c - what the collector starts and ends is reaped, although nobody waits for it.
 *
 * evprof is a process that waits for a signal: the test has its own execve().
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/trace/tool_run.h"

static bool is_evprof(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strcmp(slash, "/evprof") == 0;
}

int access(const char *path, int mode)
{
	return is_evprof(path) ? 0 : (int)syscall(SYS_faccessat, -100, path, mode);
}

int execve(const char *path, char *const arguments[], char *const environment[])
{
	if (is_evprof(path))
		pause();
	return (int)syscall(SYS_execve, path, arguments, environment);
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void expect_no_zombie(void (*end)(struct tool_run *run))
{
	static const char *const arguments[] = {"evprof", "cut", NULL};
	struct tool_run run = {0};
	struct loop loop;

	cr_assert_eq(loop_init(&loop), 0);
	tool_run_start(&run, &loop, arguments);
	cr_assert(run.running && has_children());
	end(&run);
	cr_expect(!run.running && run.failed);
	memset(&run, 0x55, sizeof(run)); /* its owner frees it */
	for (unsigned i = 0; i < 500 && has_children(); i++)
		cr_assert_eq(loop_wait(&loop, 10000), 0);
	cr_expect_not(has_children());
	loop_done(&loop);
}

Test(tool_run, a_stopped_one_is_reaped)
{
	expect_no_zombie(tool_run_stop);
}

Test(tool_run, a_killed_one_is_reaped)
{
	expect_no_zombie(tool_run_kill);
}
