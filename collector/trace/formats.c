/*
 * formats.c - runs evprof export for a finished trace. See formats.h. Called by the session.
 */
#include "trace/formats.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
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

static void conversion_ended(struct loop_source *source)
{
	struct formats *formats = LOOP_OWNER(source, struct formats, source);
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
		return;
	loop_remove(formats->loop, source);
	close(source->fd);
	formats->running = false;
	formats->failed = info.si_code != CLD_EXITED || info.si_status != 0;
}

static int start_conversion(struct formats *formats, const char *list, const char *trace)
{
	static char *const environment[] = {NULL};
	char path[PATH_MAX];
	char *argv[] = {"evprof", "export", "--beside", "--format", (char *)list, (char *)trace, NULL};
	int error = find_evprof(path), pidfd;
	long pid;

	if (error)
		return error;
	pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL); /* seccomp may refuse pidfd_open */
	if (pid == 0) {
		execve(path, argv, environment);
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	formats->source = (struct loop_source){.fd = pidfd, .ready = conversion_ended};
	error = loop_add(formats->loop, &formats->source);
	if (error)
		close(formats->source.fd);
	return error;
}

void formats_start(struct formats *formats, struct loop *loop, const char *list, const char *trace)
{
	int error;

	formats->loop = loop;
	error = start_conversion(formats, list, trace);
	formats->running = error == 0;
	formats->failed = error != 0;
	if (error)
		log_error("cannot start evprof export for %s: %s", trace, strerror(-error));
}

void formats_stop(struct formats *formats)
{
	if (!formats->running)
		return;
	loop_remove(formats->loop, &formats->source);
	syscall(SYS_pidfd_send_signal, formats->source.fd, SIGTERM, NULL, 0);
	close(formats->source.fd);
	formats->running = false;
}
