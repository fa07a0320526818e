/*
 * process.h - what the library knows of this process image, and joining a collector with it.
 *
 * Everything here that belongs to one image is in memory that the kernel clears in the child of a fork
 * (MADV_WIPEONFORK), however the child was made. So a child finds itself PROCESS_UNJOINED with empty writers and can
 * never write into the rings of its parent: the first event takes the slow path, which joins the collector anew.
 */
#ifndef PRELOAD_PROCESS_H
#define PRELOAD_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/ring.h"
#include "ids.h"
#include "native.h"
#include "python.h"
#include "watch.h"
#include "writer.h"

enum process_status {
	PROCESS_UNJOINED = 0, /* no ring yet, or the child of a fork before its first event */
	PROCESS_JOINED = 1,
	PROCESS_STOPPED = 2, /* evprof_stop(): joined, and recording nothing */
	PROCESS_OFF = 3,     /* not recorded: no collector, switched off, or ended */
	PROCESS_MOVING = 4,  /* joined; its memory is being exchanged (rejoin.c), the lock is held as long */
};

/*
 * The ids of exception types and marks, by a number that is made of their names (definitions.c). No table that grows: a
 * program may make classes without end. One that has lost its place to another is given an id once more.
 */
#define NAMES_BITS 12

struct name {
	_Atomic uint64_t key;
	_Atomic uint32_t id;
};

struct names {
	_Atomic uint32_t lock; /* of those who put something there */
	struct name at[1u << NAMES_BITS];
};

struct process {
	_Atomic uint32_t status;
	_Atomic uint32_t lock;		    /* guards joining and definitions */
	bool defines;			    /* has taken the right to write definitions (ring_definitions_take()) */
	struct python_mutex python_lock;    /* see there */
	_Atomic uint32_t stalled_heartbeat; /* 1 + the heartbeat at which a full ring was given up */
	pid_t pid;
	struct watch watch; /* over the collector (rejoin.c) */
	struct watch_listener listener;
	_Atomic uint64_t rejoin_after_us; /* the next look */
	uint8_t *base;			  /* the shared memory ... */
	uint64_t mapped_bytes;		  /* ... and what is mapped of it, which may be less than the file */
	struct ring_header *header;	  /* what stands there is the collector's word: see struct ring_layout */
	struct ring_slot *slots;
	struct ring_layout layout;
	_Atomic uint32_t slots_used; /* as in the header, but without a sampler's, which follow */
	uint32_t next_code, next_function, next_type, next_mark; /* the ids given last */
	struct ids ids;						 /* of code objects and C functions */
	struct names names;
	_Alignas(128) struct writer writers[RING_SLOTS];
	_Atomic uint32_t unwind_lock; /* of those who ask libunwind (unwind.c) */
	struct native native;	      /* nobody touches it where native stacks are not recorded */
};

extern struct process *process __attribute__((visibility("hidden"))); /* NULL until process_init() */

/* Makes the memory. Returns 0 or -errno. Once, from the constructor's side, before any hook. */
int process_init(void);

/*
 * Joins a collector: the tree's, the host's, or a new private one. start: enum wire_start. Returns 0 or -errno, with a
 * line on stderr where the user can do something about it. Any thread; the lock makes later callers find it done.
 */
int process_join(int start);

/* Room for an image that is not joined: joins if this is the child of a fork that shall be recorded. 1 if recording. */
int process_recording(void);

/* All ids are to be given anew. Lock held, nobody has room. */
void process_forget_ids(void);

/* Python begins once more in this image, and nothing of its objects is left. GIL held. */
void process_begin_again(void);

/* 1 + the highest slot that may be in use, a sampler's too. Whatever the header says, ours are among them. */
uint32_t process_slots_used(void);

enum process_room {
	PROCESS_ROOM_LIMITED, /* the program has limited its own address space */
	PROCESS_ROOM_LEAST,   /* it is about to have all of it in memory, for good */
};

/*
 * Gives back what was taken for threads that there are not yet, but for a part that is small beside the limit. Later
 * threads have small rings, or none. Any thread.
 */
void process_shrink(enum process_room room);

/* The child of a fork, in the child. Only forgets; joining waits for the first event. */
void process_forked(void);

/*
 * The image ends, or execs. Tells the collector that no more will come. finish also waits, within a bound, for the
 * trace if this process owes its user the closing line, and prints it.
 */
void process_finish(int status);

/* The same for an image that is about to end itself by that signal. */
void process_finish_by_signal(int number);

/* Makes all threads take the slow path at their next event. */
void process_look_again(void);

/*
 * Has each thread write its stack before its next call or return: what it says of it is not known, or not true. Any
 * thread.
 */
void process_expect_stacks(void);

/* Sets a status in which nothing is recorded, and makes all threads notice at their next event. */
void process_set_status(uint32_t status);

/*
 * Whether whoever needs room may wait for it now: by EVPROF_ON_FULL, by what is left of the wait budget, and by whether
 * the collector was given up.
 */
bool process_may_wait(void);

/*
 * Waits for the collector until done() says so, within the wait budget: 1 done, 0 not. A collector that let somebody
 * wait in vain is not waited for again until its heartbeat goes on: a dead one costs the bound once, however many
 * threads there are.
 */
int process_wait_for(int (*done)(const void *what), const void *what);

/* The same, but -ESRCH where the collector is gone: whoever finds no other says so with process_give_up(). */
int process_wait_unless_gone(int (*done)(const void *what), const void *what);

/* Nobody is to wait until the heartbeat is another than this one, which was read before waiting. */
void process_give_up(uint32_t heartbeat);

/* Wakes a collector that may be asleep between two polls. One that cannot be reached is not to rely on it. */
void process_poke_collector(void);

/* From here on the collector is to look by itself. Any image, at any time. */
void process_wakes_nobody(void);

/* Wakes a collector that says that it sleeps. errno is kept. */
void process_wake_collector(void);

/* Microseconds of a clock that only goes forward. */
uint64_t process_now_us(void);

void process_lock(void);
void process_unlock(void);
/* For where the image ends, maybe in a signal handler over a thread that holds the lock. False: it could not be had. */
bool process_lock_at_end(void);

#endif
