/* switch.h - orders to running processes, for evprof stop, start, mark and record. */
#ifndef EVPROF_TOOLS_CMD_SWITCH_H
#define EVPROF_TOOLS_CMD_SWITCH_H

struct switch_order {
	const char *verb;   /* for messages */
	const char *action; /* stop, start, mark or events (evprof/control.h) */
	const char *done;   /* for the line of a process that has followed; NULL: none */
	const char *name;   /* of the mark, or the list of events; NULL: the action has none */
	const char *socket; /* NULL: as in control_collectors_find() */
	const char *target;
};

/*
 * Asks until all processes have followed, within a bound. Returns the exit status of evprof stop; CLI_FAILED, too, if
 * none can change its events.
 */
int switch_processes(const struct switch_order *order);

#endif
