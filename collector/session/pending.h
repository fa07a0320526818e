/*
 * pending.h - processes that may still join a session, and delay its end: forked children, and the first process of a
 * session whose collector was killed.
 *
 * Used by the session. The children of a live image are counted in its process. Those of a complete image are pending
 * children, if their pids are known; they stay until they have joined, called exec, or are dead. Children whose pids
 * are not known are missing, and are waited for briefly.
 */
#ifndef COLLECTOR_PENDING_H
#define COLLECTOR_PENDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/control.h"
#include "base/loop.h"
#include "base/users.h"
#include "session/process.h"

/* A pending child whose parent image is complete. */
struct pending_child {
	pid_t pid;
	ino_t inode; /* of the parent's memory, which it maps until it joins or calls exec */
};

/* All zeros: none. The owner frees `at`. */
struct pending_children {
	uint32_t missing;	 /* forked by complete images, not joined, pids unknown */
	uint64_t grace_until_ns; /* until then missing children may still join */
	struct pending_child *at;
	unsigned count;
	unsigned next; /* number still to be checked in this pass */
	uint64_t check_ns;
	uint64_t since_ns; /* 0: none are pending */
};

/* Counts children that an image has forked and that have not joined. They are waited for, briefly. */
void pending_children_note(struct pending_children *pending, struct process *process, uint64_t now_ns);
/*
 * Keeps the forked children of a complete image: they may join after their parent's end. A child that is slow to get
 * the processor still finds a collector to join.
 */
void pending_children_keep(struct pending_children *pending, struct process *process, uint64_t now_ns);
/* Removes pending children that are dead, have called exec, or have joined. Uses lookups of the user. */
void pending_children_check(struct pending_children *pending, struct user *user, uint64_t now_ns);
/* A process has joined, perhaps a forked child of one of the processes. */
void pending_children_joined(struct pending_children *pending, struct process *processes,
			     const struct control_message *join);
/* Whether a child may still join. */
bool pending_children_expected(const struct pending_children *pending, uint64_t now_ns);
/* Pending for so long that its parent does not wait for it: it counts as if it had joined. */
bool pending_children_slow(const struct pending_children *pending, uint64_t now_ns);

/*
 * The first process of a session whose collector was killed. It may sleep and not know yet that
 * another collector has replaced that one. The new collector stays until the process joins or ends.
 */
struct pending_rejoin {
	struct loop_source source; /* fd: a pidfd, owned */
	struct loop *loop;	   /* NULL: no process is pending */
	pid_t pid;
};

/* pid: 0, or one without a process here: none is pending. */
void pending_rejoin_init(struct pending_rejoin *pending, struct loop *loop, pid_t pid);
void pending_rejoin_done(struct pending_rejoin *pending);

/* The process with this pid has joined. */
void pending_rejoin_joined(struct pending_rejoin *pending, pid_t pid);
bool pending_rejoin_any(const struct pending_rejoin *pending);

#endif
