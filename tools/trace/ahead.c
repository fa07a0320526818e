/*
 * ahead.c - the read-ahead thread, which reads and unpacks the next chunks while the caller processes the current one.
 * See stream.h.
 *
 * Called by stream.c only. The thread reads the file, and the places and slots that it was given. It writes only these
 * slots. Damage is counted by the thread that owns the trace, in the same order as without read-ahead. Nothing is read
 * ahead on one processor, or if the thread cannot be created.
 *
 * invariant: a slot belongs to the reading thread while it is READING, and to the owner in any other state. States
 * change under the lock. The fields that identify a slot's chunk change under the lock, too, and only by the owner.
 */
#include "trace/stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "evprof/invariant.h"
#include "util/second_thread.h"

enum slot_state { SLOT_FREE, SLOT_WANTED, SLOT_READING, SLOT_READ };

struct slot {
	enum slot_state state;
	const struct trace_stream *stream; /* NULL: no longer needed */
	size_t number;			   /* index of the place in its thread */
	uint64_t order;			   /* order of the requests */
	const struct trace_place *place;
	struct trace_payload payload;
	struct trace_events events;
	int error;
};

struct trace_ahead {
	const struct trace *trace;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* a slot became WANTED, or the thread is to end */
	pthread_cond_t read;   /* a slot became READ or FREE */
	uint64_t asked;
	bool ends;
	void *unzstd; /* owned by the reading thread */
	struct slot slots[TRACE_AHEAD_CHUNKS];
};

static struct slot *find_slot(struct trace_ahead *ahead, const struct trace_stream *stream, size_t number)
{
	for (struct slot *slot = ahead->slots; slot < ahead->slots + TRACE_AHEAD_CHUNKS; slot++)
		if (slot->state != SLOT_FREE && slot->stream == stream && slot->number == number)
			return slot;
	return NULL;
}

/* The oldest request. */
static struct slot *next_wanted(struct trace_ahead *ahead)
{
	struct slot *first = NULL;
	for (struct slot *slot = ahead->slots; slot < ahead->slots + TRACE_AHEAD_CHUNKS; slot++)
		if (slot->state == SLOT_WANTED && (!first || slot->order < first->order))
			first = slot;
	return first;
}

static void *read_slots(void *owner)
{
	struct trace_ahead *ahead = owner;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->ends) {
		struct slot *slot = next_wanted(ahead);

		if (!slot) {
			pthread_cond_wait(&ahead->wanted, &ahead->lock);
			continue;
		}
		slot->state = SLOT_READING;
		pthread_mutex_unlock(&ahead->lock);
		slot->error = trace_fetch(ahead->trace, slot->place, &slot->payload, &ahead->unzstd);
		if (!slot->error)
			slot->error = trace_unpack_events(&slot->payload, &slot->events);
		pthread_mutex_lock(&ahead->lock);
		invariant(slot->state == SLOT_READING);
		slot->state = slot->stream ? SLOT_READ : SLOT_FREE;
		pthread_cond_signal(&ahead->read);
	}
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

/* --- the owner's side --- */

static struct trace_ahead *ahead_new(const struct trace *trace)
{
	struct trace_ahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		return NULL;
	ahead->trace = trace;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->wanted, NULL);
	pthread_cond_init(&ahead->read, NULL);
	if (second_thread_start(&ahead->thread, read_slots, ahead) == 0)
		return ahead;
	free(ahead);
	return NULL;
}

void trace_ahead_ask(struct trace *trace, const struct trace_stream *stream, size_t number,
		     const struct trace_place *place)
{
	struct trace_ahead *ahead;
	unsigned i;

	if (!trace->ahead && !trace->no_ahead && second_thread_helps())
		trace->ahead = ahead_new(trace);
	ahead = trace->ahead;
	trace->no_ahead = !ahead; /* creation is attempted once */
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	for (i = 0; i < TRACE_AHEAD_CHUNKS && !find_slot(ahead, stream, number); i++) {
		struct slot *slot = &ahead->slots[i];

		if (slot->state != SLOT_FREE)
			continue;
		slot->state = SLOT_WANTED;
		slot->stream = stream;
		slot->number = number;
		slot->order = ahead->asked++;
		slot->place = place;
		pthread_cond_signal(&ahead->wanted);
	}
	pthread_mutex_unlock(&ahead->lock);
}

/* Swaps the buffers, so that neither side allocates one for each chunk. */
static void take_slot(struct slot *slot, struct trace_payload *payload, struct trace_events *events, int *error)
{
	struct trace_payload given = *payload;

	*payload = slot->payload;
	slot->payload = given;
	*error = slot->error;
	if (!slot->error)
		*events = slot->events;
	slot->state = SLOT_FREE;
}

bool trace_ahead_take(struct trace *trace, const struct trace_stream *stream, size_t number,
		      struct trace_payload *payload, struct trace_events *events, int *error)
{
	struct trace_ahead *ahead = trace->ahead;
	struct slot *slot;
	bool taken = false;

	if (!ahead)
		return false;
	pthread_mutex_lock(&ahead->lock);
	slot = find_slot(ahead, stream, number);
	while (slot && slot->state == SLOT_READING)
		pthread_cond_wait(&ahead->read, &ahead->lock);
	if (slot && slot->state == SLOT_READ) {
		take_slot(slot, payload, events, error);
		taken = true;
	} else if (slot) {
		slot->state = SLOT_FREE; /* not begun yet: the caller reads the chunk itself instead of waiting */
	}
	pthread_mutex_unlock(&ahead->lock);
	return taken;
}

void trace_ahead_forget(struct trace *trace, const struct trace_stream *stream)
{
	struct trace_ahead *ahead = trace->ahead;
	unsigned i;

	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	for (i = 0; i < TRACE_AHEAD_CHUNKS; i++) {
		struct slot *slot = &ahead->slots[i];

		if (slot->state == SLOT_FREE || slot->stream != stream)
			continue;
		slot->stream = NULL;
		if (slot->state != SLOT_READING)
			slot->state = SLOT_FREE;
	}
	pthread_mutex_unlock(&ahead->lock);
}

void trace_ahead_free(struct trace_ahead *ahead)
{
	unsigned i;

	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->ends = true;
	pthread_cond_signal(&ahead->wanted);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	for (i = 0; i < TRACE_AHEAD_CHUNKS; i++)
		trace_payload_done(&ahead->slots[i].payload);
	trace_unzstd_free(ahead->unzstd);
	pthread_cond_destroy(&ahead->read);
	pthread_cond_destroy(&ahead->wanted);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
