/*
 * html_pack.c - columns, deflate and base64 for the HTML report; see html_pack.h. The only place of the exporters that
 * knows zlib.
 */
#include "html_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A multiple of 3, so that base64 of a full buffer has no padding. */
#define PACKED_BYTES ((size_t)3 << 14)

/* Of zlib. The usual 6 takes 2.6 times as long over columns of calls, and makes the page 5 % smaller. */
#define PACK_LEVEL 4

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

void html_column_done(struct html_column *column)
{
	free(column->bytes);
	memset(column, 0, sizeof(*column));
}

void html_column_bytes(struct html_column *column, const void *bytes, size_t length)
{
	if (!length || (column->allocated - column->used < length && !html_column_grow(column, length)))
		return;
	memcpy(column->bytes + column->used, bytes, length);
	column->used += length;
}

static void put_base64(struct output *output, const uint8_t *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char quad[4];
	size_t i;

	for (i = 0; i < length; i += 3) {
		unsigned left = (unsigned)(length - i);
		uint32_t word = (uint32_t)bytes[i] << 16;

		word |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
		word |= left > 2 ? (uint32_t)bytes[i + 2] : 0;
		quad[0] = digits[word >> 18];
		quad[1] = digits[word >> 12 & 63];
		quad[2] = left > 1 ? digits[word >> 6 & 63] : '=';
		quad[3] = left > 2 ? digits[word & 63] : '=';
		output_put(output, quad, 4);
	}
}

/* A deflate stream whose output goes through base64. */
struct packer {
	z_stream stream;
	struct output *output;
	uint8_t packed[PACKED_BYTES];
};

static void pack(struct packer *packer, const void *bytes, size_t length, int flush)
{
	int result;

	packer->stream.next_in = (uint8_t *)bytes;
	packer->stream.avail_in = (uInt)length;
	do {
		result = deflate(&packer->stream, flush);
		if (packer->stream.avail_out == 0 || result == Z_STREAM_END) {
			put_base64(packer->output, packer->packed, PACKED_BYTES - packer->stream.avail_out);
			packer->stream.next_out = packer->packed;
			packer->stream.avail_out = (uInt)PACKED_BYTES;
		}
	} while (packer->stream.avail_in || (flush == Z_FINISH && result == Z_OK));
}

static void pack_column(struct packer *packer, const struct html_column *column)
{
	uint8_t length[4];
	size_t done, i;

	for (i = 0; i < 4; i++)
		length[i] = (uint8_t)(column->used >> (8 * i));
	pack(packer, length, sizeof(length), Z_NO_FLUSH);
	/* By the gigabyte at most: zlib counts in 32 bits. */
	for (done = 0; done < column->used;) {
		size_t part = column->used - done < (1u << 30) ? column->used - done : 1u << 30;

		pack(packer, column->bytes + done, part, Z_NO_FLUSH);
		done += part;
	}
}

int html_block_write(struct output *output, uint32_t number, struct html_column *columns, unsigned count)
{
	struct packer *packer = calloc(1, sizeof(*packer));
	bool failed = !packer || deflateInit(&packer->stream, PACK_LEVEL) != Z_OK;
	unsigned i;

	for (i = 0; i < count; i++)
		failed |= columns[i].failed || columns[i].used > UINT32_MAX;
	if (!failed) {
		packer->output = output;
		packer->stream.next_out = packer->packed;
		packer->stream.avail_out = (uInt)PACKED_BYTES;
		output_format(output, "<script type=\"text/plain\" id=\"b%u\">", number);
		for (i = 0; i < count; i++)
			pack_column(packer, &columns[i]);
		pack(packer, "", 0, Z_FINISH);
		output_string(output, "</script>\n");
	}
	if (packer)
		deflateEnd(&packer->stream);
	free(packer);
	for (i = 0; i < count; i++)
		columns[i].used = 0;
	return failed ? -ENOMEM : 0;
}

uint32_t html_text_add(struct html_texts *texts, struct text text)
{
	html_column_put(&texts->lengths, text.length);
	html_column_bytes(&texts->bytes, text.at, text.length);
	return texts->count++;
}

void html_texts_done(struct html_texts *texts)
{
	html_column_done(&texts->lengths);
	html_column_done(&texts->bytes);
}
