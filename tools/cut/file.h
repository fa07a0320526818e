/*
 * file.h - the file of a cut: its header, what it says of processes and threads, events, index and end.
 *
 * Processes and threads are numbered anew, in the order in which they begin here. One is open at a time.
 */
#ifndef EVPROF_TOOLS_CUT_FILE_H
#define EVPROF_TOOLS_CUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "cut/ids.h"
#include "cut/stretch.h"
#include "file/trace_writer.h"
#include "trace/event_buffer.h"

struct cut_file {
	const struct trace *trace;
	const struct cut_stretch *stretch;
	struct trace_packer *packer;
	struct trace_writer writer;
	bool alive_only;   /* it is no stretch: alive/write.h ... */
	uint64_t left_out; /* ... and so many processes are not in it */
	uint64_t so_far;   /* likewise: written for that wish, while the program runs; 0: not */
	int error;	   /* the first -errno; nothing is written afterwards */
	uint64_t events, lost;
	/* The open process, and the open thread. */
	const struct trace_process *process;
	struct ids ids;
	bool began_before, process_written;
	uint32_t process_number; /* those of the next ones, until they are written */
	uint32_t thread_number;
	uint64_t counts[WIRE_KINDS];
	uint64_t gaps; /* events that are missing in the thread */
	uint8_t *payload;
	size_t payload_allocated;
	uint64_t clocks[8]; /* that were written: kind + 1 << 32 | shift */
	size_t clock_count;
};

/* The description of the kinds, the first object of a trace. The caller frees it; NULL: there is none. */
char *file_kinds(const struct trace *trace);
/* Takes over fd. file_done() must follow whatever happens. Errors are in file->error. kinds: may be NULL. */
void file_begin(struct cut_file *file, const struct trace *trace, const struct cut_stretch *stretch, const char *kinds,
		int fd);
/* Writes index and end. */
void file_end(struct cut_file *file);
void file_done(struct cut_file *file);

/* began_before: it had begun before the stretch. */
void file_begin_process(struct cut_file *file, const struct trace_process *process, bool began_before);
void file_end_process(struct cut_file *file);
/* Writes what the file says of the thread, and of its process if that is the first one. */
void file_begin_thread(struct cut_file *file, const struct trace_thread *thread);
void file_end_thread(struct cut_file *file);
/* Writes the events, and the definitions before them. first_ticks: time before the first. Empties the buffer. */
void file_write(struct cut_file *file, struct event_buffer *buffer, uint64_t first_ticks);

#endif
