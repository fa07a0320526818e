/*
 * protobuf.h - writes protocol buffers: what the exporters to formats made of them have in common.
 *
 * Two ways. The inline functions put numbers at an address with room enough, for events by the million. A struct
 * protobuf grows, holds messages in messages, and takes text from traces, for everything else. Field numbers are the
 * formats' own and stand in the exporters.
 *
 * Not protobuf-c: its generated code builds a tree of objects for each message and walks it twice, which costs more
 * than reading the trace does, and it would need the formats' .proto files and protoc at build time for some twenty
 * fields.
 */
#ifndef EVPROF_TOOLS_EXPORT_PROTOBUF_H
#define EVPROF_TOOLS_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "util/text.h"

#define PROTOBUF_VARINT_MAX_BYTES 10
#define PROTOBUF_DEPTH_MAX 8

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_LENGTH = 2 };

/* Both return where the next byte goes. */
static inline uint8_t *protobuf_put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static inline uint8_t *protobuf_put_number(uint8_t *at, uint32_t field, uint64_t value)
{
	return protobuf_put_varint(protobuf_put_varint(at, (uint64_t)field << 3 | PROTOBUF_VARINT), value);
}

/* invariant: used <= allocated, unless bytes is NULL; begun[0] < begun[1] < ... < used */
struct protobuf {
	uint8_t *bytes;
	size_t used;
	size_t allocated;
	size_t begun[PROTOBUF_DEPTH_MAX]; /* where the open messages' contents begin */
	unsigned depth;
	int error; /* 0 or -ENOMEM: write on, and ask at the end */
};

/* All of these add a field to the message that was begun last. Zeroed memory is an empty protobuf. */
void protobuf_number(struct protobuf *protobuf, uint32_t field, uint64_t value);
void protobuf_fixed64(struct protobuf *protobuf, uint32_t field, uint64_t value);
void protobuf_bytes(struct protobuf *protobuf, uint32_t field, const void *bytes, size_t length);
/* Valid UTF-8 whatever the text is, as fields of the type string must be: what is no text becomes U+FFFD. */
void protobuf_text(struct protobuf *protobuf, uint32_t field, struct text text);
void protobuf_string(struct protobuf *protobuf, uint32_t field, const char *string);
/* A message as a field, at most PROTOBUF_DEPTH_MAX in one another; every begin has its end. */
void protobuf_begin(struct protobuf *protobuf, uint32_t field);
void protobuf_end(struct protobuf *protobuf);

/* Empties it and keeps its memory. */
void protobuf_clear(struct protobuf *protobuf);
void protobuf_done(struct protobuf *protobuf);

#endif
