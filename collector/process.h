/*
 * process.h - one process image that joined: its memory, its pidfd and how it ends.
 *
 * A process image is LIVE until everything it wrote is in the trace (drain.h) and it can write no more; then COMPLETE.
 * The struct stays until the process is really dead or its session is finished, so that the answer in the shared
 * memory can still be given.
 */
#ifndef COLLECTOR_PROCESS_H
#define COLLECTOR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "evprof/ring.h"
#include "layout.h"
#include "loop.h"
#include "meta.h"
#include "sampler_watch.h"
#include "title.h"

struct session;
struct user;

/* What drain.c knows of a slot in use. Freed when the thread has ended and all was read. */
struct slot_reader {
	uint32_t thread; /* number in the trace */
	uint32_t tid;
	uint64_t data_offset;
	uint64_t data_words;
	uint64_t tail;
	uint64_t head;	   /* as read at the beginning of the round; tail <= head <= tail + data_words */
	uint64_t ticks;	   /* the running time at tail */
	uint64_t written;  /* the time of the last event in the trace */
	uint64_t since_ns; /* when words that are still unread were first seen; 0: none */
	uint64_t in_gaps;  /* events that the gaps among its events stand for */
	uint64_t taken;	   /* bytes from the ring's beginning on whose pages are there; see take_pages() */
	bool wanted;	   /* this round reads it */
	bool ended;
	bool corrupt;		   /* not read any more */
	struct meta_counts events; /* in the trace */
	struct meta_counts lost;   /* by the collector: unknown words, failed writes */
};

struct process {
	struct loop_source source; /* fd: the pidfd, owned */
	struct process *next;
	struct session *session;
	struct user *user; /* of whom this is one of USER_PROCESSES; NULL: of nobody yet */
	int memfd;	   /* owned */
	struct ring_layout layout;
	struct ring_header *header;
	struct ring_slot *slots;
	void *slots_map;
	size_t slots_map_bytes;

	pid_t pid;	  /* in the collector's namespace */
	pid_t sender_pid; /* in its own */
	uint32_t number;  /* in the trace */

	uint64_t definitions_tail;
	bool definitions_bad;		 /* not read any more */
	struct resolver_client *symbols; /* of its native frames; NULL: it has none */
	struct slot_reader **readers;
	unsigned reader_count;
	unsigned first_reader; /* of this round */
	uint64_t share;	       /* words that this round may still read ... */
	bool cut;	       /* ... and more were there */
	uint64_t looked_ns;    /* when its rings were looked at last */
	uint32_t sleep;	       /* enum ring_sleep, as it was told */
	bool drained;	       /* it has ended, and all was read */

	pid_t *forked; /* by WIRE_FORK, not seen to join, in the process's own namespace */
	unsigned forked_count;
	unsigned forked_capacity;
	unsigned forked_next; /* so many are still to be looked at */
	uint64_t forked_check_ns;
	uint32_t children; /* joined with start "fork" */
	uint32_t forks_seen;
	uint64_t forks_ns;   /* when the count was seen to change */
	bool replaced;	     /* ended by exec; what took its place has not joined, and may yet */
	bool exec_seen;	     /* WIRE_EXEC came and no EXEC_FAILED after it */
	int64_t status;	     /* of WIRE_EXIT, or as the kernel has it; -1 not known */
	int64_t signal;	     /* that ended it; -1 not known, or none */
	bool exited;	     /* by itself, the kernel says */
	uint64_t start_time; /* field 22 of /proc/PID/stat: tells a reused pid */
	uint64_t last_ticks;
	uint64_t death_ticks; /* when it was seen to be dead */
	uint64_t exec_check_ns;

	struct sampler_watch sampler;
	struct title title;

	bool dead;	 /* the pidfd says so */
	bool complete;	 /* everything is in the trace */
	bool superseded; /* complete, and another image of the process has joined: nobody waits for an answer */
	bool answered;	 /* collector_state is as final as it gets while the session lives */
};

/*
 * Checks what came with a join and maps it. Takes over both descriptors on success only. On failure -errno and one
 * line in `reason`.
 */
int process_new(int memfd, int pidfd, pid_t pid, struct process **result, char *reason, size_t reason_bytes);

/* The first process of a pid namespace, as its members see it: when it is gone, the kernel ends all others. */
#define PROCESS_INIT ((pid_t)1)

/* Not in any list and not in the loop any more. */
void process_free(struct process *process);

/* The same, but leaves the descriptors to whom process_new() had them from. */
void process_forget(struct process *process);

/* Tells the target that its rings are read from now on. */
void process_attach(struct process *process);

/* Writes text and state where the target reads them, and wakes it. Works for any memfd that holds a header. */
void process_refuse(int memfd, const char *text);
void process_answer(struct process *process, enum ring_collector_state state, const char *text);

/*
 * How a process that the pidfd says is dead has ended: sets status, signal and exited. Before Linux 6.15 only if it is
 * not reaped yet.
 */
void process_read_end(struct process *process);

/*
 * After an exec into something else, the memory is mapped by nobody but us: 1. 0 when it is mapped, or when it cannot
 * be told, -EAGAIN when another round is to ask.
 */
int process_image_gone(const struct process *process);

/* A process has forked this one. No memory: it is not waited for. */
void process_note_fork(struct process *process, pid_t child);
/* It has joined. */
void process_forget_fork(struct process *process, pid_t child);
/* Leaves out those that are gone, where there are many: a program may fork without end children that never join. */
void process_look_at_forks(struct process *process, uint64_t now_ns);

/*
 * Whether a process maps the memory with that inode: the image that made it, or a child forked from that image which
 * has not had an event yet. -errno when it cannot be told: -ENOENT when there is no such process, -EFBIG when it maps
 * more than is looked through, -EAGAIN when the user's looks of this round are used up.
 */
int process_maps(struct user *user, pid_t pid, ino_t inode);
/* What that said leaves it possible. */
bool process_may_map(int maps);
/* The inode of a process's memory; 0 when it cannot be told. */
ino_t process_inode(const struct process *process);

#endif
