/* control.h - parses and checks the messages of evprof/control.h. */
#ifndef COLLECTOR_CONTROL_H
#define COLLECTOR_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/control.h"
#include "evprof/ring.h"
#include "evprof/settings.h"
#include "evprof/wire.h"

struct json_t;

/* From CONTROL_STATUS on: control requests, which are answered. CONTROL_UNKNOWN: one that is not known here. */
enum control_type {
	CONTROL_JOIN,
	CONTROL_HOLD,
	CONTROL_ABSENT,
	CONTROL_STATUS,
	CONTROL_SWITCH,
	CONTROL_SNAPSHOT,
	CONTROL_UNKNOWN
};

static inline bool control_is_request(enum control_type type)
{
	return type >= CONTROL_STATUS;
}

/* Of CONTROL_SWITCH. The first three as in enum ring_request. LOOK: only what became of the last one. */
enum control_action { CONTROL_STOP, CONTROL_START, CONTROL_MARK, CONTROL_EVENTS, CONTROL_LOOK };

/*
 * A parsed message, which owns its strings. HOLD has only type, session, output and wait_ms; ABSENT type, session and
 * reason; a request type and target, and a SWITCH its action and mark.
 */
struct control_message {
	enum control_type type;
	uint8_t session[CONTROL_SESSION_DIGITS / 2];
	enum wire_start start;
	pid_t pid; /* in the sender's pid namespace */
	pid_t ppid;
	uint64_t start_time;
	bool root;
	int sample_rate;	  /* samples a second; 0: not sampled */
	bool outside;		  /* sent by a tool that samples the process */
	uint64_t memory_interval; /* bytes between sampled allocations; 0: not sampled */
	uint32_t budget;	  /* 1/1000 % of the CPU time; 0: none */
	struct setting_keep keep; /* the stretch that the trace keeps; all zeros: all */
	int wait_ms;		  /* of a hold: wait for processes that still run */
	bool native;		  /* native stacks are recorded */
	bool malloc_unseen;	  /* native allocations were asked for, and do not reach the library */
	bool filtered;		  /* functions are filtered */
	bool program_only;	  /* what Python does before and after the program is left out */
	const char *python;
	const char *program;
	const char *exe;
	const char *cwd;
	const char *host;
	const char *output;	    /* absolute, shorter than PATH_MAX */
	const char *reason;	    /* shorter than CONTROL_REASON_MAX_BYTES */
	const char *target;	    /* of a request; shorter than CONTROL_TARGET_MAX_BYTES */
	enum control_action action; /* of a CONTROL_SWITCH */
	const char *name;	    /* likewise: of the mark, or the list of events; "" for other actions */
	uint32_t hold_ms;      /* of a CONTROL_SNAPSHOT: nothing leaves the trace for so long; 0: gives up a hold */
	uint64_t hold;	       /* likewise: the number of that hold */
	const char *formats;   /* shorter than CONTROL_FORMATS_MAX_BYTES; "": none */
	const char *trigger;   /* shorter than CONTROL_TRIGGER_MAX_BYTES; "": none. Not parsed yet */
	struct json_t *argv;   /* array of strings */
	struct json_t *events; /* array of strings */
	struct json_t *object;
};

/* Converts lower-case hexadecimal digits to bytes. bytes: zeros, half as many. False: invalid. */
bool control_read_digits(const char *digits, size_t count, uint8_t *bytes);

/*
 * 0, or an error with one line in `reason`. On success the caller calls control_message_done().
 *
 *   -EINVAL            the message is invalid. *message has only type (a request, or JOIN for the rest)
 *   -EPROTONOSUPPORT   the sender has another CONTROL_VERSION. *message has only type (HOLD, a request, or JOIN for the
 *                      rest) and session (zeros: invalid)
 */
int control_parse(const char *bytes, size_t count, struct control_message *message, char *reason, size_t reason_bytes);
void control_message_done(struct control_message *message);

/* Whether the target of a request names this process. */
bool control_target_has(const char *target, pid_t pid, const char *program);

#endif
