/*
 * folder.h - the traces in a daemon's folder: how much room they take, and which are removed (--keep, --keep-for,
 * --min-free).
 *
 * The oldest finished traces go first, each with the exports next to it. Removed is only what is a trace by its name,
 * its magic and its owner, and that nobody writes; no symbolic link is followed. A reader keeps what it has opened.
 */
#ifndef COLLECTOR_FOLDER_H
#define COLLECTOR_FOLDER_H

#include <stdint.h>

/* 0: no limit. */
struct folder_limits {
	uint64_t keep_bytes; /* of all traces and exports together, those under way included */
	uint64_t keep_s;     /* age of a finished trace */
	uint64_t free_bytes; /* what the file system keeps free */
};

/* All zeros: no folder, and no limits. */
struct folder {
	const char *path; /* absolute, not owned */
	struct folder_limits limits;
	uint64_t next_ns;     /* time of the next pass */
	uint64_t measured_ns; /* time of the last one; 0: none */
	uint64_t bytes;	      /* what the traces took then */
};

/* Removes what is over a limit, if a pass is due. */
void folder_tend(struct folder *folder, uint64_t now_ns);

/* The time until the next pass, in us; -1: none is needed. */
int folder_patience_us(const struct folder *folder, uint64_t now_ns);

/* Bytes of all traces and exports, at most a few seconds old. */
uint64_t folder_bytes(struct folder *folder, uint64_t now_ns);

/* Bytes that may be written before the file system has less left than free_bytes; UINT64_MAX: no limit. */
uint64_t folder_room(struct folder *folder, uint64_t now_ns);

#endif
