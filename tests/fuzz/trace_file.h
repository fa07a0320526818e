/*
 * trace_file.h - a trace taken apart into its chunks, unpacked, and put together again with whatever makes it whole:
 * sizes, checksums, compression, index and end. For the mutators of the fuzz targets that read traces.
 */
#ifndef TESTS_FUZZ_TRACE_FILE_H
#define TESTS_FUZZ_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/trace.h"

#define TRACE_FILE_PIECES 64
#define TRACE_FILE_PIECE_BYTES ((size_t)16 << 10) /* unpacked; larger chunks are left out */

struct trace_piece {
	struct trace_chunk chunk;
	/* The payload; of EVENTS, where it has the right form, the words as they stand in a ring. */
	uint8_t *bytes;
	size_t count;
	bool words;
};

struct trace_file {
	struct trace_header header;
	struct trace_piece pieces[TRACE_FILE_PIECES];
	unsigned count;
};

/* False when there is no header, or no memory. What is damaged or an index is left out. */
bool trace_file_parse(struct trace_file *file, const uint8_t *bytes, size_t count);
void trace_file_done(struct trace_file *file);

/* A piece of its own memory, which has room for TRACE_FILE_PIECE_BYTES. */
bool trace_piece_copy(struct trace_piece *copy, const struct trace_piece *piece);
void trace_piece_done(struct trace_piece *piece);

/* The bytes of the file, or 0 when there is no room for them. whole: with index and end. */
size_t trace_file_build(const struct trace_file *file, bool whole, uint8_t *bytes, size_t room);

/* Makes the checksum of the chunk's header at `bytes` right. */
void trace_chunk_seal(uint8_t *bytes);

#endif
