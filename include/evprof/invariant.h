/*
 * invariant.h - conditions that hold whatever the program, the collector or a file does.
 *
 * They are checked in DEBUG, ASAN, TSAN and fuzz builds, which define EVPROF_DEBUG. A broken invariant is reported to
 * stderr and to the file that BROKEN_INVARIANTS names (a private collector has no stderr), and aborts the process. A
 * normal build compiles the condition and never evaluates it: evprof does not end another program's process.
 *
 * A condition is about data that one side owns alone or has checked. Data that the other side of a shared memory can
 * write and the contents of a trace file are input, not invariants.
 */
#ifndef EVPROF_INVARIANT_H
#define EVPROF_INVARIANT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef EVPROF_DEBUG
#define invariant(condition)                                                                                           \
	(__builtin_expect(!!(condition), 1) ? (void)0 : invariant_broken(__FILE__, __LINE__, #condition))
#else
#define invariant(condition) ((void)(0 && (condition)))
#endif

static inline void __attribute__((cold, noreturn)) invariant_broken(const char *file, int line, const char *condition)
{
	const char *log = getenv("BROKEN_INVARIANTS");
	int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

	dprintf(STDERR_FILENO, "%s:%d: invariant broken: %s\n", file, line, condition);
	if (fd >= 0)
		dprintf(fd, "%s:%d: invariant broken: %s\n", file, line, condition);
	abort();
}

#endif
