/* columns.h - the payload of an EVENTS chunk (evprof/trace.h), made of its events. */
#ifndef SHARED_COLUMNS_H
#define SHARED_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the columns of that many events with that many extra words to out, which has 8 bytes for each of both. Returns
 * the bytes written. The heads may be at the beginning of out already.
 */
size_t columns_pack(uint8_t *out, const uint32_t *heads, const uint32_t *ticks, size_t events, const uint64_t *extra,
		    size_t extras);

/*
 * A part of the payload, for who compresses it. noise: the lowest bytes of times or addresses. Sequences of them hardly
 * recur, but some values are more frequent than others.
 */
struct columns_part {
	size_t bytes;
	bool noise;
};
#define COLUMNS_PARTS 6

/* Sets the parts of the payload of that many events and extra words, in their order. Returns how many there are. */
unsigned columns_parts(size_t events, size_t extras, struct columns_part parts[COLUMNS_PARTS]);

#endif
