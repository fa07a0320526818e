/*
 * batches.h - a bounded queue of batches, which a second thread works off in the order in which they are given: for
 * exporters whose output costs more than what is read for it.
 *
 * Used by the exporters. One thread gives (room, pass, wait, end), one works. Where there is one processor, or no
 * thread can be made, the giving thread does the work itself, when a batch is full. Memory: BATCHES batches.
 *
 * What the work looks at may be changed by the giving thread after batches_wait(), and read there what it has made.
 */
#ifndef EVPROF_TOOLS_UTIL_BATCHES_H
#define EVPROF_TOOLS_UTIL_BATCHES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/invariant.h"

#define BATCHES 3
#define BATCH_BYTES ((size_t)1 << 17)

struct batch {
	char *bytes;
	size_t used;
	size_t allocated;
};

/* Returns 0 or -errno; after that no batch is worked off any more. */
typedef int batch_work(void *owner, const char *bytes, size_t used);

/*
 * invariant: done <= given <= done + BATCHES; batch number n is in at[n % BATCHES]; those from done to given are the
 * working thread's, the others the giving one's
 */
struct batches {
	struct batch *filling; /* at[given % BATCHES] */
	int error;	       /* the first -errno that the giving thread has heard of */
	batch_work *work;
	void *owner;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;  /* given has grown, or it ends */
	pthread_cond_t less;  /* done has grown */
	uint64_t given;
	uint64_t done;
	int work_error; /* the first */
	bool ends;
	struct batch at[BATCHES];
};

/* Begins; owner is given to work. */
void batches_begin(struct batches *batches, batch_work *work, void *owner);
/* What batches_room() does where the batch being filled is too small. */
void *batches_make_room(struct batches *batches, size_t bytes);
/* Gives what was put. */
void batches_pass(struct batches *batches);
/* Gives what was put, and waits until all is worked off. Returns 0 or the first -errno. */
int batches_wait(struct batches *batches);
/* The same, and no more can be given. Also for all zeros. */
int batches_end(struct batches *batches);

/* Room for one piece, which stays in one batch, aligned as the sizes of the pieces before it are. NULL: no memory. */
static inline void *batches_room(struct batches *batches, size_t bytes)
{
	struct batch *batch = batches->filling;

	invariant(batch->used <= batch->allocated);
	if (__builtin_expect(bytes > batch->allocated - batch->used, 0))
		return batches_make_room(batches, bytes);
	batch->used += bytes;
	return batch->bytes + batch->used - bytes;
}

#endif
