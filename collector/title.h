/*
 * title.h - the title of a process (setproctitle): its command line as the system shows it, when it differs from the
 * one that the program was started with. Called by the session.
 */
#ifndef COLLECTOR_TITLE_H
#define COLLECTOR_TITLE_H

#include <stdint.h>

struct control_message;
struct json_t;
struct process;

struct title {
	struct json_t *argv; /* of the start of the program; that of the parent process where it is known */
	char *command;	     /* the same as the system showed it; NULL: not readable */
	char *text;	     /* what the system shows now */
	uint64_t due_ns;     /* time of the next read */
	uint64_t pause_ns;   /* time between reads */
};

/* parent: the process that forked it, or NULL. */
void title_begin(struct process *process, const struct control_message *join, const struct process *parent,
		 uint64_t now_ns);

/*
 * Writes the title to the trace if a read is due and the title has changed. Reads are frequent after the start, then
 * rarer, but at least every few seconds; the last one is when the process says that it ends.
 */
void title_look(struct process *process, uint64_t now_ns);

void title_done(struct title *title);

#endif
