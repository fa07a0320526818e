/*
 * program.h - the program of evprof run: started with the library preloaded, and waited for while signals are forwarded
 * to it.
 */
#ifndef EVPROF_TOOLS_RUN_PROGRAM_H
#define EVPROF_TOOLS_RUN_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/session.h"

struct run_program {
	char *const *argv;
	bool any_python;     /* argv[0] is "python3" by default: where there is none, "python" */
	const char *library; /* in a form that LD_PRELOAD can hold */
	const struct run_session *session;
	bool host; /* the session is with the host's collector */
};

/* How the program ended. */
struct run_end {
	int status;
	pid_t pid;
	int64_t wall_ns; /* from its start on */
	int64_t cpu_ns;	 /* of its process alone, as the kernel counts it; 0: not known */
};

/*
 * Runs the program to its end. Returns 0 and its end; -errno if it cannot be run; -ECHILD if it ran and its
 * status is unknown.
 */
int run_program(const struct run_program *program, struct run_end *end);

#endif
