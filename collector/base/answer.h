/* answer.h - sends the one answer to a control request (evprof/control.h). */
#ifndef COLLECTOR_ANSWER_H
#define COLLECTOR_ANSWER_H

struct json_t;

/*
 * Sends an answer without waiting for the other side, and closes the connection. answer: an object, to which evprof and
 * type are added, taken over; NULL: the collector has no memory left.
 */
void answer_send(int fd, struct json_t *answer);

/* The same with an error: one line that says what to do. */
void answer_send_error(int fd, const char *error);

#endif
