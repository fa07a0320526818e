/* request.h - one control request to a collector, and its answer (evprof/control.h). Used by collectors.c. */
#ifndef EVPROF_TOOLS_CONTROL_REQUEST_H
#define EVPROF_TOOLS_CONTROL_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTROL_SOCKET_BYTES 110 /* a path, or '@' and an abstract name */

struct control_collector {
	char socket[CONTROL_SOCKET_BYTES];
	int fd;		 /* the connection, which takes one request; -1: none */
	pid_t pid;	 /* 0: in a pid namespace of its own, or not known yet */
	json_t *answer;	 /* an object; NULL: none */
	bool closed;	 /* the connection, without an answer */
	bool ended;	 /* without an answer: a private collector ends with its program */
	char error[320]; /* where there is no answer: one line, without a period */
};

/* Connects to a socket without waiting. Returns the descriptor or -errno. */
int control_connect(const char *socket);

/* Both set collector->error where they fail. text: the message. deadline_ns: of CLOCK_MONOTONIC. */
void control_send(struct control_collector *collector, const char *text);
void control_receive(struct control_collector *collector, int64_t deadline_ns);

#endif
