/*
 * process.c - see process.h.
 */
#include "ring/process.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/lock.h"
#include "join/handshake.h"

#define LOCK_AT_END_MS 1000

struct process *process;
_Atomic bool process_forks_stopped;

int process_init(void)
{
	if (!process)
		process = wiped_memory_new(sizeof(*process));
	return process ? 0 : -errno;
}

/* For short sections only: copying a definition, setting up a ring once. */
void process_lock(void)
{
	writer_enter(); /* a signal handler over the holder would wait for itself */
	lock_take(&process->lock);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &process->cancel_state);
}

bool process_lock_at_end(void)
{
	bool taken;

	writer_enter();
	taken = lock_take_within(&process->lock, LOCK_AT_END_MS);
	if (taken)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &process->cancel_state);
	else
		writer_leave();
	return taken;
}

void process_unlock(void)
{
	int cancel_state = process->cancel_state;

	lock_give(&process->lock);
	pthread_setcancelstate(cancel_state, NULL);
	writer_leave();
}

uint64_t process_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint32_t process_slots_used(void)
{
	uint32_t own = atomic_load(&process->slots_used), shared = ring_slots_used(&process->layout, process->header);

	return own > shared ? own : shared;
}

static void forget_names(struct names *names)
{
	lock_take(&names->lock);
	for (size_t i = 0; i < 1u << NAMES_BITS; i++)
		atomic_store_explicit(&names->at[i].key, 0, memory_order_relaxed);
	lock_give(&names->lock);
}

void process_forget_ids(void)
{
	ids_clear(&process->ids);
	forget_names(&process->names);
	forget_names(&process->codes);
	atomic_fetch_add(&process->ids_forgotten, 1);
}

void process_wakes_nobody(void)
{
	if (process && process->header)
		atomic_store(&process->header->wakes, 0);
}

void process_poke_collector(void)
{
	if (handshake_poke() != POKE_WOKEN)
		process_wakes_nobody();
}

void process_ask_snapshot(enum ring_snapshot why)
{
	_Atomic uint32_t *wish = &process->header->snapshot;
	uint32_t before = atomic_load_explicit(wish, memory_order_relaxed), next;

	do
		next = (before / RING_SNAPSHOTS + 1) * RING_SNAPSHOTS + why;
	/* Release: pairs with the collector's acquire; what was recorded before is in the rings. */
	while (!atomic_compare_exchange_weak_explicit(wish, &before, next, memory_order_release, memory_order_relaxed));
}

void process_wake_collector(void)
{
	int saved_errno = errno;

	/* One thread wakes it for all. */
	if (atomic_load_explicit(&process->header->sleep, memory_order_relaxed) != RING_AWAKE &&
	    atomic_exchange(&process->header->sleep, RING_AWAKE) != RING_AWAKE)
		process_poke_collector();
	errno = saved_errno;
}

void process_note_uncaught(void)
{
	if (!process || atomic_load(&process->status) != PROCESS_JOINED)
		return;
	process_ask_snapshot(RING_SNAPSHOT_EXCEPTION);
	process_wake_collector();
}

void process_look_again(void)
{
	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++)
		writer_set_room(&process->writers[i], 0, 0);
}

static void ask_all(uint8_t what)
{
	if (!process->header) /* the child of a fork, before its first event */
		return;
	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++)
		__atomic_fetch_or(&process->writers[i].asked, what, __ATOMIC_SEQ_CST);
	process_look_again();
}

void process_expect_stacks(void)
{
	ask_all(WRITER_ASKED_STACK);
}

void process_expect_pauses(void)
{
	ask_all(WRITER_ASKED_STACK | WRITER_ASKED_PAUSE);
}

void process_expect_thin(void)
{
	ask_all(WRITER_ASKED_THIN);
}

void process_set_status(uint32_t status)
{
	if (status != PROCESS_MOVING)
		atomic_store(&process_forks_stopped, status == PROCESS_STOPPED);
	/* Status first, then the room: a thread that sets its own room in between reads the status afterwards. */
	atomic_store(&process->status, status);
	process_look_again();
}
