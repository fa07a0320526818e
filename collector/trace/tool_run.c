/*
 * tool_run.c - see tool_run.h. Called by the session.
 */
#include "trace/tool_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "base/log.h"

#ifndef P_PIDFD
#define P_PIDFD 3 /* sys/wait.h, since glibc 2.36 */
#endif

/* Finds evprof: it is in the collector's folder, both in the build folder and where it is installed. */
static int find_evprof(char path[PATH_MAX])
{
	ssize_t length = proc_own_path(path);
	char *slash;

	if (length < 0)
		return (int)length;
	slash = strrchr(path, '/');
	if (!slash || slash + sizeof("/evprof") - path > PATH_MAX)
		return -ENOENT;
	strcpy(slash, "/evprof");
	return access(path, X_OK) < 0 ? -errno : 0;
}

/* A run that nobody waits for: read until its end, so that it is no zombie then. */
struct left {
	struct loop_source source;
	struct loop *loop;
	struct left *next;
};

static struct left *all_left;

/* Reaps it and closes its pidfd. False: it runs. */
static bool reap(struct loop *loop, struct loop_source *source, siginfo_t *info)
{
	*info = (siginfo_t){0};
	if (waitid(P_PIDFD, (id_t)source->fd, info, WEXITED | WNOHANG) == 0 && info->si_pid == 0)
		return false;
	loop_remove(loop, source);
	close(source->fd);
	return true;
}

static void left_ended(struct loop_source *source)
{
	struct left *left = LOOP_OWNER(source, struct left, source), **link = &all_left;
	siginfo_t info;

	if (!reap(left->loop, source, &info))
		return;
	while (*link != left)
		link = &(*link)->next;
	*link = left->next;
	free(left);
}

static void run_ended(struct loop_source *source)
{
	struct tool_run *run = LOOP_OWNER(source, struct tool_run, source);
	siginfo_t info;

	if (!reap(run->loop, source, &info))
		return;
	run->running = false;
	run->status = info.si_code == CLD_EXITED ? info.si_status : -1;
	run->failed = run->status != 0;
}

/* In the child: our signals are blocked, because a signalfd has them. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child. Descriptors that have the number of their stream already would be closed by the exec. */
static void use_streams(const struct tool_run *run)
{
	if (dup2(run->input, STDIN_FILENO) < 0 || dup2(run->output, STDOUT_FILENO) < 0)
		_exit(127);
	fcntl(STDIN_FILENO, F_SETFD, 0);
	fcntl(STDOUT_FILENO, F_SETFD, 0);
}

static int start_run(struct tool_run *run, const char *const *argv)
{
	static char *const none[] = {NULL};
	char path[PATH_MAX];
	int error = find_evprof(path), pidfd;
	long pid;

	if (error)
		return error;
	pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL); /* seccomp may refuse pidfd_open */
	if (pid == 0) {
		if (run->input != run->output)
			use_streams(run);
		unblock_signals();
		execve(path, (char *const *)argv, run->environment ? run->environment : none);
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	run->source = (struct loop_source){.fd = pidfd, .ready = run_ended};
	error = loop_add(run->loop, &run->source);
	if (error)
		close(run->source.fd);
	return error;
}

void tool_run_start(struct tool_run *run, struct loop *loop, const char *const *argv)
{
	int error;

	run->loop = loop;
	error = start_run(run, argv);
	run->running = error == 0;
	run->status = -1;
	run->failed = error != 0;
	if (error)
		log_error("cannot start evprof %s: %s", argv[1], strerror(-error));
}

/* 1 and 3: the "Exit status" of evprof cut --help. */
bool tool_run_wrote(const struct tool_run *run)
{
	return run->status == 0 || run->status == 1 || run->status == 3;
}

void tool_run_wait(struct tool_run *run, int ms)
{
	struct pollfd ended = {.fd = run->source.fd, .events = POLLIN};

	if (run->running && poll(&ended, 1, ms) == 1)
		run_ended(&run->source);
}

void tool_run_leave(struct tool_run *run)
{
	struct left *left;

	if (!run->running)
		return;
	run->running = false;
	loop_remove(run->loop, &run->source);
	left = malloc(sizeof(*left));
	if (!left) { /* a zombie, until the collector ends */
		close(run->source.fd);
		return;
	}
	*left =
	    (struct left){.source = {.fd = run->source.fd, .ready = left_ended}, .loop = run->loop, .next = all_left};
	if (loop_add(left->loop, &left->source) < 0) {
		close(left->source.fd);
		free(left);
		return;
	}
	all_left = left;
}

static void end_run(struct tool_run *run, int number)
{
	if (!run->running)
		return;
	syscall(SYS_pidfd_send_signal, run->source.fd, number, NULL, 0);
	tool_run_leave(run);
	run->failed = true;
}

void tool_run_stop(struct tool_run *run)
{
	end_run(run, SIGTERM);
}

void tool_run_kill(struct tool_run *run)
{
	end_run(run, SIGKILL);
}
