/*
 * program.h - the program of evprof run: started with the library in it, waited for, with the signals that are
 * meant for it.
 */
#ifndef EVPROF_TOOLS_RUN_PROGRAM_H
#define EVPROF_TOOLS_RUN_PROGRAM_H

#include <stdbool.h>

#include "run/session.h"

struct run_program {
	char *const *argv;
	const char *library; /* as LD_PRELOAD can hold it */
	const struct run_session *session;
	bool host; /* the session is one of the host's collector */
};

/*
 * Runs it to its end. Returns 0 with its wait status; -errno if it cannot be run; -ECHILD if it has run and its status
 * is not known.
 */
int run_program(const struct run_program *program, int *status);

#endif
