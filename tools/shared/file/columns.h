/* columns.h - the payload of an EVENTS chunk (evprof/trace.h), made of its events. */
#ifndef SHARED_COLUMNS_H
#define SHARED_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the columns of that many events with that many extra words to out, which has 8 bytes for each of both. Returns
 * the bytes written.
 */
size_t columns_pack(uint8_t *out, const uint32_t *heads, const uint32_t *ticks, size_t events, const uint64_t *extra,
		    size_t extras);

#endif
