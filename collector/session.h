/*
 * session.h - one process tree and its trace file.
 *
 * A session begins with the first join (or hold) that names it. It is finished when no process image lives, no hold
 * connection is open, and no child that was forked a moment ago may still join.
 *
 * When its file cannot be written the session has FAILED: its processes are told why, and their rings are emptied all
 * the same, so that evprof never holds a program up. Where that is for want of room, the file still gets its end, with
 * the number of events that each thread has lost.
 */
#ifndef COLLECTOR_SESSION_H
#define COLLECTOR_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "pending_rejoin.h"
#include "control.h"
#include "drain.h"
#include "events.h"
#include "formats.h"
#include "evprof/ring.h"
#include "hold.h"
#include "loop.h"
#include "output.h"
#include "trace_writer.h"
#include "users.h"

struct process;
struct resolver;

#define SESSION_DEFINITIONS_BYTES ((size_t)128 << 10)
#define SESSION_CLOCKS 8

/* What all sessions of a collector share: memory that is used for one thing after the other. */
struct session_tools {
	struct loop *loop;
	struct events_buffer *events;
	struct trace_packer *packer;
	uint8_t *definitions; /* SESSION_DEFINITIONS_BYTES */
	/* A host's daemon: the folder of all traces and the template below it. NULL: each session says itself where. */
	const char *output_dir;
	const char *output_template;
	const char *formats;	   /* likewise: names with commas; NULL: none */
	struct resolver *resolver; /* of native frames */
	struct users users;	   /* who has something here, and the limits of each */
	/* The first process of a session whose trace another collector has begun; the file is kept. */
	struct pending_rejoin first;
	/*
	 * The first process of our pid namespace is recorded here, and it is at its end: then so are we, and all others
	 * in it. As long as somebody of that number waits, there is time to write everything down.
	 */
	bool with_init;
	bool init_ends;
	uint64_t
	    young_until_ns; /* a session has begun a moment ago: chunks of half the size, for those who end at once */
	/*
	 * All rings that have waited for some time are read in the same round: each at its own time would be as many
	 * rounds.
	 */
	uint64_t gathered_ns; /* when that was last */
	bool gathered;	      /* it is this round */
	bool takes_pages;     /* of rings, ahead of their writers: our memory is accounted for where theirs is */
};

struct session_clock {
	uint32_t kind;
	uint32_t shift;
};

/* A child that has not joined although the image that forked it is complete. */
struct session_child {
	pid_t pid;
	ino_t inode; /* of the memory that it still maps until it joins or becomes another program */
};

struct session {
	struct session *next;
	struct session_tools *tools;
	uint8_t id[CONTROL_SESSION_DIGITS / 2];
	struct user *user;    /* who began it */
	uint64_t trace_bytes; /* of the user's, ours */
	char *output;	      /* the template, as the first message had it */

	bool goes_on;	/* with a tree whose first trace is finished; it is kept */
	bool opened;	/* the file was made, or that failed */
	bool failed;	/* no more events are written ... */
	bool full;	/* ... but what ends the file is */
	bool closed;	/* the file is complete, or as complete as it gets */
	bool converted; /* other formats were asked for, where some are wanted */
	bool finished;
	uint64_t finished_ns;
	uint64_t ended_ns; /* when the latest image ended; 0: none has */
	char format_list[CONTROL_FORMATS_MAX_BYTES];
	struct formats formats;
	char path[PATH_MAX];
	char error[RING_TEXT_BYTES];
	char absent[CONTROL_REASON_MAX_BYTES]; /* why the first process that should have joined has not; "": none */
	struct trace_writer writer;

	struct process *processes;
	struct hold *holds;
	uint32_t process_count; /* ever joined: the next one's number */
	uint32_t thread_count;
	uint32_t open_threads;
	uint32_t unsampled; /* processes that lost their samplers */
	uint64_t events;    /* in the file */
	uint64_t lost;	    /* of threads and processes that have ended */

	uint32_t missing_children; /* forked by images that are complete, not joined */
	uint64_t grace_until_ns;   /* so long a missing child is waited for that nothing else is known of */
	struct session_child *pending_children;
	unsigned pending_children_count;
	unsigned pending_children_next; /* so many are still to be looked at, then all of them again */
	uint64_t pending_children_check_ns;
	uint64_t pending_children_since_ns; /* 0: there are none */
	struct session_clock clocks[SESSION_CLOCKS];
	unsigned clock_count;
	uint64_t clock_next_ns;
	uint64_t clock_step_ns;
	uint64_t symbols_until_ns; /* so long the names of native frames are waited for; 0: not yet */
	bool clock_alone;	   /* a clock has been read once only: without a second time nobody knows its rate */
};

/* NULL with one line in `reason`. */
struct session *session_new(struct session_tools *tools, const struct control_message *first, uid_t uid, char *reason,
			    size_t reason_bytes);
/* Only a finished session, or one that never had a process. */
void session_free(struct session *session);

/*
 * A finished session in which somebody is about to end who was answered just now. Who lets go of the memory last has
 * the work of giving it back, for which nobody waits here.
 */
bool session_lingers(const struct session *session, uint64_t now_ns);

/*
 * who: the peer as the kernel has it. Takes over both descriptors on success. On failure -errno and one line in
 * `reason`; the descriptors stay the caller's.
 */
int session_join(struct session *session, const struct control_message *join, int memfd, int pidfd,
		 const struct ucred *who, char *reason, size_t reason_bytes);
/* Likewise. */
int session_hold(struct session *session, const struct control_message *message, int fd, char *reason,
		 size_t reason_bytes);

/* Reads from all rings. Processes that have ended become complete. */
void session_round(struct session *session, uint64_t now_ns, struct drain_result *result);

/*
 * Answers those who wait, and finishes the session when nothing is left. Called with an empty backlog, or else more is
 * to come.
 */
void session_settle(struct session *session, uint64_t now_ns, bool more_to_come);

/* The collector ends: everything that is there goes into the file, and the file is finished. */
void session_stop(struct session *session, uint64_t now_ns);

/* When the latest process image, or hold, has ended; 0: none has. */
uint64_t session_ended_ns(const struct session *session);

/* Process images that are not complete. */
uint32_t session_live(const struct session *session);

/* Nothing happens without polling. */
bool session_needs_polling(const struct session *session, uint64_t now_ns);

/*
 * The longest that may pass until the next round, beside what wakes us: processes that cannot wake us are looked at as
 * often as somebody who is about to be answered is; SESSION_PATIENT_US where all that may happen wakes us.
 */
#define SESSION_PATIENT_US 4000000 /* a heartbeat all the same: the library takes longer silence for death (watch.c) */
#define SESSION_IMPATIENT_US 8000
int session_patience_us(const struct session *session, uint64_t now_ns);

/* Tells all processes how we are about to sleep. */
void session_announce(struct session *session, enum ring_sleep sleep);

/*
 * For drain.c. A failed write fails the session. What ends a thread or a process (session_write_last) is written even
 * when the disk is full.
 */
int session_write_chunk(struct session *session, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);
int session_write_last(struct session *session, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);
/* Frees the text. */
void session_write_json(struct session *session, uint32_t process, uint32_t thread, char *text);
uint32_t session_next_thread(struct session *session);
void session_thread_ended(struct session *session);
void session_count_events(struct session *session, const uint32_t counts[WIRE_KIND_SLOTS]);
void session_count_lost(struct session *session, uint64_t lost);

#endif
