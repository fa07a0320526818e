/*
 * cut_alive.h - evprof cut --alive: of a trace what is alive at its end, and sums of the rest; also of one that is
 * being written, as the collector runs it for EVPROF_KEEP=alive.
 */
#ifndef EVPROF_TOOLS_CMD_CUT_ALIVE_H
#define EVPROF_TOOLS_CMD_CUT_ALIVE_H

#include <stdbool.h>

struct cut_alive {
	const char *path;
	const char *to; /* the path, if in_place */
	bool in_place;
	bool until_closed; /* follows the trace until standard input is closed, and prints how far it has read */
	int every_ms;	   /* writes what is alive so far to TO-alive.evp, too; 0: never */
};

/* The exit status of evprof, after one line on stderr if it is not 0. A followed trace may be incomplete. */
int cut_alive(const struct cut_alive *request);

#endif
