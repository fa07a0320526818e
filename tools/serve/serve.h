/*
 * serve.h - evprof serve: what recorded processes do now, on a page for browsers of this machine.
 *
 * Three threads: one asks the collectors and counts, that of HTTP answers from what was counted last, and the caller's
 * waits for a signal. A lock divides them, which nobody holds while waiting for a collector or a browser.
 */
#ifndef EVPROF_TOOLS_SERVE_SERVE_H
#define EVPROF_TOOLS_SERVE_SERVE_H

#include "serve/address.h"

struct serve_settings {
	struct serve_address address;
	const char *target; /* as in evprof/control.h */
	const char *socket; /* as for control_collectors_find() */
	int interval_ms;
};

/*
 * Prints the address of the page on stdout, and serves it until SIGINT or SIGTERM. Returns the exit status, after one
 * line on stderr if that is not CLI_FINE.
 */
int serve(const struct serve_settings *settings);

#endif
