/*
 * reader.h - reads a trace file (include/evprof/trace.h), complete or not.
 *
 * Used by every verb. A complete file is read through its index. A file that has no end, is cut short or is damaged is
 * scanned; reading continues at the next valid chunk. Every size, count and number in the file is checked before use.
 * Unreadable parts are counted, and trace_verdict() reports them in one line.
 *
 * trace.h    a trace in memory: processes, threads, names, times      load.h        makes it of the chunks
 * stream.h   the events of a thread, with read-ahead (ahead.c)         cpu_time.h    times by other clocks
 * chunk.h    checked bytes and events, and where the chunks are (index.c)
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
 * Opens a trace and loads everything but the events; path "-" is standard input. Returns 0, or -errno with the reason
 * in one line in error: -EINVAL for a file that is not a trace, -ENOTSUP for a trace of an earlier or later evprof,
 * -ENOMEM, or the error of the system.
 */
int trace_open(struct trace **trace, const char *path, char *error, size_t error_bytes);
/* The same for bytes in memory, which must stay valid until trace_close(). name is for messages. */
int trace_open_memory(struct trace **trace, const void *bytes, size_t size, const char *name, char *error,
		      size_t error_bytes);
/*
 * Reads what a file that grows has got since it was opened, or since the last call. From then on each thread has only
 * the new chunks of events, so that a trace can be followed for weeks: streams over them begin at the first. To be
 * called between streams. start_ns and end_ns stay; damage.growing is renewed first. Returns 0 or -ENOMEM; damage is
 * counted.
 */
int trace_follow(struct trace *trace);
void trace_close(struct trace *trace);

/* Whether path is the trace's own file. */
bool trace_is_at(const struct trace *trace, const char *path);
/* Whether a process is writing the trace in this file: the writer holds a lock on it. */
bool trace_is_being_written(int fd);
/* Whether another file is where it was opened. */
bool trace_is_replaced(const struct trace *trace);

/* Like trace_open(), but prints the error on stderr. */
struct trace *trace_open_with_message(const char *path);

/*
 * Writes what is missing from the trace, as far as it was read, as one line in text. Returns CLI_FINE (text is ""),
 * CLI_GROWING or CLI_DAMAGED.
 */
int trace_verdict(const struct trace *trace, char *text, size_t text_bytes);
/* Prints the same line on stderr. */
int trace_print_verdict(const struct trace *trace);

/*
 * Whether events, threads or processes have left a trace that keeps its last stretch. A cut of it says so; in the file
 * that was recorded, chunks are missing. True if no process is left.
 */
bool trace_lacks_beginning(const struct trace *trace);

/*
 * Reads the whole file and checks every checksum; errors go to trace->damage. tick may be NULL; it is called with the
 * number of bytes read so far. Other readers do not need this: reading checks what it reads.
 */
void trace_check(struct trace *trace, void (*tick)(void *owner, uint64_t bytes), void *owner);

#endif
