/*
 * trace_output.h - the trace of one session: its file, its clocks and its counters.
 *
 * When its file cannot be written, the trace has FAILED. Where the reason is lack of space, it is also FULL: the file
 * is still completed, with the number of lost events of each thread.
 */
#ifndef COLLECTOR_TRACE_OUTPUT_H
#define COLLECTOR_TRACE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/ring.h"
#include "evprof/wire.h"
#include "file/trace_writer.h"
#include "trace/kept.h"
#include "trace/output.h"
#include "base/users.h"

struct folder;

#define TRACE_OUTPUT_CLOCKS 8

struct trace_output_clock {
	uint32_t kind;
	uint32_t shift;
};

struct trace_output {
	struct trace_writer writer;
	struct kept kept;
	const struct users *users;
	struct user *user;     /* the user that began the session */
	struct folder *folder; /* of a daemon; NULL: none */
	bool disk_short;       /* what limits the file now is the folder's free_bytes */
	uint64_t trace_bytes;  /* our part of the user's trace_bytes */
	uint32_t tools;	       /* likewise, of its USER_TOOLS */
	bool opened;	       /* the file was created, or creating it failed */
	bool failed;	       /* no more events are written to the file ... */
	bool full;	       /* ... but the end of the file is */
	bool closed;	       /* the file is complete, or cannot become so */
	bool in_memory;	       /* no trace is kept: its last stretch is in memory, for those who look (evprof top) */
	char path[PATH_MAX];
	char error[RING_TEXT_BYTES];
	void (*on_failure)(struct trace_output *trace); /* called once, after `failed` and `error` are set */

	uint32_t process_count; /* images that ever joined; the number of the next one */
	uint32_t thread_count;	/* the number of the next one, unless one is free again */
	uint32_t open_threads, open_processes;
	uint64_t events; /* in the file */
	uint64_t lost;	 /* of threads and processes that have ended */

	struct trace_output_clock clocks[TRACE_OUTPUT_CLOCKS];
	unsigned clock_count;
	uint64_t clock_next_ns;
	uint64_t clock_step_ns;
	bool clock_alone; /* a clock has one record only: its rate is unknown without a second one */
};

void trace_output_init(struct trace_output *trace, const struct users *users, struct user *user, struct folder *folder,
		       void (*on_failure)(struct trace_output *trace));
/* Closes the file, which no longer counts against its user. */
void trace_output_done(struct trace_output *trace);

/* Counts a program that follows the trace, until trace_output_done(). False: its user has too many; a line says so. */
bool trace_output_begin_tool(struct trace_output *trace);

/*
 * Creates the file at trace->path; OUTPUT_NOWHERE: in memory, and the path becomes that by which others see it. keep:
 * the stretch that is kept. rotates: without that, parts of it may leave it (kept_drop()), where the file system can
 * take them back. On failure -errno, and the trace has failed.
 */
int trace_output_open(struct trace_output *trace, struct trace_packer *packer, const uint8_t session[16],
		      enum output_existing existing, const struct setting_keep *keep, bool rotates);
/* No file can be created, because of that error: the trace fails. */
void trace_output_open_failed(struct trace_output *trace, int error);

/* text: one line that says what to do. The file keeps its contents. */
void trace_output_fail(struct trace_output *trace, const char *text);

/*
 * A failed write fails the trace. The end of a thread or a process whose beginning is in the file (trace_output_last,
 * KEPT_END) is written even when the disk is full.
 */
int trace_output_chunk(struct trace_output *trace, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);
int trace_output_last(struct trace_output *trace, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);
/* Frees the text. kind: for a trace that keeps its last stretch. */
void trace_output_json(struct trace_output *trace, uint32_t process, uint32_t thread, char *text, enum kept_kind kind);

/* A number for a new thread. */
uint32_t trace_output_thread(struct trace_output *trace);
/* What the file takes on disk. */
uint64_t trace_output_bytes(const struct trace_output *trace);
/* Of a trace that keeps its last stretch: drops what has left it; once it has failed, nothing more has. */
void trace_output_renew_kept(struct trace_output *trace, uint64_t now_ns);

/* The number of events among them. */
uint64_t trace_output_count_events(struct trace_output *trace, const uint32_t counts[WIRE_KINDS]);

/* Adds a clock of the times in the trace. */
void trace_output_use_clock(struct trace_output *trace, uint32_t kind, uint32_t shift);
void trace_output_write_clocks(struct trace_output *trace, uint64_t now_ns);
/* Writes them if they are due. written: events were written in this round. */
void trace_output_renew_clocks(struct trace_output *trace, bool written, uint64_t now_ns);

/* Whether the file was unlinked, or replaced by another. */
bool trace_output_removed(const struct trace_output *trace);

/* Finishes the trace file. Nothing is written afterwards. release: see trace_writer_release(). */
void trace_output_close(struct trace_output *trace, bool release, uint64_t now_ns);

#endif
