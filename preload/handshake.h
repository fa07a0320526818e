/* handshake.h - the one message with which a process image joins a collector (control.h). */
#ifndef PRELOAD_HANDSHAKE_H
#define PRELOAD_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

/* The tree this image belongs to; made by the first process, inherited by fork and by EVPROF_SESSION. */
struct session {
	char id[33];	   /* "" before the first join */
	char socket[4096]; /* path or @name of the collector */
	int first;	   /* pid of the first process */
	int owner;	   /* pid of who prints the closing line */
};

extern struct session session;

#define HANDSHAKE_SCRATCH_BYTES (256 * 1024)

/*
 * Sends the join message with memfd to the session's collector. Where the session names none, or one that is gone, a
 * private collector is started and the session is made anew, unless start is a rejoin. start: enum wire_start.
 * scratch: private memory of HANDSHAKE_SCRATCH_BYTES. Never blocks for longer than a second. Returns 0 or -errno, with a line on stderr.
 */
int handshake_join(int memfd, int start, void *scratch);

/* Connects and hangs up, which wakes the collector. False: nobody listens there. */
bool handshake_poke(void);

#endif
