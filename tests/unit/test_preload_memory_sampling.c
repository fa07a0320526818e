/*
 * test_preload_memory_sampling.c - the sampling of allocations by bytes: the points against the exponential
 * distribution as libm has it, with fixed seeds; the table of addresses.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "preload/base/config.h"
#include "preload/hooks/memory_sampling.h"

#define INTERVAL 524288.0
#define DRAWS 200000

static uint64_t state = 12345;

Test(memory_sampling, points_are_an_interval_apart_on_average)
{
	double sum = 0, squares = 0, mean, variance;

	for (unsigned i = 0; i < DRAWS; i++) {
		double bytes = (double)memory_sampling_draw(&state, (uint64_t)INTERVAL);

		sum += bytes;
		squares += bytes * bytes;
	}
	mean = sum / DRAWS;
	variance = squares / DRAWS - mean * mean;
	cr_assert(fabs(mean / INTERVAL - 1) < 4 / sqrt(DRAWS), "%f", mean);
	cr_assert(fabs(variance / INTERVAL / INTERVAL - 1) < 4 * sqrt(8.0 / DRAWS), "%f", variance);
}

/* A hundred classes that are equally probable. */
Test(memory_sampling, distances_are_exponential)
{
	unsigned counts[100] = {0};
	double chi_square = 0;

	for (unsigned i = 0; i < DRAWS; i++) {
		double bytes = (double)memory_sampling_draw(&state, (uint64_t)INTERVAL) + 0.5;

		counts[(unsigned)(-expm1(-bytes / INTERVAL) * 100)]++;
	}
	for (unsigned i = 0; i < 100; i++)
		chi_square += pow(counts[i] - DRAWS / 100.0, 2) / (DRAWS / 100.0);
	cr_assert(chi_square > 99 - 4 * sqrt(198) && chi_square < 99 + 4 * sqrt(198), "%f", chi_square);
}

/* The logarithm is good to 30 bits: the least and the largest of many draws are what the least random numbers give. */
Test(memory_sampling, logarithm_as_libm_has_it)
{
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t seed = i * UINT64_C(0x123456789abcdef), at = seed, z = seed + UINT64_C(0x9e3779b97f4a7c15);
		double drawn = (double)memory_sampling_draw(&at, UINT64_C(1) << 40), expected;

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		z ^= z >> 31;
		expected = -logl(ldexpl((long double)(z | 1), -64)) * ldexp(1, 40);
		cr_assert(fabs(drawn - expected) < 1100 + expected * 1e-9, "%u: %f and %f", i, drawn, expected);
	}
}

Test(memory_sampling, sizes_are_taken_with_their_probability)
{
	static const size_t sizes[] = {50, 1000, 100000, 524288, 2000000, 10000000};

	config.memory_interval = (uint64_t)INTERVAL;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double p = -expm1(-(double)sizes[i] / INTERVAL), times = 400 / p, taken = 0, expected;

		times = floor(times < 10000 ? 10000 : times);
		for (double n = 0; n < times; n++)
			taken += memory_sampling_takes(sizes[i]);
		expected = times * p; /* six sigma: the seeds are those of the clock */
		cr_assert(fabs(taken - expected) <= 6 * sqrt(expected * (1 - p)) + 1e-3, "%zu bytes: %f of %f",
			  sizes[i], taken, expected);
	}
	cr_assert(!memory_sampling_takes(0));
	cr_assert(memory_sampling_takes(SIZE_MAX));
}

static const void *address(uint64_t i)
{
	return (const void *)(uintptr_t)((i * UINT64_C(0x9e3779b97f4a7c15) >> 17 & ~UINT64_C(15)) | 16);
}

Test(memory_sampling, addresses_are_found_once)
{
	for (unsigned i = 0; i < 50000; i++)
		cr_assert(memory_sampling_add(address(i)), "%u", i);
	for (unsigned i = 50000; i < 100000; i++)
		cr_assert(!memory_sampling_remove(address(i)), "%u", i);
	for (unsigned i = 0; i < 50000; i++) {
		cr_assert(memory_sampling_remove(address(i)), "%u", i);
		cr_assert(!memory_sampling_remove(address(i)), "%u", i);
	}
	for (unsigned i = 0; i < MEMORY_SAMPLING_CLASSES; i++)
		cr_assert_eq(memory_sampling_filter[i], 0);
}

/* All of one class: it is full before its count would run over, and each address that got in is found again. */
Test(memory_sampling, a_full_class_takes_no_more)
{
	unsigned in = 0;

	for (uint64_t i = 1; i <= 300; i++)
		in += memory_sampling_add((const void *)(uintptr_t)(i << 32));
	cr_assert(in >= 16 && in <= 250, "%u", in);
	for (uint64_t i = 1; i <= 300; i++)
		in -= memory_sampling_remove((const void *)(uintptr_t)(i << 32));
	cr_assert_eq(in, 0);
}

Test(memory_sampling, a_realloc_that_failed_keeps_the_old_block)
{
	const void *old = address(1), *made = address(2);
	unsigned parts;

	config.memory_interval = UINT64_C(1) << 40;
	thread_self.sampling_begun = true;
	thread_self.sampling_left = UINT64_C(1) << 40;
	cr_assert(memory_sampling_add(old));
	parts = memory_sampling_realloc_begin(old, 100);
	cr_assert_eq(parts, MEMORY_SAMPLING_OLD);
	cr_assert_eq(memory_sampling_realloc_end(parts, old, NULL), MEMORY_SAMPLING_OLD);
	parts = memory_sampling_realloc_begin(old, SIZE_MAX);
	cr_assert_eq(parts, MEMORY_SAMPLING_OLD | MEMORY_SAMPLING_NEW);
	cr_assert_eq(memory_sampling_realloc_end(parts, old, made), MEMORY_SAMPLING_OLD | MEMORY_SAMPLING_NEW);
	cr_assert(!memory_sampling_remove(old));
	cr_assert(memory_sampling_remove(made));
}
