/* handshake.h - the join message, with which a process image joins a collector (control.h). */
#ifndef PRELOAD_HANDSHAKE_H
#define PRELOAD_HANDSHAKE_H

/* The tree that this image belongs to. The first process creates it; forks and EVPROF_SESSION pass it on. */
struct session {
	char id[33];	   /* "" before the first join */
	char socket[4096]; /* path or @name of the collector */
	int first;	   /* pid of the first process */
	int owner;	   /* pid of the process that prints the summary line */
};

extern struct session session;

#define HANDSHAKE_SCRATCH_BYTES (256 * 1024)

/*
 * Connects to the session's collector. If there is no session yet, one is created, with the host's collector or with a
 * private one that is started. If the session's private collector is gone, the first process of the tree that notices
 * starts another at its socket; a rejoin does not replace the host's. start: enum wire_start. scratch: private memory
 * of HANDSHAKE_SCRATCH_BYTES. Never blocks for longer than a second. Returns a descriptor or -errno, with a line on
 * stderr unless start is a rejoin.
 */
int handshake_connect(int start, void *scratch);

/* Sends the join message with memfd; takes over neither descriptor. Returns 0 or -errno, with a line on stderr. */
int handshake_send(int connection, int memfd, int start, void *scratch);

/*
 * This process should be recorded and is not: reports the reason on stderr, and to the collector, for the process that
 * waits for the session's trace. error: -errno.
 */
void handshake_absent(const char *what, int error);

enum poke {
	POKE_WOKEN,
	POKE_FAILED, /* a collector may listen there, but cannot be reached from here, or not now */
	POKE_NOBODY, /* no collector of ours listens there */
};

/* Connects and hangs up, which wakes the collector. */
enum poke handshake_poke(void);

#endif
