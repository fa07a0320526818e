/* columns.c - see columns.h. The reader of the tools has the inverse (tools/trace/events.c). */
#include "file/columns.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#ifdef __SSE2__

/*
 * Takes 16 words of four or eight bytes at a time, in as many registers. Each of their bytes has a number: the
 * register's, and that in the register. Pairs of registers that are half of all apart are interleaved, which turns the
 * bits of that number by one place. Its upper four bits say which word it is; after four rounds the lower four do.
 */
#define AT_ONCE 16
#define BYTES_MAX 8

static inline void transpose(__m128i *rows, unsigned count)
{
	__m128i turned[BYTES_MAX];

#pragma GCC unroll 4
	for (unsigned round = 0; round < 4; round++) {
#pragma GCC unroll 4
		for (unsigned i = 0; i < count / 2; i++) {
			turned[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + count / 2]);
			turned[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + count / 2]);
		}
#pragma GCC unroll 8
		for (unsigned i = 0; i < count; i++)
			/* cppcheck-suppress uninitvar ; count is even */
			rows[i] = turned[i];
	}
}

static inline void planes(const uint8_t *words, unsigned bytes, size_t count, uint8_t *out)
{
	__m128i rows[BYTES_MAX];
	size_t i = 0;

	for (; i + AT_ONCE <= count; i += AT_ONCE) {
#pragma GCC unroll 8
		for (unsigned row = 0; row < bytes; row++)
			rows[row] = _mm_loadu_si128((const __m128i *)(const void *)(words + i * bytes) + row);
		transpose(rows, bytes);
#pragma GCC unroll 8
		for (unsigned plane = 0; plane < bytes; plane++)
			_mm_storeu_si128((__m128i *)(void *)(out + plane * count + i), rows[plane]);
	}
	for (; i < count; i++) {
		for (unsigned plane = 0; plane < bytes; plane++)
			out[plane * count + i] = words[i * bytes + plane];
	}
}

static void extra_planes(const uint64_t *words, size_t count, uint8_t *out)
{
	planes((const uint8_t *)words, sizeof(words[0]), count, out);
}

static void ticks_planes(const uint32_t *ticks, size_t count, uint8_t *out)
{
	planes((const uint8_t *)ticks, sizeof(ticks[0]), count, out);
}

#else

/* Transposes eight words into eight bytes of each plane, in three rounds that swap blocks of 1, 2 and 4 bytes. */
static void transpose_8(const uint64_t in[8], uint64_t out[8])
{
	static const uint64_t masks[3] = {UINT64_C(0x00ff00ff00ff00ff), UINT64_C(0x0000ffff0000ffff),
					  UINT64_C(0x00000000ffffffff)};
	uint64_t rows[8];

	memcpy(rows, in, sizeof(rows));
	for (unsigned round = 0; round < 3; round++) {
		unsigned step = 1u << round;
		unsigned bits = 8u << round;

		for (unsigned pair = 0; pair < 4; pair++) {
			unsigned low = (pair & ~(step - 1)) * 2 + (pair & (step - 1));
			uint64_t swap = (rows[low] >> bits ^ rows[low + step]) & masks[round];

			rows[low] ^= swap << bits;
			rows[low + step] ^= swap;
		}
	}
	memcpy(out, rows, sizeof(rows));
}

static void extra_planes(const uint64_t *words, size_t count, uint8_t *out)
{
	uint64_t rows[8];
	size_t i = 0;

	for (; i + 8 <= count; i += 8) {
		transpose_8(words + i, rows);
		for (unsigned plane = 0; plane < 8; plane++)
			memcpy(out + plane * count + i, &rows[plane], 8);
	}
	for (; i < count; i++) {
		for (unsigned plane = 0; plane < 8; plane++)
			out[plane * count + i] = (uint8_t)(words[i] >> (8 * plane));
	}
}

static void ticks_plane(const uint32_t *restrict ticks, size_t count, unsigned plane, uint8_t *restrict out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)(ticks[i] >> (8 * plane));
}

/* Most events follow each other within microseconds, so the upper planes of most chunks are zero. */
static void ticks_planes(const uint32_t *ticks, size_t count, uint8_t *out)
{
	uint32_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= ticks[i];
	for (unsigned plane = 0; plane < 4; plane++, out += count) {
		if (all >> (8 * plane))
			ticks_plane(ticks, count, plane, out);
		else
			memset(out, 0, count);
	}
}

#endif

size_t columns_pack(uint8_t *out, const uint32_t *heads, const uint32_t *ticks, size_t events, const uint64_t *extra,
		    size_t extras)
{
	if ((const void *)heads != out)
		memcpy(out, heads, events * 4);
	ticks_planes(ticks, events, out + events * 4);
	extra_planes(extra, extras, out + events * 8);
	return events * 8 + extras * 8;
}

#define NOISE_MIN_BYTES 2048 /* a part has a header and a table of its own */

unsigned columns_parts(size_t events, size_t extras, struct columns_part parts[COLUMNS_PARTS])
{
	unsigned count = 0;

	if (events < NOISE_MIN_BYTES) {
		parts[count++] = (struct columns_part){.bytes = (events + extras) * 8};
		return count;
	}
	parts[count++] = (struct columns_part){.bytes = events * 4};
	parts[count++] = (struct columns_part){.bytes = events, .noise = true};
	parts[count++] = (struct columns_part){.bytes = events * 3};
	if (extras < NOISE_MIN_BYTES) {
		parts[count - 1].bytes += extras * 8;
		return count;
	}
	parts[count++] = (struct columns_part){.bytes = extras, .noise = true};
	parts[count++] = (struct columns_part){.bytes = extras, .noise = true};
	parts[count++] = (struct columns_part){.bytes = extras * 6};
	return count;
}
