/*
 * batches.h - a bounded queue of batches, which a worker thread processes in order: for exporters whose output costs
 * more than reading the trace.
 *
 * The caller's thread fills and passes batches (room, pass, wait, end); the worker processes them. On one processor, or
 * if no thread can be created, the caller's thread processes each batch itself when it is full. Memory: BATCHES
 * batches.
 *
 * After batches_wait() the caller's thread may change the worker's input and read its results.
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

/* Returns 0 or -errno. After an error no further batch is processed. */
typedef int batch_work(void *owner, const char *bytes, size_t used);

/*
 * invariant: done <= given <= done + BATCHES. Batch number n is in at[n % BATCHES]. Batches from done to given belong
 * to the worker, the others to the caller's thread.
 */
struct batches {
	struct batch *filling; /* at[given % BATCHES] */
	int error;	       /* the first -errno that the caller's thread has seen */
	batch_work *work;
	void *owner;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t more;  /* given has increased, or ends is set */
	pthread_cond_t less;  /* done has increased */
	uint64_t given;
	uint64_t done;
	int work_error; /* the worker's first -errno */
	bool ends;
	struct batch at[BATCHES];
};

/* Starts the queue. owner is passed to work. */
void batches_begin(struct batches *batches, batch_work *work, void *owner);
/* The slow path of batches_room(): the current batch is full. */
void *batches_make_room(struct batches *batches, size_t bytes);
/* Passes the current batch to the worker. */
void batches_pass(struct batches *batches);
/* Passes the current batch, and waits until all batches are processed. Returns 0 or the first -errno. */
int batches_wait(struct batches *batches);
/* Like batches_wait(), and ends the queue. An all-zero struct is fine. */
int batches_end(struct batches *batches);

/*
 * Room for one piece, which stays within one batch. Its alignment follows from the sizes of the pieces before it. NULL:
 * no memory.
 */
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
