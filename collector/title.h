/*
 * title.h - what a process calls itself (setproctitle): its command line as the system shows it, once that is not the
 * one that the program was started with any more. Called by the session.
 */
#ifndef COLLECTOR_TITLE_H
#define COLLECTOR_TITLE_H

#include <stdint.h>

struct control_message;
struct json_t;
struct process;

struct title {
	struct json_t *argv; /* that the program was started with; of the one that forked it, where that is known */
	char *command;	     /* the same as the system showed it; NULL: it cannot be read */
	char *text;	     /* what it shows now */
	uint64_t due_ns;     /* when it is looked at next */
	uint64_t pause_ns;   /* since the look before */
};

/* parent: the process that has forked it, or NULL. */
void title_begin(struct process *process, const struct control_message *join, const struct process *parent,
		 uint64_t now_ns);

/*
 * Writes the title to the trace if it is due and has changed. Soon after the start, then more and more rarely, but
 * every few seconds; and when the process says that it ends.
 */
void title_look(struct process *process, uint64_t now_ns);

void title_done(struct title *title);

#endif
