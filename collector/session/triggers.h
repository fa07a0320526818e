/*
 * triggers.h - the triggers of a session (EVPROF_TRIGGER, --trigger): where one fires, what the process did last is
 * copied to TRACE-PID-TRIGGER-N.evp (copies.h).
 *
 * Calls and event loops are watched by a program of their own (watcher.h). Resident memory is read here, once a second,
 * and an uncaught exception is reported by the process (ring_header.snapshot). A trigger fires at most once in its
 * quiet time, and all of a session together as often as the list allows.
 */
#ifndef COLLECTOR_TRIGGERS_H
#define COLLECTOR_TRIGGERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/trigger.h"
#include "session/watcher.h"

struct copies;
struct loop;
struct process;
struct trace_output;

#define TRIGGERS_LOOK_US 1000000 /* between two looks at the resident memory */

/* All zeros: none. */
struct session_triggers {
	char list[CONTROL_TRIGGER_MAX_BYTES];
	struct triggers known; /* of the list */
	uint64_t next_ns[TRIGGERS_MAX];
	uint32_t fired[TRIGGERS_MAX]; /* how often */
	uint32_t sum;
	struct watcher watcher;
	uint64_t until_ns; /* the watcher is waited for until then; 0: it is not to end */
};

/* What a session has for its triggers. */
struct triggers_place {
	struct copies *copies;
	struct loop *loop;
	struct trace_output *trace;
	struct process *processes;
	uint64_t now_ns;
};

/* policy: the daemon's list; wanted: the program's; NULL or "": none. One that is not understood is logged. */
void triggers_begin(struct session_triggers *triggers, const char *policy, const char *wanted);
/* A process has joined: starts the watcher, if calls or event loops are to be watched. */
void triggers_watch(struct session_triggers *triggers, const struct triggers_place *place, uid_t uid, gid_t gid);
/* After the rings were read. */
void triggers_round(struct session_triggers *triggers, const struct triggers_place *place);
/* All events are in the file. Whether one may still fire; for a limited time. */
bool triggers_finish(struct session_triggers *triggers, const struct triggers_place *place);
void triggers_stop(struct session_triggers *triggers);
/* The longest time until the next round, -1: any. */
int triggers_patience_us(const struct session_triggers *triggers);

#endif
