/* test_tools_memory_estimate.c - what sampled allocations stand for, against libm. */
#include <criterion/criterion.h>
#include <math.h>

#include "tools/analysis/memory_estimate.h"

Test(memory_estimate, is_the_inverse_of_the_probability)
{
	static const uint64_t intervals[] = {1, 1000, 524288, UINT64_C(1) << 40};

	for (unsigned i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++)
		for (double size = 1; size < 4e12; size *= 1.7) {
			uint64_t bytes = (uint64_t)size;
			double p = -expm1(-(double)bytes / (double)intervals[i]);

			cr_assert(fabs((double)estimate_blocks(intervals[i], bytes) - 1024 / p) <= 0.5 + 1e-9 / p, "%f",
				  size);
			cr_assert(fabs((double)estimate_bytes(intervals[i], bytes) - (double)bytes / p) <=
				      0.5 + 1e-12 * (double)bytes / p,
				  "%f", size);
		}
}

Test(memory_estimate, is_exact_without_sampling)
{
	cr_assert_eq(estimate_whole(estimate_blocks(0, 7)), 1);
	cr_assert_eq(estimate_whole(3 * estimate_blocks(0, 0)), 3);
	cr_assert_eq(estimate_bytes(0, 12345), 12345);
	cr_assert_eq(estimate_bytes(1000, 0), 0);
	cr_assert_eq(estimate_blocks(1000, 0), 0);
	cr_assert_eq(estimate_bytes(1000, 1000000), 1000000);
}
