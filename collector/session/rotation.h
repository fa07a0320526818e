/*
 * rotation.h - the parts of a trace that is rotated (--rotate): TRACE-part-1.evp, TRACE-part-2.evp, ... next to it.
 *
 *   trace  --(time or size)-->  evprof cut copies what was written up to here to a part  -->  that leaves the trace
 *
 * A part is a trace of its own, with all names and the stacks at its beginning, as a cut is. It ends at a byte of the
 * file, so an event that a thread writes late is in the next part, and each event in one. The trace has what follows
 * the last part; at the end of the session evprof cut takes from it what is in the parts. Called by session.c.
 */
#ifndef COLLECTOR_ROTATION_H
#define COLLECTOR_ROTATION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "evprof/settings.h"
#include "trace/tool_run.h"

struct loop;
struct trace_output;

/* All zeros: none yet. */
struct rotation {
	struct tool_run run;
	char path[PATH_MAX]; /* of the part */
	unsigned parts;	     /* the number of the last one */
	uint64_t began_ns;   /* the present stretch; 0: no event was written */
	uint64_t again_ns;   /* not before, after a failure */
	uint64_t wanted_ns;  /* a part is due, and waits until what was recorded before is read; 0: none */
	/* The edge of a part that is being made, or was; byte 0: none. */
	uint64_t edge_byte, edge_ns;
	bool made;
};

/* Whether a part is due. limits: all zeros: never. */
bool rotation_is_due(struct rotation *rotation, const struct setting_keep *limits, const struct trace_output *trace,
		     uint64_t now_ns);
/* Begins a part. now_ns: what was recorded until then was written, as far as it could be read. */
void rotation_begin(struct rotation *rotation, struct loop *loop, struct trace_output *trace, uint64_t now_ns);
/*
 * After the rings were read: what is in a part leaves the trace, once nobody reads it. Whether one is being made.
 * formats: those that a part is exported to, with commas; "": none.
 */
bool rotation_check(struct rotation *rotation, struct trace_output *trace, const char *formats, uint64_t now_ns);
/* The collector ends: waits for a part, for a limited time. It is not exported any more. */
void rotation_stop(struct rotation *rotation, struct trace_output *trace, uint64_t now_ns);
/* The longest time until the next round, -1: any. */
int rotation_patience_us(const struct rotation *rotation, const struct setting_keep *limits);

#endif
