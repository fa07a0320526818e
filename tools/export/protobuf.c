/*
 * protobuf.c - nested messages in growing memory. See protobuf.h.
 */
#include "export/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A position with that much room; NULL if memory ran out. */
static uint8_t *reserve_room(struct protobuf *protobuf, size_t bytes)
{
	size_t allocated = protobuf->allocated ? protobuf->allocated : 256;
	uint8_t *grown;

	if (protobuf->error)
		return NULL;
	if (bytes <= protobuf->allocated - protobuf->used)
		return protobuf->bytes + protobuf->used;
	while (allocated - protobuf->used < bytes)
		allocated *= 2;
	grown = realloc(protobuf->bytes, allocated);
	if (!grown) {
		protobuf->error = -ENOMEM;
		return NULL;
	}
	protobuf->bytes = grown;
	protobuf->allocated = allocated;
	return grown + protobuf->used;
}

void protobuf_number(struct protobuf *protobuf, uint32_t field, uint64_t value)
{
	uint8_t *at = reserve_room(protobuf, 2 * PROTOBUF_VARINT_MAX_BYTES);

	if (at)
		protobuf->used = (size_t)(protobuf_put_number(at, field, value) - protobuf->bytes);
}

void protobuf_nonzero(struct protobuf *protobuf, uint32_t field, uint64_t value)
{
	if (value)
		protobuf_number(protobuf, field, value);
}

void protobuf_varint(struct protobuf *protobuf, uint64_t value)
{
	uint8_t *at = reserve_room(protobuf, PROTOBUF_VARINT_MAX_BYTES);

	if (at)
		protobuf->used = (size_t)(protobuf_put_varint(at, value) - protobuf->bytes);
}

void protobuf_fixed64(struct protobuf *protobuf, uint32_t field, uint64_t value)
{
	uint8_t *at = reserve_room(protobuf, PROTOBUF_VARINT_MAX_BYTES + sizeof(value));

	if (!at)
		return;
	at = protobuf_put_varint(at, (uint64_t)field << 3 | PROTOBUF_FIXED64);
	memcpy(at, &value, sizeof(value));
	protobuf->used = (size_t)(at - protobuf->bytes) + sizeof(value);
}

void protobuf_string(struct protobuf *protobuf, uint32_t field, const char *string)
{
	protobuf_text(protobuf, field, text_of(string));
}

void protobuf_put(struct protobuf *protobuf, const void *bytes, size_t length)
{
	uint8_t *at = length ? reserve_room(protobuf, length) : NULL;

	if (!at)
		return;
	memcpy(at, bytes, length);
	protobuf->used += length;
}

void protobuf_text(struct protobuf *protobuf, uint32_t field, struct text text)
{
	protobuf_begin(protobuf, field);
	while (text.length) {
		uint32_t code;
		struct text valid = text_next_valid(&text, &code);
		uint8_t *at = reserve_room(protobuf, valid.length);

		if (at)
			memcpy(at, valid.at, valid.length);
		protobuf->used += at ? valid.length : 0;
	}
	protobuf_end(protobuf);
}

/* The length precedes the contents, but is known only at the end: the contents then move up by its size. */
void protobuf_begin(struct protobuf *protobuf, uint32_t field)
{
	uint8_t *at = reserve_room(protobuf, PROTOBUF_VARINT_MAX_BYTES);

	if (at)
		protobuf->used =
		    (size_t)(protobuf_put_varint(at, (uint64_t)field << 3 | PROTOBUF_LENGTH) - protobuf->bytes);
	if (protobuf->depth < PROTOBUF_DEPTH_MAX)
		protobuf->begun[protobuf->depth] = protobuf->used;
	protobuf->depth++;
}

void protobuf_end(struct protobuf *protobuf)
{
	uint8_t length[PROTOBUF_VARINT_MAX_BYTES];
	size_t begun, bytes, contents;

	protobuf->depth--;
	if (protobuf->depth >= PROTOBUF_DEPTH_MAX || !reserve_room(protobuf, sizeof(length)))
		return;
	begun = protobuf->begun[protobuf->depth];
	contents = protobuf->used - begun;
	bytes = (size_t)(protobuf_put_varint(length, contents) - length);
	memmove(protobuf->bytes + begun + bytes, protobuf->bytes + begun, contents);
	memcpy(protobuf->bytes + begun, length, bytes);
	protobuf->used += bytes;
}

void protobuf_clear(struct protobuf *protobuf)
{
	protobuf->used = 0;
	protobuf->depth = 0;
}

void protobuf_done(struct protobuf *protobuf)
{
	free(protobuf->bytes);
	memset(protobuf, 0, sizeof(*protobuf));
}
