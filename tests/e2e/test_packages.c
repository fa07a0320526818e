/*
 * test_packages.c - packages of distributions: they build, and tools/packaging/try_packages.sh installs them into a
 * bare root and uses them there.
 *
 * They compile everything anew, so make test leaves them out: EVPROF_TEST_ALL=1 (make check-all) has them.
 */
#include <string.h>

#include "harness.h"

static struct outcome *script(const char *name, const char *kind, const char *folder)
{
	return run(.how = JOB_BARE, .timeout_s = 1500,
		   .args = {"sh", program_path(text("../../../tools/packaging/%s", name)), kind, folder});
}

static void skip_without(const struct outcome *outcome)
{
	static const char *const reasons[] = {": missing: ", "wants root", "could not be fetched"};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (outcome->status != 0 && strstr(outcome->err, reasons[i]))
			cr_skip_test("%s", outcome->err);
}

static const char *const promises[] = {
    "installing",
    "evprof run",
    "native stacks",
    "the Python package",
    "the collector's user",
    "the units",
    "the daemon",
    "man pages and completion",
    "removing",
};

static struct outcome *expect_packages(const char *kind)
{
	struct outcome *outcome;

	if (!test_all())
		cr_skip_test("packages take minutes to build; EVPROF_TEST_ALL=1 builds them");
#ifdef EVPROF_INSTRUMENTED
	cr_skip_test("packages have no sanitizers");
#endif
	outcome = script("build_packages.sh", kind, ".");
	skip_without(outcome);
	expect(outcome, outcome->status == 0, "the packages build: %s", outcome->err);
	outcome = script("try_packages.sh", kind, outcome->directory);
	skip_without(outcome);
	expect(outcome, outcome->status == 0 && !strstr(outcome->out, "fails"), "they work: %s", outcome->out);
	for (size_t i = 0; i < sizeof(promises) / sizeof(*promises); i++)
		expect(outcome, strstr(outcome->out, text("works: %s\n", promises[i])), "%s was done: %s", promises[i],
		       outcome->out);
	return outcome;
}

SCENARIO(packages, deb, SCENARIO_ONCE)
{
	struct outcome *outcome = expect_packages("deb");

	(void)python;
	expect(outcome, strstr(outcome->out, "works: the socket\n"), "the socket is enabled: %s", outcome->out);
}

SCENARIO(packages, rpm, SCENARIO_ONCE)
{
	(void)python;
	expect_packages("rpm");
}
