/*
 * protobuf.h - writes protocol buffers, for the exporters to formats that are based on them.
 *
 * It has two levels. The inline functions write numbers to an address with enough room, for millions of events. A
 * struct protobuf is for everything else: it grows, nests messages, and takes text from traces. Field numbers are
 * defined by the formats, in their exporters.
 *
 * protobuf-c is not used: its generated code builds a tree of objects for each message and walks it twice, which costs
 * more than reading the trace. It would also need the formats' .proto files and protoc at build time, for some twenty
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

/* Both return the position after the number. */
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
	size_t begun[PROTOBUF_DEPTH_MAX]; /* begins of the open messages' contents */
	unsigned depth;
	int error; /* 0 or -ENOMEM; callers write on, and check at the end */
};

/* Each function adds a field to the innermost open message. Zeroed memory is an empty protobuf. */
void protobuf_number(struct protobuf *protobuf, uint32_t field, uint64_t value);
/* A number, unless it is 0, the default of a field. */
void protobuf_nonzero(struct protobuf *protobuf, uint32_t field, uint64_t value);
/* A number without a field: an element of a packed field, which is begun and ended as a message is. */
void protobuf_varint(struct protobuf *protobuf, uint64_t value);
/* A field of 64 bits, such as a double. */
void protobuf_fixed64(struct protobuf *protobuf, uint32_t field, uint64_t value);
/* Adds a text as valid UTF-8, which fields of type string require; invalid bytes become U+FFFD. */
void protobuf_text(struct protobuf *protobuf, uint32_t field, struct text text);
void protobuf_string(struct protobuf *protobuf, uint32_t field, const char *string);
/* Bytes as they are: fields that were written elsewhere, or the contents of a field that was begun. */
void protobuf_put(struct protobuf *protobuf, const void *bytes, size_t length);
/*
 * Starts a message as a field. Messages nest at most PROTOBUF_DEPTH_MAX deep; each protobuf_begin() needs a
 * protobuf_end().
 */
void protobuf_begin(struct protobuf *protobuf, uint32_t field);
void protobuf_end(struct protobuf *protobuf);

/* Empties the protobuf and keeps its memory. */
void protobuf_clear(struct protobuf *protobuf);
void protobuf_done(struct protobuf *protobuf);

#endif
