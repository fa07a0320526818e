/* memory_sampling.c - see memory_sampling.h. */
#include "hooks/memory_sampling.h"

#include "base/config.h"
#include "ring/clock.h"

#define BUCKET_SLOTS 8u /* a cache line */
#define BUCKETS 16384u
#define COUNT_MOST 250u /* of a class; other threads may be adding, too */

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define LN_2 UINT64_C(2977044472) /* ln 2, in 2^-32 */

_Atomic uint8_t memory_sampling_filter[MEMORY_SAMPLING_CLASSES];

static _Alignas(64) _Atomic uintptr_t table[BUCKETS][BUCKET_SLOTS]; /* 0: free */

/* --- the points --- */

/* The 32 bits behind the point of log2(m / 2^63), m in [2^63, 2^64): one by one, as each squaring doubles it. */
static uint32_t log2_fraction(uint64_t m)
{
	uint32_t bits = 0;

	for (int i = 0; i < 32; i++) {
		unsigned __int128 square = (unsigned __int128)m * m; /* in [2^126, 2^128) */
		bool two = square >> 127;

		bits = bits * 2 + two;
		m = (uint64_t)(square >> (two ? 64 : 63));
	}
	return bits;
}

/* splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += GOLDEN;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t memory_sampling_draw(uint64_t *state, uint64_t interval)
{
	uint64_t random = next_random(state) | 1; /* in (0, 2^64) */
	unsigned zeros = (unsigned)__builtin_clzll(random);
	uint64_t log2 = ((uint64_t)(zeros + 1) << 32) - log2_fraction(random << zeros); /* -log2(random / 2^64) */

	return (uint64_t)((unsigned __int128)interval * log2 * LN_2 >> 64);
}

/* The clock makes the points of threads, and of the children of a fork, independent. */
static void next_point(void)
{
	thread_self.sampling_state += clock_now() * 2 + (uintptr_t)&thread_self;
	thread_self.sampling_left = memory_sampling_draw(&thread_self.sampling_state, config.memory_interval);
}

bool memory_sampling_reach(size_t size)
{
	if (!thread_self.sampling_begun) {
		thread_self.sampling_begun = true;
		next_point();
		if (size <= thread_self.sampling_left) {
			thread_self.sampling_left -= size;
			return false;
		}
	}
	next_point();
	return true;
}

/* --- the addresses --- */

static _Atomic uintptr_t *bucket(uintptr_t address, unsigned which)
{
	uint64_t hash = (address >> 4) * GOLDEN;

	return table[(which ? hash >> 20 : hash >> 40) % BUCKETS];
}

/* Changes one slot of the address's buckets from one value to another. False: none has it. */
static bool change(uintptr_t address, uintptr_t from, uintptr_t to)
{
	for (unsigned which = 0; which < 2; which++) {
		_Atomic uintptr_t *slots = bucket(address, which);

		for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
			uintptr_t expected = from;

			if (atomic_load_explicit(&slots[i], memory_order_relaxed) == from &&
			    atomic_compare_exchange_strong_explicit(&slots[i], &expected, to, memory_order_relaxed,
								    memory_order_relaxed))
				return true;
		}
	}
	return false;
}

bool memory_sampling_add(const void *block)
{
	uintptr_t address = (uintptr_t)block;
	_Atomic uint8_t *count = &memory_sampling_filter[memory_sampling_class(address)];

	if (atomic_load_explicit(count, memory_order_relaxed) >= COUNT_MOST)
		return false;
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	if (change(address, 0, address))
		return true;
	atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
	return false;
}

bool memory_sampling_find(const void *block)
{
	uintptr_t address = (uintptr_t)block;

	if (!change(address, address, 0))
		return false;
	atomic_fetch_sub_explicit(&memory_sampling_filter[memory_sampling_class(address)], 1, memory_order_relaxed);
	return true;
}

unsigned memory_sampling_realloc_end(unsigned parts, const void *old, const void *made)
{
	if (!made) {
		if (parts & MEMORY_SAMPLING_OLD && !memory_sampling_add(old))
			parts |= MEMORY_SAMPLING_LOST;
		return parts;
	}
	if (parts & MEMORY_SAMPLING_NEW && !memory_sampling_add(made))
		parts = (parts & ~(unsigned)MEMORY_SAMPLING_NEW) | MEMORY_SAMPLING_LOST;
	return parts;
}
