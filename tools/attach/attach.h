/*
 * attach.h - asks a running Python to load libevprof.so and to begin, or to end, a recording (preload/start/attach.c).
 */
#ifndef EVPROF_TOOLS_ATTACH_ATTACH_H
#define EVPROF_TOOLS_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/target.h"

#define ATTACH_SETTINGS_BYTES 8192

struct attach_request {
	const char *verb;     /* "attach" or "detach" */
	const char *library;  /* the path of libevprof.so */
	const char *settings; /* lines of NAME=VALUE, shorter than ATTACH_SETTINGS_BYTES; "" for detach */
	int process;	      /* a pidfd; -1: none */
	int wait_ms;	      /* for the main thread to come to Python's next instruction, and for the answer */
};

/*
 * Returns 0 once the process has followed; -1 with one line, without a period, in why. An attach whose time is over, or
 * that was interrupted (cli_catch_interrupt()), is taken back. A detach may still be followed later; the line then says
 * so.
 */
int attach_ask(const struct target *target, const struct attach_request *request, char *why, size_t why_bytes);

/* Whether the process of a pidfd has ended, be it that nobody has waited for it. -1: not known to have. */
bool attach_has_ended(int process);

#endif
