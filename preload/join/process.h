/*
 * process.h - the library's state of this process image, and joining a collector with it.
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

#include "definitions/native.h"
#include "evprof/ring.h"
#include "join/watch.h"
#include "python/python.h"
#include "ring/ids.h"
#include "ring/writer.h"

enum process_status {
	PROCESS_UNJOINED = 0, /* no ring yet, or the child of a fork before its first event */
	PROCESS_JOINED = 1,
	PROCESS_STOPPED = 2, /* evprof_stop(): joined, and recording nothing */
	PROCESS_OFF = 3,     /* not recorded: no collector, switched off, or ended */
	PROCESS_MOVING = 4,  /* joined; the lock is held while rejoin.c exchanges the memory */
};

/*
 * The ids of exception types and marks, by a hash of their names (definitions.c). The table does not grow, because a
 * program may create classes without end. A name that was replaced by another gets a new id.
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

struct process {
	_Atomic uint32_t status;
	_Atomic uint32_t lock;		    /* guards joining and definitions */
	bool defines;			    /* holds the right to write definitions (ring_definitions_take()) */
	struct python_mutex python_lock;    /* see python_lock() */
	_Atomic uint32_t stalled_heartbeat; /* 1 + the heartbeat at which waiting for room was given up */
	pid_t pid;
	struct watch watch; /* of the collector (rejoin.c) */
	struct watch_listener listener;
	_Atomic uint64_t rejoin_after_us; /* the time of the next check */
	uint8_t *base;			  /* the shared memory ... */
	uint64_t mapped_bytes;		  /* ... and its mapped size, which may be less than the file's */
	struct ring_header *header;	  /* other processes can write it: code uses the copy in layout */
	struct ring_slot *slots;
	struct ring_layout layout;
	_Atomic uint32_t slots_used; /* as in the header, but without the slots of a sampler, which follow */
	uint32_t next_code, next_function, next_type, next_mark; /* the last ids assigned */
	struct ids ids;						 /* of code objects and C functions */
	struct names names;
	_Alignas(128) struct writer writers[RING_SLOTS];
	_Atomic uint32_t unwind_lock; /* of callers of libunwind (unwind.c) */
	struct native native;	      /* untouched unless native stacks are recorded */
};

extern struct process *process __attribute__((visibility("hidden"))); /* NULL until process_init() */

/* Creates the memory. Returns 0 or -errno. Called once, by the constructor, before any hook. */
int process_init(void);

/*
 * Joins a collector: that of the process tree, the host's, or a new private one. start: enum wire_start. Returns 0 or
 * -errno, with a line on stderr if the user can do something about it. Any thread; a thread that waited for the lock
 * finds the work done.
 */
int process_join(int start);

/* Whether this image records. Joins if it is the child of a fork that is to be recorded. 1 if recording. */
int process_recording(void);

/* Forgets all ids, which are then assigned anew. Lock held, no thread has room. */
void process_forget_ids(void);

/* Python starts once more in this image; none of its earlier objects is left. GIL held. */
void process_begin_again(void);

/*
 * 1 + the highest slot that may be in use, including a sampler's. Covers this process's slots whatever the header says.
 */
uint32_t process_slots_used(void);

enum process_room {
	PROCESS_ROOM_LIMITED, /* the program has limited its own address space */
	PROCESS_ROOM_LEAST,   /* it is about to lock all of it in memory, for good */
};

/*
 * Unmaps the rings of threads that do not exist yet, except for a part that is small relative to the limit. Later
 * threads have small rings, or none. Any thread.
 */
void process_shrink(enum process_room room);

/* Called in the child of a fork. Only clears state; the first event joins. */
void process_forked(void);

/*
 * The image ends or execs: informs the collector that no more data follows. If this process owes its user the summary
 * line, waits for the trace, within a bound, and prints the line.
 */
void process_finish(int status);

/* As process_finish(), for an image that is about to end itself by this signal. */
void process_finish_by_signal(int number);

/* Makes all threads take the slow path at their next event. */
void process_look_again(void);

/*
 * Makes each thread write its stack before its next call or return, because the recorded stack is unknown or wrong. Any
 * thread.
 */
void process_expect_stacks(void);

/* Sets a status in which nothing is recorded. All threads notice at their next event. */
void process_set_status(uint32_t status);

/*
 * Whether a thread that needs room may wait for it now. This depends on EVPROF_ON_FULL, on what is left of the wait
 * budget, and on whether the collector was given up.
 */
bool process_may_wait(void);

/*
 * Waits for the collector until done() is true, within the wait budget: 1 done, 0 not. A collector that one thread
 * waited for in vain is not waited for again until its heartbeat moves: a dead one costs the bound once, however many
 * threads there are.
 */
int process_wait_for(int (*done)(const void *what), const void *what);

/*
 * As process_wait_for(), but -ESRCH if the collector is gone. A caller that finds no successor calls process_give_up().
 */
int process_wait_unless_gone(int (*done)(const void *what), const void *what);

/* Forbids waiting until the heartbeat differs from this value, which was read before waiting. */
void process_give_up(uint32_t heartbeat);

/* Wakes a collector that may sleep between two polls. If it cannot be reached, it is informed not to rely on wakes. */
void process_poke_collector(void);

/* Informs the collector that this image wakes it no more: it polls from here on. Any image, at any time. */
void process_wakes_nobody(void);

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
