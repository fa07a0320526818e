/*
 * pack.c - columns, deflate and base64 for the HTML report; see pack.h. The only user of zlib in tools/html.
 */
#include "html/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A multiple of 3, so that base64 of a full buffer has no padding. */
#define PACKED_BYTES ((size_t)3 << 14)

/*
 * The level of zlib. On columns of calls, level 4 takes 1.4 times as long, and the default 6 takes 3.4 times; the page
 * gets 5 % and 8 % smaller.
 */
#define PACK_LEVEL 2

bool html_column_grow(struct html_column *column, size_t more)
{
	size_t allocated = column->allocated ? column->allocated * 2 : 256;
	uint8_t *grown;

	if (column->failed)
		return false;
	while (allocated - column->used < more)
		allocated *= 2;
	grown = realloc(column->bytes, allocated);
	if (!grown) {
		column->failed = true;
		return false;
	}
	column->bytes = grown;
	column->allocated = allocated;
	return true;
}

void html_columns_done(struct html_column *columns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(columns[i].bytes);
	memset(columns, 0, count * sizeof(*columns));
}

void html_column_bytes(struct html_column *column, const void *bytes, size_t length)
{
	if (!length || (column->allocated - column->used < length && !html_column_grow(column, length)))
		return;
	memcpy(column->bytes + column->used, bytes, length);
	column->used += length;
}

/* A deflate stream whose output is encoded as base64; owned by the worker thread. */
struct html_stream {
	z_stream deflate;
	struct output *output;
	uint8_t packed[PACKED_BYTES];
};

/* A block in a batch. Its bytes follow, padded to a multiple of 8. */
struct piece {
	uint64_t length;
	uint64_t number;
};

static void deflate_bytes(struct html_stream *stream, const void *bytes, size_t length, int flush)
{
	int result;

	stream->deflate.next_in = (uint8_t *)bytes;
	stream->deflate.avail_in = (uInt)length;
	do {
		result = deflate(&stream->deflate, flush);
		if (stream->deflate.avail_out == 0 || result == Z_STREAM_END) {
			output_base64(stream->output, stream->packed, PACKED_BYTES - stream->deflate.avail_out);
			stream->deflate.next_out = stream->packed;
			stream->deflate.avail_out = (uInt)PACKED_BYTES;
		}
	} while (stream->deflate.avail_in || (flush == Z_FINISH && result == Z_OK));
}

static void write_block(struct html_stream *stream, uint64_t number, const char *bytes, size_t length)
{
	size_t done, part;

	output_format(stream->output, "<script type=\"text/plain\" id=\"b%u\">", (unsigned)number);
	deflateReset(&stream->deflate);
	/* At most a gigabyte at a time, because zlib counts in 32 bits. */
	for (done = 0; length - done > 1u << 30; done += part) {
		part = 1u << 30;
		deflate_bytes(stream, bytes + done, part, Z_NO_FLUSH);
	}
	deflate_bytes(stream, bytes + done, length - done, Z_FINISH);
	output_string(stream->output, "</script>\n");
}

static int write_blocks(void *owner, const char *bytes, size_t used)
{
	struct html_stream *stream = owner;
	const struct piece *piece;
	size_t at;

	for (at = 0; at < used; at += sizeof(*piece) + (piece->length + 7) / 8 * 8) {
		piece = (const struct piece *)(bytes + at);
		write_block(stream, piece->number, (const char *)(piece + 1), piece->length);
	}
	return stream->output->error;
}

int html_packer_begin(struct html_packer *packer, struct output *output)
{
	struct html_stream *stream = calloc(1, sizeof(*stream));

	if (!stream || deflateInit(&stream->deflate, PACK_LEVEL) != Z_OK) {
		free(stream);
		return -ENOMEM;
	}
	stream->output = output;
	stream->deflate.next_out = stream->packed;
	stream->deflate.avail_out = (uInt)PACKED_BYTES;
	packer->stream = stream;
	batches_begin(&packer->batches, write_blocks, stream);
	return 0;
}

int html_packer_wait(struct html_packer *packer)
{
	return batches_wait(&packer->batches);
}

int html_packer_end(struct html_packer *packer)
{
	int error = batches_end(&packer->batches);

	if (packer->stream)
		deflateEnd(&packer->stream->deflate);
	free(packer->stream);
	packer->stream = NULL;
	return error;
}

/* The length of a block; SIZE_MAX if a column failed. */
static size_t block_length(const struct html_column *columns, unsigned count)
{
	size_t length = 0;

	for (unsigned i = 0; i < count; i++) {
		if (columns[i].failed || columns[i].used > UINT32_MAX)
			return SIZE_MAX;
		length += 4 + columns[i].used;
	}
	return length;
}

static void copy_columns(uint8_t *to, const struct html_column *columns, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < 4; k++)
			*to++ = (uint8_t)(columns[i].used >> (8 * k));
		if (columns[i].used)
			memcpy(to, columns[i].bytes, columns[i].used);
		to += columns[i].used;
	}
}

int html_block_write(struct html_packer *packer, uint32_t number, struct html_column *columns, unsigned count)
{
	size_t length = block_length(columns, count);
	struct piece *piece = NULL;

	if (length != SIZE_MAX)
		piece = batches_room(&packer->batches, sizeof(*piece) + (length + 7) / 8 * 8);
	if (piece) {
		*piece = (struct piece){length, number};
		copy_columns((uint8_t *)(piece + 1), columns, count);
	}
	for (unsigned i = 0; i < count; i++)
		columns[i].used = 0;
	if (!piece && !packer->batches.error)
		packer->batches.error = -ENOMEM;
	return packer->batches.error;
}

uint32_t html_text_add(struct html_texts *texts, struct text text)
{
	html_column_put(&texts->columns[0], text.length);
	html_column_bytes(&texts->columns[1], text.at, text.length);
	return texts->count++;
}
