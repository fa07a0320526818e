/*
 * test_peaks.c - the peak of programs with native allocations against memray's, in two runs of the same program.
 *
 * Both count what main() of a program allocates, imports included: evprof between two marks, memray while its tracker
 * is there. Some differences have reasons, which docs/memory.md names. Needs the packages of pins/3.N-peaks.txt, which
 * are fetched with EVPROF_TEST_ALL=1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocations.h"
#include "harness.h"
#include "packages.h"

#define PERCENT 1.0

struct program {
	const char *file, *scale, *scale_all;
	int minor;  /* of the interpreter whose packages it needs */
	bool small; /* runs without EVPROF_TEST_ALL, too */
};

static const struct program programs[] = {
    {"peaks/json_text.py", "10", "500", 13, true},  {"peaks/arrays.py", "20", "40", 13, true}, /* numpy 2 */
    {"peaks/arrays.py", "20", "40", 12, false},						       /* numpy 1.26 */
    {"peaks/frames.py", "200", "300", 13, false},   {"peaks/learning.py", "10", "20", 13, false},
    {"peaks/documents.py", "50", "100", 13, false}, {"peaks/images.py", "20", "30", 13, false},
    {"peaks/database.py", "10", "20", 13, false},
};

/* One thread in the libraries that would start as many as there are processors. */
#define ENVIRONMENT(packages)                                                                                          \
	{                                                                                                              \
		"EVPROF_EVENTS=mem,malloc", packages, "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"                    \
	}

static double peak_of_memray(const struct python *python, const char *program, const char *scale, const char *packages)
{
	struct outcome *outcome =
	    run(.python = python, .how = JOB_BARE, .timeout_s = 900, .env = ENVIRONMENT(packages),
		.args = {"@peaks/measure.py", "memray", program_path(program), scale, "memray.bin"});

	expect(outcome, outcome->status == 0 && atof(outcome->out) > 0, "memray measures %s", program);
	unlink(text("%s/memray.bin", outcome->directory));
	return atof(outcome->out);
}

static double peak_of_evprof(const struct python *python, const char *program, const char *scale, const char *packages)
{
	struct outcome *outcome = run(.python = python, .timeout_s = 900, .env = ENVIRONMENT(packages),
				      .args = {"@peaks/measure.py", "evprof", program_path(program), scale});
	struct outcome *result = tool("memory", "--json", "--limit", "0", "--between", "begin,end", outcome->trace);
	json_t *root = json_loads(result->out, 0, NULL);
	double peak =
	    json_number_value(json_object_get(json_array_get(json_object_get(root, "processes"), 0), "peak_bytes"));

	expect(outcome, outcome->status == 0, "%s runs", program);
	json_decref(expect_trace(outcome, 0));
	json_decref(root);
	return peak;
}

static void expect_peak(const struct python *python, const struct program *program)
{
	const char *scale = test_all() ? program->scale_all : program->scale;
	const char *packages = text("PYTHONPATH=%s-peaks", package_folder(python));
	double theirs = peak_of_memray(python, program->file, scale, packages);
	double ours = peak_of_evprof(python, program->file, scale, packages);

	cr_log_info("%s: %.0f bytes, memray has %.0f", program->file, ours, theirs);
	cr_assert(ours > theirs * (1 - PERCENT / 100) && ours < theirs * (1 + PERCENT / 100),
		  "%s: a peak of %.0f bytes, memray has %.0f", program->file, ours, theirs);
}

SCENARIO(peaks, as_memray_has_them, 12)
{
	needs_own_malloc();
	if (run(.python = python, .how = JOB_BARE, .args = {"-c", "import memray"},
		.env = {text("PYTHONPATH=%s-peaks", package_folder(python))})
		->status)
		cr_skip_test("%s has no memray", python->name);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (programs[i].minor == python->minor && (programs[i].small || test_all()))
			expect_peak(python, &programs[i]);
}
