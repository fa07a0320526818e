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
 * Connects to the session's collector. Where there is no session yet, one is made, with the host's collector or a
 * private one that is started. Where the private collector of the session is gone, another is started at its socket, by
 * whichever process of the tree comes first; the host's is not replaced in a rejoin. start: enum wire_start. scratch:
 * private memory of HANDSHAKE_SCRATCH_BYTES. Never blocks for longer than a second. Returns a descriptor or -errno,
 * with a line on stderr unless start is a rejoin.
 */
int handshake_connect(int start, void *scratch);

/* Sends the join message with memfd; takes over neither descriptor. Returns 0 or -errno, with a line on stderr. */
int handshake_send(int connection, int memfd, int start, void *scratch);

/*
 * This process should be recorded, and is not: says why on stderr, and to who waits for the session's trace. error:
 * -errno.
 */
void handshake_absent(const char *what, int error);

enum poke {
	POKE_WOKEN,
	POKE_FAILED, /* somebody may listen there and cannot be reached from here, or not now */
	POKE_NOBODY, /* of ours listens there */
};

/* Connects and hangs up, which wakes the collector. */
enum poke handshake_poke(void);

#endif
