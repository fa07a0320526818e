/*
 * deflate.h - zlib's deflate into an output, for the exporters and push/.
 */
#ifndef EVPROF_TOOLS_EXPORT_DEFLATE_H
#define EVPROF_TOOLS_EXPORT_DEFLATE_H

#include <stdbool.h>
#include <zlib.h>

#include "util/output.h"

/*
 * Begins a gzip stream; deflateEnd() frees it. 16 requests a gzip header, without name and time: the same bytes give
 * the same stream. False: memory ran out.
 */
static inline bool deflate_begin_gzip(z_stream *stream)
{
	return deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
}

/* Deflates the bytes; flush as for deflate(). Returns how many bytes were written. */
static inline uint64_t deflate_put(z_stream *stream, struct output *output, const void *bytes, size_t length, int flush)
{
	unsigned char packed[1 << 16];
	uint64_t written = 0;

	stream->next_in = (Bytef *)bytes;
	stream->avail_in = (uInt)length;
	do {
		stream->next_out = packed;
		stream->avail_out = sizeof(packed);
		deflate(stream, flush);
		output_put(output, packed, sizeof(packed) - stream->avail_out);
		written += sizeof(packed) - stream->avail_out;
	} while (!stream->avail_out);
	return written;
}

#endif
