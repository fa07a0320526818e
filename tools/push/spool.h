/*
 * spool.h - requests that wait to be sent, oldest first, in memory or as files in a folder. For sender.c.
 *
 * Bounded in bytes: for a new one that does not fit, the oldest are dropped, and counted. In a folder they outlive this
 * process, and the next one sends them. A file has its name only when it is complete. One process at a time uses a
 * folder (a lock on the file "lock").
 *
 * Not thread-safe: the owner has a lock.
 */
#ifndef EVPROF_TOOLS_PUSH_SPOOL_H
#define EVPROF_TOOLS_PUSH_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push_spool_item {
	uint64_t number;
	size_t bytes;
	uint8_t *body; /* NULL: it is in its file */
};

struct push_spool {
	const char *kind;	/* the end of the files' names */
	int folder_fd, lock_fd; /* -1: in memory */
	size_t limit_bytes;
	struct push_spool_item *items; /* from `first` on, in the order of their numbers */
	size_t first, count, allocated;
	size_t bytes;
	uint64_t next;
	uint64_t sending; /* the number of the one that is being sent; 0: none */
	uint64_t dropped, dropped_bytes;
};

/*
 * folder: NULL: in memory. It is made if it is missing. kind: of the requests, a name that stays valid; files of other
 * kinds are left alone. False after one line in `why`.
 */
bool push_spool_open(struct push_spool *spool, const char *folder, const char *kind, size_t limit_bytes, char *why,
		     size_t why_bytes);
/* Adds a request; the body is copied or written. Returns 0 or -errno: then it is dropped, and counted. */
int push_spool_add(struct push_spool *spool, const void *body, size_t bytes);
/*
 * The oldest one's body, which the caller frees. It is not dropped until one of the two below. False: there is none.
 * What cannot be read is dropped.
 */
bool push_spool_first(struct push_spool *spool, uint8_t **body, size_t *bytes);
/* Removes it. was_sent: else it counts as dropped. */
void push_spool_remove(struct push_spool *spool, bool was_sent);
/* Leaves it there: it is to be sent again. */
void push_spool_keep(struct push_spool *spool);
/* What is in memory is dropped, and counted; files stay. */
void push_spool_close(struct push_spool *spool);

#endif
