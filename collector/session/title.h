/*
 * title.h - the title of a process (setproctitle): its command line as the system shows it, when it differs from the
 * one that the program was started with. Called by the session.
 */
#ifndef COLLECTOR_TITLE_H
#define COLLECTOR_TITLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct control_message;
struct json_t;

struct title {
	struct json_t *argv; /* of the start of the program; that of the parent process where it is known */
	char *command;	     /* the same as the system showed it; NULL: not readable */
	char *text;	     /* what the system shows now */
	uint64_t due_ns;     /* time of the next read */
	uint64_t pause_ns;   /* time between reads */
};

/* parent: the title of the process that forked it, or NULL. */
void title_begin(struct title *title, const struct control_message *join, pid_t pid, const struct title *parent,
		 uint64_t now_ns);

/*
 * Reads the title if a read is due. True: it has changed. Reads are frequent after the start, then rarer, but at least
 * every few seconds; the last one is when the process says that it ends.
 */
bool title_look(struct title *title, pid_t pid, bool ends, uint64_t now_ns);

/* NULL: the command line is that of the start of the program. */
const char *title_shown(const struct title *title);

void title_done(struct title *title);

#endif
