/*
 * test_invariant.c - a broken invariant ends the process and says where, in the builds that check it; elsewhere the
 * condition is not even looked at.
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/invariant.h"

static int looked;

static bool look(bool holds)
{
	looked++;
	return holds;
}

/* The status of a child that comes to the condition, what it printed, and the same of the file that is named for it. */
static int come_to(bool holds, char *printed, size_t bytes, const char *log)
{
	int ends[2], status;
	ssize_t count;
	pid_t child;

	cr_assert(pipe(ends) == 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		setenv("BROKEN_INVARIANTS", log, 1);
		invariant(look(holds));
		_exit(looked);
	}
	close(ends[1]);
	count = read(ends[0], printed, bytes - 1);
	printed[count > 0 ? count : 0] = '\0';
	close(ends[0]);
	cr_assert(waitpid(child, &status, 0) == child);
	return status;
}

Test(invariant, ends_the_process_where_it_is_checked)
{
	char log[] = "/tmp/evprof-invariant-XXXXXX", printed[256], logged[256] = "";
	int fd = mkstemp(log), held, broken;

	held = come_to(true, printed, sizeof(printed), log);
	cr_expect(WIFEXITED(held) && printed[0] == '\0');
	broken = come_to(false, printed, sizeof(printed), log);
	cr_assert(read(fd, logged, sizeof(logged) - 1) >= 0);
	close(fd);
	unlink(log);
#ifdef EVPROF_DEBUG
	cr_expect(WEXITSTATUS(held) == 1);
	cr_expect(WIFSIGNALED(broken) && WTERMSIG(broken) == SIGABRT, "status %d", broken);
	cr_expect(strstr(printed, "test_invariant.c:") && strstr(printed, "invariant broken: look(holds)\n"), "%s",
		  printed);
	cr_expect_str_eq(logged, printed);
#else
	cr_expect(WEXITSTATUS(held) == 0, "the condition was looked at");
	cr_expect(WIFEXITED(broken) && WEXITSTATUS(broken) == 0 && printed[0] == '\0' && logged[0] == '\0');
#endif
}
