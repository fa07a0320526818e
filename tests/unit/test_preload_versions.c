/* test_preload_versions.c - what is known of each version of Python, and of those that do not exist yet. */
#include <criterion/criterion.h>

#include "evprof/sampling.h"
#include "preload/python/python.h"

#define NEWEST PYTHON_NEWEST_MINOR /* has a row; one more is not known */

static void set_version(int minor)
{
	python = (struct python){0};
	python_choose_version(minor);
}

Test(versions, each_has_one_hook)
{
	for (int minor = 6; minor <= NEWEST; minor++) {
		set_version(minor);
		cr_expect_eq(python.monitoring, minor >= 12, "3.%d", minor);
		cr_expect_eq(python.inner_frames, minor == 11, "3.%d", minor);
		cr_expect_eq(python_has(PYTHON_OWN_FRAMES), minor >= 11, "3.%d", minor);
	}
}

Test(versions, each_has_the_fields_that_its_hook_reads)
{
	for (int minor = 6; minor <= NEWEST; minor++) {
		set_version(minor);
		cr_expect(python.layout.chain_back && python.layout.state_profile, "3.%d", minor);
		cr_expect_eq(python.layout.chain_code != 0, minor <= 11, "3.%d", minor);
		cr_expect_eq(python.layout.code_bytes && python.layout.frame_last && python.layout.last_unit,
			     minor <= 10, "3.%d", minor);
		cr_expect(python.layout.locals, "3.%d", minor);
		cr_expect_eq(python.layout.state_bytes != 0, minor <= 11, "3.%d", minor);
		cr_expect_eq(python.layout.yields[0] && python.layout.yields[1], minor >= 12, "3.%d", minor);
		cr_expect_eq(python.layout.frame_owner != 0, minor >= 11, "3.%d", minor);
		cr_expect_eq(python_has(PYTHON_SPLITS_SUPERINSTRUCTIONS), minor == 12, "3.%d", minor);
		cr_expect_eq(python.lines,
			     minor < 10	   ? SAMPLING_LINES_LNOTAB
			     : minor == 10 ? SAMPLING_LINES_RANGES
					   : SAMPLING_LINES_PLACES,
			     "3.%d", minor);
	}
}

Test(versions, a_newer_one_does_what_the_newest_known_does_and_nothing_is_read_of_it)
{
	set_version(NEWEST);
	cr_expect(python_has(PYTHON_UNWINDS_PAST));
	set_version(NEWEST + 1);
	cr_expect(python.monitoring && python_has(PYTHON_OWN_FRAMES) && python_has(PYTHON_UNWINDS_PAST));
	cr_expect_not(python_has(PYTHON_EVENT_BLOCKS) || python_has(PYTHON_KNOWN_WITHOUT_GIL));
	cr_expect_not(python.layout.chain_back || python.layout.state_profile || python.layout.yields[0]);
}
