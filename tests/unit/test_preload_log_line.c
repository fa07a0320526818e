/* test_preload_log_line.c - lines for people go to stderr, and into no file of the program's that has its number. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload/base/log_line.h"

/* Whether a line is written where descriptor 2 is this one, which gets closed. */
static bool is_written(int fd, int reads)
{
	int before = dup(STDERR_FILENO);
	char line[64];
	ssize_t n;

	cr_assert(fd >= 0 && before >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	close(fd);
	errno = 77;
	log_line(LOG_ERROR, "a line");
	cr_expect_eq(errno, 77);
	cr_assert(dup2(before, STDERR_FILENO) == STDERR_FILENO);
	close(before);
	n = read(reads, line, sizeof(line));
	close(reads);
	return n == sizeof("evprof: a line\n") - 1;
}

/* A file that was opened that way, and a second descriptor that reads it. */
static bool is_written_to_file(int flags)
{
	char name[] = "/tmp/evprof-log-line-XXXXXX";
	int fd = mkstemp(name), opened = open(name, flags);

	cr_assert(fd >= 0 && opened >= 0);
	unlink(name);
	return is_written(opened, fd);
}

Test(log_line, stderr_becomes_a_log)
{
	int ends[2];

	cr_expect(is_written_to_file(O_WRONLY | O_APPEND));
	cr_expect(is_written_to_file(O_RDWR | O_APPEND));
	cr_assert(!pipe(ends));
	cr_expect(is_written(ends[1], ends[0]));
}

Test(log_line, stderr_becomes_the_programs_data)
{
	int ends[2];

	cr_expect_not(is_written_to_file(O_RDWR));
	cr_expect_not(is_written_to_file(O_WRONLY));
	cr_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
	cr_expect_not(is_written(ends[1], ends[0]));
}

/* A file that has the largest size allowed takes no line, and the write has a signal that ends the program. */
Test(log_line, stderr_is_a_file_at_its_limit)
{
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
	sigset_t set, pending;

	cr_assert(!setrlimit(RLIMIT_FSIZE, &none));
	cr_expect_not(is_written_to_file(O_WRONLY | O_APPEND));
	cr_assert(!sigpending(&pending));
	cr_expect_not(sigismember(&pending, SIGXFSZ));
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGXFSZ);
	cr_expect_not(is_written_to_file(O_WRONLY | O_APPEND));
	cr_assert(!sigpending(&pending));
	cr_expect(sigismember(&pending, SIGXFSZ), "it was pending before");
}
