/*
 * trace_writer.h - writes a trace file, chunk by chunk (evprof/trace.h). For the collector, and for evprof cut.
 *
 * invariant: after every call the file ends at `offset`, which is the end of a complete chunk.
 */
#ifndef SHARED_TRACE_WRITER_H
#define SHARED_TRACE_WRITER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/trace.h"
#include "file/columns.h"

#define TRACE_INDEX_EVERY 4096u /* chunks */
#define TRACE_CLOSING_BYTES UINT64_C(65536)
#define TRACE_WRITER_TRIALS 64

/* Larger payloads are refused with -EMSGSIZE. */
#define TRACE_WRITER_RAW_MAX_BYTES ((size_t)2 << 20)

/* The compressor and its output buffer. Several files may share one. */
struct trace_packer;

/* What was found of a thread's noise (columns.h). Threads share a place now and then; then each is tried again. */
struct noise_trial {
	uint32_t process, thread;
	uint32_t chunks; /* with noise, so far */
	bool recurs[COLUMNS_PARTS];
};

struct trace_writer {
	int fd;		   /* owned; -1 when closed */
	int error;	   /* -errno of the failed write; nothing is written afterwards */
	int full;	   /* -errno: there is room for the end of the file only ... */
	uint64_t last_end; /* ... which ends there at the latest */
	struct trace_packer *packer;
	uint64_t offset;
	uint64_t reserved_end;	/* the file system reserves room up to here; UINT64_MAX: it cannot */
	uint64_t limit_bytes;	/* size limit of the file, set by the owner; 0: none */
	uint64_t closing_bytes; /* room for trace_writer_last() at the end, set by the owner */
	uint64_t index_offset;	/* of the last INDEX chunk; 0: none */
	struct trace_index_entry *entries;
	unsigned entry_count;
	unsigned entry_capacity;
	bool indexes_later; /* the owner says at the end what the index has: trace_writer_index() ... */
	uint64_t later;	    /* ... so many chunks, so far */
	struct noise_trial trials[TRACE_WRITER_TRIALS];
};

/* NULL: no memory. The compressor is created at its first use. */
struct trace_packer *trace_packer_new(void);
void trace_packer_free(struct trace_packer *packer);

/*
 * Takes over the descriptor of an empty file and writes the header. created_ns: CLOCK_REALTIME. On failure the
 * descriptor remains the caller's.
 */
int trace_writer_open(struct trace_writer *writer, struct trace_packer *packer, int fd, uint64_t created_ns,
		      const uint8_t session[16]);

/*
 * Writes one chunk. The caller sets type, process, thread, first_ticks, last_ticks, events and extras of *chunk. Where
 * the disk (or a quota, or a limit of the file's size) has no room for it and closing_bytes, nothing is written: the
 * file is full, and every later call returns the same error, but trace_writer_last() and trace_writer_finish() still
 * work. Any other failure is final: the file is truncated to its last complete chunk, and every later call returns the
 * same error.
 */
int trace_writer_chunk(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);

/*
 * The same for records at the end of the file, which may use the reserved room. In a full file those that do not leave
 * room for trace_writer_finish() are not written.
 */
int trace_writer_last(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes);

/* Adds a chunk to the index, in the order of offsets, where the writer does not do it. 0 or -errno. */
int trace_writer_index(struct trace_writer *writer, const struct trace_index_entry *entry);

/*
 * Writes the last index and struct trace_end: the file is complete. Space that is reserved beyond its end stays
 * reserved.
 */
int trace_writer_finish(struct trace_writer *writer, uint64_t events, uint64_t lost, uint32_t processes);

/* Updates path if the file or its folder was renamed; otherwise path is unchanged. */
void trace_writer_follow(const struct trace_writer *writer, char path[PATH_MAX]);
/* Whether the file was unlinked. */
bool trace_writer_removed(const struct trace_writer *writer);

/*
 * Releases reserved space that was not used. A file system may wait for its disk here, so processes that wait for the
 * trace are answered before.
 */
void trace_writer_release(struct trace_writer *writer);

/* Also releases reserved space. */
void trace_writer_close(struct trace_writer *writer);

#endif
