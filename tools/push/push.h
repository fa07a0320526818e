/*
 * push.h - evprof push: profiles of finished traces, or of all that is recorded, to an endpoint.
 */
#ifndef EVPROF_TOOLS_PUSH_PUSH_H
#define EVPROF_TOOLS_PUSH_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push_request {
	const char *endpoint; /* NULL: as the variables say */
	const char *socket;   /* as for control_collectors_find() */
	const char *folder;   /* whose new traces are pushed, too; NULL: none */
	const char *spool;    /* folder; NULL: in memory */
	size_t spool_bytes;
	bool until_closed; /* standard input ends it, signals do not */
	int64_t since_ns;  /* CLOCK_MONOTONIC: traces that began later are pushed from their start; 0: now */
	int64_t interval_ns;
	int64_t patience_ms; /* at the end, for what is not sent yet */
	char **traces;	     /* NULL at the end; if there is none, all that is recorded is followed */
};

/* Returns the exit status. */
int push(const struct push_request *request);

#endif
