/*
 * ship.h - evprof ship: hands each finished trace of a folder to a command or a store, until that has it.
 *
 * The folder is the spool: a trace stays where it is, and the collector's bounds (--keep, --keep-for, --min-free) hold
 * for it. What has been shipped is in a file of the folder, so a restart ships nothing twice. The command may get the
 * same trace twice if it is killed in between.
 */
#ifndef EVPROF_TOOLS_SHIP_SHIP_H
#define EVPROF_TOOLS_SHIP_SHIP_H

#include <stdbool.h>

#include "cut/redact.h"
#include "ship/store.h"

struct ship_request {
	const char *folder;
	char *const *command; /* ended by NULL; {} is the path, {name} the name of the trace, {host} that of the host */
	const struct store *store; /* in place of a command; NULL: there is none */
	struct redact redact;	   /* of a copy that is shipped; without patterns and arguments: the trace itself */
	int retry_ms;		   /* after the first failure; it doubles up to RETRY_MAX_MS */
	int timeout_ms;		   /* of a command, or of a PUT */
	int tries;		   /* of each trace, with once */
	bool once;		   /* ends when no trace is left, or each has had its tries */
	bool until_closed;	   /* the same once standard input is closed */
};

/* Returns the exit status. Errors and a line at the end are written to stderr. */
int ship(const struct ship_request *request);

#endif
