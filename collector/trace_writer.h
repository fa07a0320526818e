/*
 * trace_writer.h - writes a trace file chunk by chunk (evprof/trace.h).
 *
 * invariant: the file ends at `offset`, which is the end of a whole chunk, after every call.
 */
#ifndef COLLECTOR_TRACE_WRITER_H
#define COLLECTOR_TRACE_WRITER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/trace.h"

#define TRACE_INDEX_EVERY 4096u /* chunks */
#define TRACE_CLOSING_BYTES UINT64_C(65536)

/* Larger payloads are refused with -EMSGSIZE. */
#define TRACE_WRITER_RAW_MAX_BYTES ((size_t)2 << 20)

/* The compressor and its output buffer: one serves all files of a collector, one after the other. */
struct trace_packer;

struct trace_writer {
	int fd;	   /* owned; -1 when closed */
	int error; /* -errno of the write that failed: nothing is written any more */
	int full;  /* -errno: there is room left for what ends the file, and for nothing else */
	struct trace_packer *packer;
	uint64_t offset;
	uint64_t promised;	/* the file system keeps room up to here; UINT64_MAX: it keeps none */
	uint64_t limit_bytes;	/* the file is full when it has these, the owner says; 0: no limit */
	uint64_t closing_bytes; /* of that, what trace_writer_last() may need, the owner says */
	uint64_t index_offset;	/* of the last INDEX chunk, 0 for none */
	struct trace_index_entry *entries;
	unsigned entry_count;
	unsigned entry_capacity;
};

/* NULL when there is no memory. The compressor itself is made at its first use. */
struct trace_packer *trace_packer_new(void);
void trace_packer_free(struct trace_packer *packer);

/* Takes the descriptor of an empty file and writes the header. On failure the descriptor stays the caller's. */
int trace_writer_open(struct trace_writer *writer, struct trace_packer *packer, int fd, const uint8_t session[16]);

/*
 * Writes one chunk. Of *chunk the caller fills type, process, thread, first_ticks, last_ticks, events, extras.
 * Where the disk (or a quota, or a limit of the file's size) has no room for it and closing_bytes, nothing is written:
 * the file is full, every later call returns the same error, and trace_writer_last() and trace_writer_finish() go on.
 * Another failure is final: the file is cut back to its last whole chunk and every later call returns the same error.
 */
int trace_writer_chunk(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);

/* The same for what ends the file: may use the room that is kept. */
int trace_writer_last(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);

/*
 * The last index and struct trace_end: the file is complete. What the file system keeps for it beyond its end stays
 * kept.
 */
int trace_writer_finish(struct trace_writer *writer, uint64_t events, uint64_t lost, uint32_t processes);

/* Its path now, where its folder or itself has got another name since; else path is left as it is. */
void trace_writer_follow(const struct trace_writer *writer, char path[PATH_MAX]);
/* Whether the file has no name any more. */
bool trace_writer_removed(const struct trace_writer *writer);

/*
 * Gives back what was kept and not used. A file system may have to wait for its disk, so whoever waits for the trace is
 * answered before.
 */
void trace_writer_release(struct trace_writer *writer);

/* Gives that back, too. */
void trace_writer_close(struct trace_writer *writer);

#endif
