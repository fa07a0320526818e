/*
 * reader.h - reads a trace file (include/evprof/trace.h), whole or not.
 *
 * Used by every verb. A complete file is read through its index; one without an end, cut short or damaged is scanned,
 * and reading goes on at the next valid chunk. No size, count or number in the file is believed before it is checked.
 * What could not be read is counted, and trace_verdict() says it in one line.
 *
 * trace.h    a trace in memory: processes, threads, names, times      load.h    makes it of the chunks
 * stream.h   the events of a thread       ahead.h    reads what is next      cpu_time.h    by other clocks
 * events.h   the events of a chunk        chunk.h    checked bytes            index.h       where the chunks are
 */
#ifndef EVPROF_TOOLS_TRACE_READER_H
#define EVPROF_TOOLS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/stream.h"
#include "trace/trace.h"
#include "util/cli.h"

/*
 * Opens and reads everything but the events; path "-" is standard input. Returns 0, or -errno with one line in error
 * saying why: -EINVAL for what is no trace, -ENOTSUP for a trace of a later evprof, -ENOMEM, or what the system said.
 */
int trace_open(struct trace **trace, const char *path, char *error, size_t error_bytes);
/* The same for bytes in memory, which stay where they are until trace_close(). name is shown in messages. */
int trace_open_memory(struct trace **trace, const void *bytes, size_t size, const char *name, char *error,
		      size_t error_bytes);
void trace_close(struct trace *trace);

/* Whether that is the trace's own file. */
bool trace_is_at(const struct trace *trace, const char *path);

/* As trace_open(), but says what is wrong on stderr. */
struct trace *trace_open_or_say(const char *path);

/*
 * What is missing from the trace as far as it was read until now, as one line in text. Returns CLI_FINE (text is
 * ""), CLI_GROWING or CLI_DAMAGED.
 */
int trace_verdict(const struct trace *trace, char *text, size_t text_bytes);
/* The same, on stderr. */
int trace_say_verdict(const struct trace *trace);

/*
 * Reads the whole file and checks every checksum; what is wrong goes to trace->damage. tick, if any, is called with the
 * bytes read so far. Nothing else needs this: reading checks what it reads.
 */
void trace_check(struct trace *trace, void (*tick)(void *owner, uint64_t bytes), void *owner);

#endif
