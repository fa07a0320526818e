/*
 * spans.h - the spans of a process: which are open, and which is the parent of which.
 *
 * A span ends by its number. Its parent is the innermost span that is open where it begins: in the same thread,
 * greenlet and task. Made for a call walk; the caller passes on WIRE_SPAN_BEGIN and WIRE_SPAN_END.
 *
 * In a walk of one thread after the other, the end of a span may come before its begin, if another thread ends it. Such
 * an end is kept, and spans_begin() gives it out. Memory: that of the open spans and of these ends.
 */
#ifndef EVPROF_TOOLS_REPLAY_SPANS_H
#define EVPROF_TOOLS_REPLAY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/call_walk.h"
#include "util/u64_map.h"

struct span {
	uint64_t number;  /* 0: the place is free */
	uint64_t context; /* of a free place: the next one. Thread, greenlet and task in which it began */
	uint64_t parent;  /* number of the parent, 0: none. It may have ended before */
	int64_t start_ns;
	int64_t since_ns;  /* from here on it counts for its parent */
	int64_t end_ns;	   /* of one whose end came first, at its begin; else -1 */
	uint64_t inner_ns; /* time in children that have ended, while this span was open */
	uint32_t name;	   /* a mark's id */
	uint32_t lane;	   /* 0 at the begin; for the caller of spans_begin() */
	uint32_t thread;   /* number of the thread in which it began */
	char *text;	   /* the caller of spans_begin() may set it; who ends the span frees it, or spans_done() */
};

struct spans {
	struct u64_map open; /* number to index + 1 */
	struct u64_map tops; /* context to the number of its innermost open span */
	struct u64_map ends; /* number to end + 1, of spans whose begin did not come yet */
	struct span *at;
	size_t count, allocated;
	uint64_t free;	 /* index + 1 of the first free place */
	bool in_turn;	 /* threads come one after the other: ends before begins are kept */
	bool ends_first; /* a span that another thread ends has its end at its begin, whichever comes first */
};

void spans_done(struct spans *spans);

/*
 * For the begin of a process in a walk of one thread after the other: keeps the ends of spans that another thread ends,
 * if --thread excludes that one, so that the walk does not read it, or with ends_first. It reads the process for that.
 * Returns 0 or -ENOMEM.
 */
int spans_begin_process(struct spans *spans, const struct call_walk *walk);

/* extra: of the event. The span is valid until the next call. NULL: the number was there already, or no memory. */
struct span *spans_begin(struct spans *spans, struct call_walk *walk, const uint64_t *extra);

/*
 * Ends the span. Returns a copy of it, with number 0 if it is not known: it began in the parent of a fork, or too
 * early.
 */
struct span spans_end(struct spans *spans, struct call_walk *walk, uint64_t number);

/*
 * For the end of a process in a walk: a span without an end, which the caller ends, the last one first; NULL: there is
 * none. *left: SIZE_MAX at first. From then on walk->now_ns is when the process was seen last, until when such a span
 * is shown, and its text begins with "unfinished". Without memory it fails the walk.
 */
struct span *spans_next_unfinished(struct spans *spans, struct call_walk *walk, size_t *left);

/*
 * For outputs with rows in which no two spans overlap. ends: by row, the end of its last span + 1. Returns 1 if the row
 * is free when the span begins; it is taken until end_ns then. 0: it is not. -ENOMEM: no memory.
 */
int spans_take_row(struct u64_map *ends, uint64_t row, const struct span *span, int64_t end_ns);

/* The name of a span, or of a counter. */
struct text span_name(const struct trace_process *process, uint64_t id);

#endif
