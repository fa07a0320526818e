/*
 * batches.c - see batches.h.
 */
#include "util/batches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/invariant.h"
#include "util/second_thread.h"

/* Requires the lock. */
static inline bool are_in_order(const struct batches *batches)
{
	return batches->done <= batches->given && batches->given - batches->done <= BATCHES;
}

static void *work_off(void *owner)
{
	struct batches *batches = owner;

	pthread_mutex_lock(&batches->lock);
	while (batches->given > batches->done || !batches->ends) {
		struct batch *batch = &batches->at[batches->done % BATCHES];
		int error = batches->work_error;

		if (batches->given == batches->done) {
			pthread_cond_wait(&batches->more, &batches->lock);
			continue;
		}
		pthread_mutex_unlock(&batches->lock);
		invariant(batch->used && batch->used <= batch->allocated);
		if (!error)
			error = batches->work(batches->owner, batch->bytes, batch->used);
		batch->used = 0;
		pthread_mutex_lock(&batches->lock);
		batches->work_error = error;
		batches->done++;
		invariant(are_in_order(batches));
		pthread_cond_signal(&batches->less);
	}
	pthread_mutex_unlock(&batches->lock);
	return NULL;
}

void batches_begin(struct batches *batches, batch_work *work, void *owner)
{
	memset(batches, 0, sizeof(*batches));
	batches->work = work;
	batches->owner = owner;
	batches->filling = &batches->at[0];
	pthread_mutex_init(&batches->lock, NULL);
	pthread_cond_init(&batches->more, NULL);
	pthread_cond_init(&batches->less, NULL);
	batches->threaded = second_thread_helps() && second_thread_start(&batches->thread, work_off, batches) == 0;
}

/* Waits until at most `left` batches are in the queue. */
static void wait_for(struct batches *batches, uint64_t left)
{
	while (batches->given - batches->done > left)
		pthread_cond_wait(&batches->less, &batches->lock);
	if (!batches->error)
		batches->error = batches->work_error;
}

static void work_alone(struct batches *batches)
{
	struct batch *batch = batches->filling;

	if (!batches->error)
		batches->error = batches->work(batches->owner, batch->bytes, batch->used);
	batch->used = 0;
}

void batches_pass(struct batches *batches)
{
	if (!batches->filling->used)
		return;
	if (!batches->threaded) {
		work_alone(batches);
		return;
	}
	pthread_mutex_lock(&batches->lock);
	batches->given++;
	invariant(are_in_order(batches));
	pthread_cond_signal(&batches->more);
	wait_for(batches, BATCHES - 1);
	batches->filling = &batches->at[batches->given % BATCHES];
	invariant(batches->given - batches->done < BATCHES && !batches->filling->used);
	pthread_mutex_unlock(&batches->lock);
}

void *batches_make_room(struct batches *batches, size_t bytes)
{
	size_t wanted = bytes > BATCH_BYTES ? bytes : BATCH_BYTES;
	struct batch *batch;
	char *grown;

	batches_pass(batches);
	batch = batches->filling;
	if (batch->allocated < bytes) {
		grown = realloc(batch->bytes, wanted);
		if (!grown) {
			batches->error = batches->error ? batches->error : -ENOMEM;
			return NULL;
		}
		batch->bytes = grown;
		batch->allocated = wanted;
	}
	batch->used = bytes;
	return batch->bytes;
}

int batches_wait(struct batches *batches)
{
	batches_pass(batches);
	if (!batches->threaded)
		return batches->error;
	pthread_mutex_lock(&batches->lock);
	wait_for(batches, 0);
	pthread_mutex_unlock(&batches->lock);
	return batches->error;
}

int batches_end(struct batches *batches)
{
	int error;

	if (!batches->work)
		return 0;
	error = batches_wait(batches);
	if (batches->threaded) {
		pthread_mutex_lock(&batches->lock);
		batches->ends = true;
		pthread_cond_signal(&batches->more);
		pthread_mutex_unlock(&batches->lock);
		pthread_join(batches->thread, NULL);
	}
	for (unsigned i = 0; i < BATCHES; i++)
		free(batches->at[i].bytes);
	pthread_cond_destroy(&batches->less);
	pthread_cond_destroy(&batches->more);
	pthread_mutex_destroy(&batches->lock);
	memset(batches, 0, sizeof(*batches));
	return error;
}
