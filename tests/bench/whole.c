/*
 * whole.c - whole FILE COMMAND...: runs a command, and writes to a file what it and all that it leaves behind took: the
 * CPU time in s, and the sum of their largest resident sizes in KiB, with a blank between them.
 *
 * A process begins with the largest size of its parent, which is small here. The status is the command's; 125:
 * something went wrong, or a process that was left behind did not end within a minute. SIGALRM ends all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 125
#define LEFT_BEHIND_S 60

static volatile sig_atomic_t late;

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Those that are left behind are this process's children by now. What they leave behind comes next. */
static void end_children(int number)
{
	char path[64], text[4096], *at = text;
	int fd;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY);
	got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = 0;
	close(fd);
	for (long pid; (pid = strtol(at, &at, 10)) > 0;)
		kill((pid_t)pid, SIGKILL);
	late = 1;
	alarm(1);
	(void)number;
}

int main(int argc, char **argv)
{
	int status = 0, result = FAILED;
	double cpu = 0, kib = 0;
	struct rusage usage;
	pid_t child, ended;
	FILE *file;

	if (argc < 3 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return FAILED;
	signal(SIGALRM, end_children);
	child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		_exit(FAILED);
	}
	while (child > 0 && ((ended = wait4(-1, &status, 0, &usage)) > 0 || errno == EINTR)) {
		if (ended < 0)
			continue;
		cpu += seconds(usage.ru_utime) + seconds(usage.ru_stime);
		kib += (double)usage.ru_maxrss;
		if (ended != child)
			continue;
		result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		alarm(late ? 1 : LEFT_BEHIND_S);
	}
	if (late)
		return FAILED;
	file = fopen(argv[1], "w");
	if (!file || fprintf(file, "%.6f %.0f\n", cpu, kib) < 0 || fclose(file))
		return FAILED;
	return result;
}
