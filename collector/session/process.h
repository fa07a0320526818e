/*
 * process.h - one process image that joined: its memory, its pidfd and how it ends.
 *
 * A process image is LIVE until it can write no more and everything that it wrote is in the trace (drain.h); then it is
 * COMPLETE. The struct stays until the process is dead or its session is finished, so that the answer can still be
 * written to the shared memory.
 */
#ifndef COLLECTOR_PROCESS_H
#define COLLECTOR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "evprof/ring.h"
#include "ring/layout.h"
#include "base/loop.h"
#include "trace/meta.h"
#include "sampler/sampler_watch.h"
#include "session/resident.h"
#include "session/title.h"

struct drain_tools;
struct trace_output;
struct user;

/* State of drain.c for a slot in use. Freed when the thread has ended and everything was read. */
struct slot_reader {
	uint32_t thread; /* number in the trace */
	uint32_t tid;
	uint64_t data_offset;
	uint64_t data_words;
	uint64_t tail;
	uint64_t head;	   /* as read at the start of the round; tail <= head <= tail + data_words */
	uint64_t grown;	   /* the words by which head was further than in the round before */
	uint64_t ticks;	   /* the time at tail */
	uint64_t written;  /* the time of the last event in the trace */
	uint64_t since_ns; /* when the oldest unread words were first seen; 0: none */
	uint64_t in_gaps;  /* events covered by the gaps among its events */
	uint64_t taken;	   /* bytes from the start of the ring whose pages are populated; see prefault_pages() */
	unsigned turn;	   /* of the next ring_note_tail() */
	bool wanted;	   /* read in this round */
	bool ended;
	bool in_trace;		   /* the file has its beginning; not one that came when the file was full */
	bool corrupt;		   /* no longer read */
	struct meta_counts events; /* in the trace */
	struct meta_counts lost;   /* lost by the collector: unknown words, failed writes */
};

/* What was recorded of a process so far, for evprof status. Kept by drain.c, a batch at a time. */
struct process_totals {
	uint64_t events;      /* in the trace */
	uint64_t lost;	      /* of threads that have ended */
	uint64_t trace_bytes; /* of the trace: events, definitions, threads */
	bool paused;	      /* the program has stopped recording (evprof_stop()) ... */
	uint64_t pause_ticks; /* ... or started it, at this time; another thread may report an older one later */
	uint64_t rate_ns;     /* begin of the stretch for the rate ... */
	uint64_t rate_events; /* ... and the events until then */
	uint64_t events_per_s;
};

/* What somebody asks of a process from outside. */
#define PROCESS_ORDERS 4u
struct process_order {
	enum ring_request what;
	char name[RING_REQUEST_NAME_BYTES];
};

struct process {
	struct loop_source source; /* fd: the pidfd, owned */
	struct process *next;
	struct loop *loop;
	struct trace_output *trace; /* receives its events */
	struct drain_tools *drain;
	struct user *user; /* counts it in USER_PROCESSES; NULL: not counted yet */
	int memfd;	   /* owned */
	struct ring_layout layout;
	struct ring_header *header;
	struct ring_slot *slots;
	void *slots_map;
	size_t slots_map_bytes;

	pid_t pid;	  /* in the collector's namespace, or PROCESS_HIDDEN */
	pid_t sender_pid; /* in the sender's */
	uint32_t number;  /* in the trace */
	uint64_t joined;  /* number among all that have joined the collector, from 1 */
	char *program;	  /* of the join; owned */

	uint64_t definitions_tail;
	bool definitions_bad;		 /* no longer read */
	struct resolver_client *symbols; /* symbolizes its native frames; NULL: none */
	struct slot_reader **readers;
	unsigned reader_count;
	unsigned first_reader; /* first one of this round */
	uint64_t share;	       /* words that may still be read in this round */
	bool cut;	       /* the share did not suffice for all */
	uint64_t looked_ns;    /* time of the last drain */
	uint32_t sleep;	       /* enum ring_sleep, as last published */
	uint32_t flush;	       /* ring_header.flush before the last complete drain */
	uint32_t flushed;      /* ring_header.flushed */
	uint64_t wanted_ns;    /* somebody waits until all that was recorded before is in the trace ... */
	uint64_t read_ns;      /* ... and all that was before this is, by a drain that left nothing */
	uint32_t request;      /* ring_header.request */
	uint32_t snapshot;     /* ring_header.snapshot, as last followed */
	uint32_t events;       /* what it records (enum setting_event), as the trace has it */
	uint64_t rss_due_ns;   /* when its resident memory is looked at again ... */
	uint32_t rss_above;    /* ... bits of the triggers whose bound it was above */
	bool drained;	       /* it has ended, and its rings are empty */

	pid_t *forked; /* children from WIRE_FORK that have not joined, in the process's own pid namespace */
	unsigned forked_count;
	unsigned forked_capacity;
	unsigned forked_next; /* number still to be checked in this pass */
	uint64_t forked_check_ns;
	uint32_t children; /* children that joined with start "fork" */
	uint32_t forks_seen;
	uint64_t forks_ns;   /* when the count last changed */
	bool replaced;	     /* ended by exec; its successor has not joined, and still may */
	bool exec_seen;	     /* WIRE_EXEC without a later EXEC_FAILED */
	int64_t status;	     /* from WIRE_EXIT or the kernel; -1: not known */
	int64_t signal;	     /* that ended it; -1: not known, or none */
	bool exited;	     /* it exited, according to the kernel */
	uint64_t start_time; /* field 22 of /proc/PID/stat: detects a reused pid */
	uint64_t last_ticks;
	uint64_t death_ticks; /* when its death was noticed */
	uint64_t exec_check_ns;

	struct sampler_watch sampler;
	bool outside; /* a tool samples it, and joined in its place: nothing is loaded into it */
	struct title title;
	struct resident resident;
	struct process_totals totals;
	struct process_order orders[PROCESS_ORDERS]; /* not followed yet; the first one is ring_header.request */
	unsigned order_count;

	struct meta_counts lost_unlisted; /* of threads that have ended, and are not in the trace */

	bool in_trace;	 /* the file has its beginning */
	bool dead;	 /* according to the pidfd */
	bool complete;	 /* all its events are in the trace */
	bool superseded; /* complete, and another image of the process has joined: no answer is awaited */
	bool let_go;	 /* it runs on, and has its last answer: the collector ends */
	bool answered;	 /* collector_state is final, as far as possible while the session lives */
};

/*
 * For a join that a tool sends in place of a process: who, the tool, becomes the process of the pidfd. The user stays
 * the tool's. NULL, or one line: the tool may not do that.
 */
const char *process_of_tool(int pidfd, struct ucred *who);

/*
 * Checks and maps the memory of a join. Takes over both descriptors on success only. On failure -errno and one line in
 * `reason`.
 */
int process_new(int memfd, int pidfd, pid_t pid, struct process **result, char *reason, size_t reason_bytes);

/* Takes words that were read off the process's share of the round. */
static inline void process_charge_words(struct process *process, uint64_t words)
{
	process->share -= words < process->share ? words : process->share;
}

/* A snapshot, a copy or a part waits so long for the rings, which are read by shares (drain_share()). */
#define PROCESS_READ_NS UINT64_C(1000000000)

/* Whether all that was recorded before is in the trace, since that time was wanted; or that has taken too long. */
static inline bool process_is_read(const struct process *process, uint64_t wanted_ns, uint64_t now_ns)
{
	return process->complete || process->read_ns >= wanted_ns || process->wanted_ns < wanted_ns ||
	       now_ns >= wanted_ns + PROCESS_READ_NS;
}

/* The pid of a process in a pid namespace that is not below the collector's: another container, for example. */
#define PROCESS_HIDDEN ((pid_t)0)

/*
 * Whether both are images of one process: an exec leaves the process, a rejoin the image. Both descriptors are open.
 * Where the kernel has no inode for each process, hidden ones are known by what they said of themselves.
 */
bool process_is_same(const struct process *process, const struct process *other);

/* The pid by which requests name it: in the collector's namespace, or where it has none there, in its own. */
static inline pid_t process_shown_pid(const struct process *process)
{
	return process->pid == PROCESS_HIDDEN ? process->sender_pid : process->pid;
}

/* The pid of the first process of a pid namespace. When it ends, the kernel kills all others. */
#define PROCESS_INIT ((pid_t)1)

/* Computes the rate of events anew, if the last stretch is over. */
#define PROCESS_RATE_NS UINT64_C(1000000000)
void process_renew_rate(struct process *process, uint64_t now_ns);

/* Writes to the trace what it records since a request changed that, unless the trace has it. */
void process_write_events(struct process *process);

/* Writes to the trace what was read of its resident size. */
void process_write_resident(struct process *process);

/* The process is in no list and not in the loop; the caller has given back its user and its symbols. */
void process_free(struct process *process);

/* The same, but the descriptors remain those of process_new()'s caller. */
void process_forget(struct process *process);

/* Publishes to the target that its rings are being read, and where the trace is. */
void process_attach(struct process *process, const char *path);

/* Write text and state for the target, and wake it. process_refuse() accepts any memfd with a header. */
void process_refuse(int memfd, const char *text);
void process_answer(struct process *process, enum ring_collector_state state, const char *text);

/*
 * Asks the process to stop or start the recording, to set a mark of this name (shorter than RING_REQUEST_NAME_BYTES),
 * or to record the events of this list, once it has followed what it was asked before. It is announced by SIGURG, if
 * the process has a handler for it and the collector may send it. Only where process_takes_request().
 */
void process_request(struct process *process, enum ring_request what, const char *name);
/* Whether there is room for that request, or it is the last one. */
bool process_takes_request(struct process *process, enum ring_request what, const char *name);
/* Asks what waits for a request that has been followed meanwhile. */
void process_next_request(struct process *process);
/* Whether it has followed the last request. */
bool process_has_followed(const struct process *process);
bool process_has_refused(const struct process *process);

/*
 * Reads how a dead process ended: sets status, signal and exited. Before Linux 6.15, works only until the process is
 * reaped.
 */
void process_read_end(struct process *process);

/*
 * 1: an exec has replaced the image, as the process no longer maps the memory. 0: it maps it, or that is not known.
 * -EAGAIN: ask again in another round. Uses a lookup of the user.
 */
int process_image_gone(const struct process *process, struct user *user);

/* Records a forked child. Without memory the child is not waited for. */
void process_note_fork(struct process *process, pid_t child);
/* The child has joined. */
void process_forget_fork(struct process *process, pid_t child);
/* Removes forked children that are gone, if there are many: a program may fork endless children that never join. */
void process_check_forks(struct process *process, struct user *user, uint64_t now_ns);

/*
 * Whether a process maps the memory with that inode: 1 or 0. It does if it is the image that made it, or a forked child
 * that has not had an event yet. -errno when not known: -ENOENT: no such process. -EFBIG: it has more mappings than we
 * read. -EAGAIN: the user's lookups of this round are used up.
 */
int process_maps(struct user *user, pid_t pid, ino_t inode);
/* Whether that result allows that the process maps the memory. */
bool process_may_map(int maps);
/* The inode of a process's memory; 0: not known. */
ino_t process_inode(const struct process *process);

#endif
