/*
 * proc.h - replacements for /proc where it is missing or that of another pid namespace. There, a pid in its paths is
 * that of another process.
 */
#ifndef EVPROF_PROC_H
#define EVPROF_PROC_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Whether pids in /proc are those of our pid namespace. */
static inline bool proc_is_ours(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && atol(self) == (long)getpid();
}

/* The executable of this process. Returns the length of its path, or -errno. */
static inline ssize_t proc_own_path(char path[PATH_MAX])
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length < 0 && (!started || !realpath(started, path)))
		return -errno;
	if (length >= 0)
		path[length] = 0;
	return (ssize_t)strlen(path);
}

#endif
