/*
 * kept.h - a trace that keeps its last stretch only (EVPROF_KEEP).
 *
 * Chunks that nobody needs any more leave the file, and their space goes back to the file system. What remains is a
 * trace: every name, process and thread that lives or has events in the stretch, and for each thread the events from
 * its last recorded stack before the stretch on. Memory grows with the chunks that remain.
 *
 * A place in the file is never used twice: it ends at the same offset as that of a whole trace, and is sparse.
 */
#ifndef COLLECTOR_KEPT_H
#define COLLECTOR_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/settings.h"
#include "evprof/trace.h"

struct trace_writer;

/* How long a chunk stays. Events: until a later one of its thread has a recorded stack before the stretch. */
enum kept_kind {
	KEPT_EVENTS,
	KEPT_STATE,   /* as long as its process or thread is in the trace */
	KEPT_LATEST,  /* until a later one of its process follows */
	KEPT_PASSING, /* as long as it is in the stretch */
	KEPT_END,     /* the last of its process or thread, which leave the trace with it */
};

struct kept_chunk;

#define KEPT_HOLDS 16

struct kept_held {
	uint64_t number, until_ns;
};

struct kept {
	struct setting_keep limits;	 /* all zeros: the whole trace is kept */
	bool rotates;			 /* without limits: what kept_drop() names leaves the file */
	struct kept_chunk *first, *last; /* in the order of their offsets */
	struct kept_chunk *stretch;	 /* the first one in the stretch; NULL: none */
	struct kept_chunk *moved;	 /* the last state before the stretch that has its place; NULL: none */
	uint64_t count;			 /* of all chunks */
	uint64_t stretch_bytes;
	uint64_t dropped_bytes;		   /* since space was last given back */
	uint64_t freed_bytes;		   /* that were given back */
	uint64_t since_ns;		   /* CLOCK_MONOTONIC: all events from then on are in the file; 0: all are */
	uint64_t since_byte;		   /* of the file, with since_ns: from there on; 0: the time alone counts */
	struct kept_held held[KEPT_HOLDS]; /* until_ns 0: free */
	void *owners;			   /* processes and threads: tsearch(3) */
	uint32_t *spare;		   /* numbers of threads that have left the file */
	size_t spare_count, spare_allocated;
	size_t spare_ready;  /* the first ones: what these threads had in the file was given back, too */
	bool out_of_memory;  /* nothing leaves the file any more */
	bool is_read;	     /* somebody reads it, and nothing leaves the file before it was read ... */
	uint64_t read_bytes; /* ... up to this offset */
};

static inline bool kept_is_limited(const struct kept *kept)
{
	return kept->limits.ns || kept->limits.bytes;
}

/* Whether something may leave the file. */
static inline bool kept_is_noted(const struct kept *kept)
{
	return kept_is_limited(kept) || kept->rotates;
}

#define KEPT_BEHIND_BYTES (UINT64_C(1) << 30)

/* Whether so much is not read yet that the file, which ends at that offset, must not grow. */
static inline bool kept_is_behind(const struct kept *kept, uint64_t end)
{
	return kept->is_read && end > kept->read_bytes && end - kept->read_bytes > KEPT_BEHIND_BYTES;
}

/* Whether the file system can take back a part of the file. 0 or -errno. */
int kept_check(int fd);

/*
 * Notes a chunk that was written at that offset; in_file: its bytes with header and padding. raw: its payload before
 * compression. Returns 0 or -ENOMEM.
 */
int kept_add(struct kept *kept, const struct trace_chunk *chunk, const void *raw, uint64_t offset, uint64_t in_file,
	     enum kept_kind kind, uint64_t now_ns);

/* Drops what has left the stretch. */
void kept_renew(struct kept *kept, const struct trace_writer *writer, uint64_t now_ns);

/* Drops what was written before that byte of the file; at_ns: when that was. Not while something is held. */
void kept_drop(struct kept *kept, const struct trace_writer *writer, uint64_t byte, uint64_t at_ns);

/*
 * Nothing leaves the file for so long; what has left it is gone from there, so that it can be read. Returns the number
 * of the hold, which is larger than that of any hold before. Of more than KEPT_HOLDS the one that ends first gives way:
 * most likely whoever asked for it has ended without a release.
 */
uint64_t kept_hold(struct kept *kept, const struct trace_writer *writer, uint64_t now_ns, uint32_t hold_ms);
/* Gives up that hold, if there is one of this trace. */
void kept_release(struct kept *kept, uint64_t number);
void kept_release_all(struct kept *kept);

/* When the last hold ends; 0: there is none. */
uint64_t kept_held_until(const struct kept *kept);

/* A thread's number that is free again. False: none is. */
bool kept_spare_number(struct kept *kept, uint32_t *number);

/* Adds all that remains to the index. 0 or -errno. */
int kept_index(const struct kept *kept, struct trace_writer *writer);

void kept_done(struct kept *kept);

#endif
