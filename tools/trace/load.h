/*
 * load.h - loads everything but the events from the chunks of a trace, once, when it is opened. For reader.c.
 *
 * load.c               processes and threads, and the chunks of each thread
 * load_meta.c          META: one JSON object
 * load_definitions.c   DEFINITIONS: names of functions, threads, marks, native frames
 * load_clocks.c        CLOCK: from ticks to ns
 */
#ifndef EVPROF_TOOLS_TRACE_LOAD_H
#define EVPROF_TOOLS_TRACE_LOAD_H

#include "trace/chunk.h"
#include "trace/trace.h"

/*
 * Reads META, DEFINITIONS and CLOCK chunks, creates processes and threads, and groups the other chunks by thread.
 * Returns 0, -ENOMEM or -EBADMSG.
 */
int trace_load(struct trace *trace);
/* The same for the places of trace_find_more_places(): then threads have only the new EVENTS chunks. */
int trace_load_more(struct trace *trace);
void trace_unload(struct trace *trace);

/* --- between load.c and load_*.c. All return 0, -ENOMEM, or -EBADMSG for damage --- */

/* Reserves bytes of the limit of memory for loaded contents. */
int trace_keep(struct trace *trace, uint64_t bytes);
/* The process with that number, added if it is new. */
int trace_make_process(struct trace *trace, uint64_t number, struct trace_process **process);
/* The same for a thread, which belongs to that process if it is new. thread may be NULL. */
int trace_make_thread(struct trace *trace, uint64_t number, uint64_t process, struct trace_thread **thread);

int trace_load_meta(struct trace *trace, struct trace_payload *payload);
/* Keeps the payload, because names point into it. */
int trace_load_definitions(struct trace *trace, struct trace_payload *payload);
int trace_load_clocks(struct trace *trace, struct trace_payload *payload);

/* Names all kinds, before META names those that this evprof does not know. */
void trace_name_kinds(struct trace *trace);
/* Gives a new thread the name that was defined before it. */
int trace_take_pending_name(struct trace *trace, struct trace_thread *thread);
/* After all chunks: gives threads that had ended their names, and sorts symbols. */
int trace_finish_definitions(struct trace *trace);
/* After all chunks: sets the line of each process. */
void trace_set_lines(struct trace *trace);

#endif
