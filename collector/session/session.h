/*
 * session.h - one session: a process tree and its trace file.
 *
 * A session begins with the first join (or hold) that names it. It is finished when no process image lives, no hold
 * connection is open, and no pending child may still join.
 *
 * When its file cannot be written, the session has FAILED. Its processes get the reason, and their rings are still
 * drained, so that evprof never blocks a program. Where the reason is lack of space, the file is still completed, with
 * the number of lost events of each thread.
 */
#ifndef COLLECTOR_SESSION_H
#define COLLECTOR_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/control.h"
#include "session/alive.h"
#include "session/copies.h"
#include "session/drain.h"
#include "session/rotation.h"
#include "session/triggers.h"
#include "trace/folder.h"
#include "trace/tool_run.h"
#include "evprof/ring.h"
#include "session/pending.h"
#include "base/loop.h"
#include "trace/trace_output.h"
#include "base/users.h"
#include "session/process.h"
#include "trace/meta.h"

struct resolver;

/*
 * Grace period after the end of a hold; processes that run longer are no longer waited for. It is long enough for
 * processes that end because the program has ended: helpers of multiprocessing notice that by a pipe and then finalize
 * an interpreter.
 */
#define HOLD_GRACE_NS UINT64_C(300000000)
/* The same where the other side is the first process of the namespace: all others end with it. */
#define HOLD_INIT_GRACE_NS UINT64_C(50000000)

/*
 * The connection of `evprof run`. It keeps a session open, and gets the summary when it is shut down for
 * writing.
 */
struct hold {
	struct loop_source source; /* fd: the connection, owned */
	struct hold *next;
	struct loop *loop;
	bool closing;
	bool init; /* the other side is the first process of our pid namespace */
	uint64_t closed_ns;
	uint64_t wait_ns; /* in addition to HOLD_GRACE_NS */
};

/* State that all sessions of a collector share. The buffers are used by one session at a time. */
struct session_tools {
	struct loop *loop;
	struct drain_tools drain;
	struct trace_packer *packer;
	/* In a daemon: the folder of all traces and the file name template. NULL: each session names its file. */
	const char *output_dir;
	const char *output_template;
	const char *formats;	    /* likewise: names with commas; NULL: none */
	struct setting_keep keep;   /* likewise: the stretch that each trace keeps; all zeros: as its program wants */
	struct setting_keep rotate; /* likewise: after which a trace is finished; all zeros: with its session */
	const char *trigger;	    /* likewise: as EVPROF_TRIGGER; NULL: as its program wants */
	struct resolver *resolver;  /* symbolizes native frames */
	struct folder folder;	    /* likewise: all zeros: none */
	struct users users;	    /* the users of this collector and their limits */
	/* The first process of a session that another collector began. That collector's trace file is kept. */
	struct pending_rejoin first;
	bool init_ends; /* the first process of our pid namespace is ending (drain.with_init) */
};

struct session {
	struct session *next;
	struct session_tools *tools;
	uint8_t id[CONTROL_SESSION_DIGITS / 2];
	struct user *user; /* the user that began it */
	char *output;	   /* the template from the first message */
	struct trace_output trace;

	bool goes_on;	/* an earlier trace of this session is kept */
	bool shortened; /* the file of a trace that keeps its last stretch is being made anew, or was; if it is one */
	bool converted; /* the export to other formats was started, if any */
	bool finished;
	uint64_t finished_ns;
	uint64_t ended_ns; /* time of the latest end of an image; 0: none */
	char format_list[CONTROL_FORMATS_MAX_BYTES];
	struct tool_run shortening, formats;
	struct copies copies;
	struct session_triggers triggers;
	struct session_alive alive;
	struct rotation rotation;
	char absent[CONTROL_REASON_MAX_BYTES]; /* reason of the first process that did not join; "": none */

	struct process *processes;
	struct hold *holds;
	uint32_t unsampled; /* processes whose sampler was lost */

	struct pending_children pending;
	uint64_t symbols_until_ns; /* wait for symbols of native frames until then; 0: not begun */
};

/* On failure NULL, with one line in `reason`. */
struct session *session_new(struct session_tools *tools, const struct control_message *first, uid_t uid, char *reason,
			    size_t reason_bytes);
/* For a finished session, or one that never had a process. */
void session_free(struct session *session);

/*
 * Whether a finished session still has an answered process that is about to end. The last process that unmaps the
 * memory has to free it, so we keep it mapped: nobody waits for us.
 */
bool session_lingers(const struct session *session, uint64_t now_ns);

/*
 * who: credentials of the peer. Takes over both descriptors on success. On failure -errno and one line in `reason`; the
 * descriptors remain the caller's.
 */
int session_join(struct session *session, const struct control_message *join, int memfd, int pidfd,
		 const struct ucred *who, char *reason, size_t reason_bytes);
/* Likewise. */
int session_hold(struct session *session, const struct control_message *message, int fd, char *reason,
		 size_t reason_bytes);

/* Drains all rings. Processes that have ended become complete. */
void session_round(struct session *session, uint64_t now_ns, struct drain_result *result);

/*
 * Answers waiting processes, and finishes the session when nothing is left. The backlog of connections is empty, or
 * more_to_come is set.
 */
void session_check_end(struct session *session, uint64_t now_ns, bool more_to_come);

/*
 * The collector ends, in three steps, each for all sessions before the next. First: drains everything into the file.
 * Processes of a daemon that run on get their last answer, and then join the next one: they wait for nothing.
 */
void session_let_go(struct session *session, uint64_t now_ns);
/* Completes the file. */
void session_stop(struct session *session, uint64_t now_ns);
/*
 * Whether other files are still made of it; for so long at most. Waits for one that is. Else it has answered the
 * processes that have ended, and the session is finished.
 */
bool session_is_stopping(struct session *session, int wait_ms, uint64_t until_ns);

/* Time of the latest end of a process image or a hold; 0: none. */
uint64_t session_ended_ns(const struct session *session);

/* Number of process images that are not complete. */
uint32_t session_live(const struct session *session);

/* Whether rounds are needed even if no descriptor becomes ready. */
bool session_needs_polling(const struct session *session, uint64_t now_ns);

/*
 * The longest time until the next round, unless something wakes us. Processes that cannot wake us are polled at
 * SESSION_IMPATIENT_US, like a session with an answer due; SESSION_PATIENT_US where every event wakes us.
 */
#define SESSION_PATIENT_US 4000000 /* still a heartbeat: the library takes longer silence for death (watch.c) */
#define SESSION_IMPATIENT_US 8000
int session_patience_us(const struct session *session, uint64_t now_ns);

/* Publishes to all processes how we are about to sleep. */
void session_announce(struct session *session, enum ring_sleep sleep);

/*
 * What all its processes have recorded until then, which is now, is to be in the trace as soon as their shares of the
 * rounds allow that. Whether it is, or has taken too long (process_is_read()).
 */
void session_want(struct session *session, uint64_t wanted_ns);
bool session_is_read(const struct session *session, uint64_t wanted_ns, uint64_t now_ns);

/* --- between session.c and session_end.c --- */

struct triggers_place session_place(struct session *session, uint64_t now_ns);

/* Writes the totals and the answer for a process, and wakes it. */
void session_answer(struct session *session, struct process *process, enum ring_collector_state state);
/* Drains what is left of an ended image, and writes its end to the trace. how: as process_end_reason() says it. */
void session_complete(struct session *session, struct process *process, const char *how, uint64_t now_ns);
/* Removes images that are complete and await no answer. */
void session_forget_dead(struct session *session);
/* How the image ended: "exit", "exec", "killed" or "detached"; NULL: it still runs. Uses a lookup of the user. */
const char *process_end_reason(struct process *process, struct user *user, uint64_t now_ns);
/* fd: the connection, taken over on success. 0 or -errno. */
int hold_new(struct loop *loop, int fd, struct hold **result);

#endif
