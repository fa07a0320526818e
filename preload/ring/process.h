/*
 * process.h - the library's state of this process image: its ring, its ids, the writers of its threads.
 *
 * All state of one image is in memory that the kernel clears in the child of a fork (MADV_WIPEONFORK), however the
 * child was created. The child therefore starts PROCESS_UNJOINED with empty writers and never writes into its parent's
 * rings: its first event takes the slow path, which joins the collector anew.
 */
#ifndef PRELOAD_PROCESS_H
#define PRELOAD_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/config.h"
#include "evprof/ring.h"
#include "ring/ids.h"
#include "ring/writer.h"

enum process_status {
	PROCESS_UNJOINED = 0, /* no ring yet, or the child of a fork before its first event */
	PROCESS_JOINED = 1,
	PROCESS_STOPPED = 2, /* evprof_stop(): joined, and recording nothing */
	PROCESS_OFF = 3,     /* not recorded: no collector, switched off, or ended */
	PROCESS_MOVING = 4,  /* joined; the lock is held while the memory is exchanged (exchange.c) */
	PROCESS_LEFT = 5, /* recorded before, and perhaps again: the memory is there, and nobody reads it (leave.c) */
};

/*
 * Ids by a hash of what they name (names.c). The table does not grow, because a program may create classes and code
 * without end. What was replaced gets a new id.
 */
#define NAMES_BITS 12

struct name {
	_Atomic uint64_t key;
	_Atomic uint32_t id;
};

struct names {
	_Atomic uint32_t lock; /* of writers of the table */
	struct name at[1u << NAMES_BITS];
};

/* A waiting thread's view of the heartbeat (watch.c). */
struct watch {
	uint32_t beat;
	uint64_t since_us; /* when it last changed */
	uint64_t again_us; /* the time of the next closer check */
};

/*
 * The process that listened when this image connected: the only knowledge of a collector that has not read its ring
 * yet.
 */
struct watch_listener {
	pid_t pid; /* in this pid namespace; 0: not known */
	uint64_t met_ns;
};

struct process {
	_Atomic uint32_t status;
	_Atomic uint32_t lock;		    /* guards joining and definitions */
	int cancel_state;		    /* of the thread that holds it, which is not cancelled meanwhile */
	bool ended;			    /* it was recorded (life/finish.c) */
	bool defines;			    /* holds the right to write definitions (ring_definitions_take()) */
	_Atomic uint32_t stalled_heartbeat; /* 1 + the heartbeat at which waiting for room was given up */
	pid_t pid;
	struct watch watch; /* of the collector (rejoin.c) */
	struct watch_listener listener;
	_Atomic uint64_t rejoin_after_us; /* the time of the next check */
	_Atomic uint32_t switch_wanted;	  /* see start/requests.c, also for what follows */
	_Atomic uint32_t following;	  /* 1: a request is being followed */
	int request_timers[2];		  /* 1 + the number of the timer; 0: none */
	int request_wait_ns[2];		  /* its next time */
	_Atomic uint32_t budget_due;	  /* its next step is */
	int budget_timer;		  /* 1 + the number of the timer of hooks/budget_timer.c; 0: it has not begun */
	_Atomic uint64_t stopped_ticks;	  /* when recording was last stopped, and started again */
	_Atomic uint64_t started_ticks;
	uint8_t *base;		    /* the shared memory ... */
	uint64_t mapped_bytes;	    /* ... and its mapped size, which may be less than the file's */
	struct ring_header *header; /* other processes can write it: code uses the copy in layout */
	struct ring_slot *slots;
	struct ring_layout layout;
	_Atomic uint32_t slots_used; /* as in the header, but without the slots of a sampler, which follow */
	uint32_t next_code, next_function, next_type, next_mark; /* the last ids assigned */
	struct ids ids;						 /* of code objects and C functions */
	struct names names;					 /* of exception types and marks */
	struct names codes;					 /* of code objects */
	_Atomic uint32_t ids_forgotten;				 /* how often process_forget_ids() was called */
	_Atomic uint64_t words_ended; /* in the rings of threads, when they ended, but thin_words */
	_Alignas(128) struct writer writers[RING_SLOTS];
};

extern struct process *process __attribute__((visibility("hidden"))); /* NULL until process_init() */

/* Whether the recording was stopped when the image forked: it is so in the child, too, whose status is cleared. */
extern _Atomic bool process_forks_stopped __attribute__((visibility("hidden")));

/* The child of a fork before it joins, whose recording is stopped. */
static inline bool process_is_stopped_child(void)
{
	return process && atomic_load(&process->status) == PROCESS_UNJOINED && atomic_load(&process_forks_stopped);
}

/* Whether recording is stopped (hooks/switch.h), or nobody reads it any more. It may be started again. */
static inline bool process_is_stopped(void)
{
	uint32_t status = process ? atomic_load_explicit(&process->status, memory_order_relaxed) : PROCESS_OFF;

	if (likely(status == PROCESS_JOINED))
		return false;
	return status == PROCESS_STOPPED || status == PROCESS_LEFT || process_is_stopped_child();
}

/*
 * Whether hooks take themselves off. They stay in an image that has ended its recording (life/finish.c): the children
 * of its forks have no other hooks, and are recorded.
 */
static inline bool process_records_nothing(void)
{
	uint32_t status = process ? atomic_load(&process->status) : PROCESS_UNJOINED;

	if (likely(status == PROCESS_JOINED))
		return false;
	return status == PROCESS_OFF ? !(process->ended && config.children) : process_is_stopped();
}

/* Creates the memory. Returns 0 or -errno. Called once, by the constructor, before any hook. */
int process_init(void);

/* Forgets all ids, which are then assigned anew. Lock held, no thread has room. */
void process_forget_ids(void);

/*
 * 1 + the highest slot that may be in use, including a sampler's. Covers this process's slots whatever the header says.
 */
uint32_t process_slots_used(void);

/* Makes all threads take the slow path at their next event. */
void process_look_again(void);

/*
 * Makes each thread write its stack before its next call or return, because the recorded stack is unknown or wrong. Any
 * thread.
 */
void process_expect_stacks(void);

/*
 * Makes each thread write, before its next event, that recording was stopped and started in between, and then its
 * stack. Any thread.
 */
void process_expect_pauses(void);

/* Makes each thread write what is thinned (life/thin.h) before its next event. Any thread. */
void process_expect_thin(void);

/* Sets a status in which nothing is recorded. All threads notice at their next event. */
void process_set_status(uint32_t status);

/* libc's own record, since 2.32; libraries before have none. It is false from the first thread on. */
#pragma weak __libc_single_threaded
extern char __libc_single_threaded;

/* Whether other threads may allocate meanwhile. */
static inline bool process_has_threads(void)
{
	return !&__libc_single_threaded || !__libc_single_threaded;
}

/* Wakes a collector that may sleep between two polls. If it cannot be reached, it is informed not to rely on wakes. */
void process_poke_collector(void);

/* Informs the collector that this image wakes it no more: it polls from here on. Any image, at any time. */
void process_wakes_nobody(void);

/* Asks for a copy of what this process did last, for that reason. Any thread, also in a signal handler. */
void process_ask_snapshot(enum ring_snapshot why);
/* An exception went uncaught: the collector may copy what led to it. */
void process_note_uncaught(void);

/* Wakes a collector whose header says that it sleeps. errno is kept. */
void process_wake_collector(void);

/* Microseconds of CLOCK_MONOTONIC. */
uint64_t process_now_us(void);

void process_lock(void);
void process_unlock(void);
/*
 * For the end of the image, perhaps in a signal handler over a thread that holds the lock. False: the lock was not
 * taken.
 */
bool process_lock_at_end(void);

#endif
