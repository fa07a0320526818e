/*
 * test_packages.c - packages of distributions: they build, and tools/packaging/try_packages.sh installs them into a
 * bare root and uses them there. The sidecar's image is built, and records (tools/packaging/try_image.sh).
 *
 * They compile everything anew, so make test leaves them out: EVPROF_TEST_ALL=1 (make check-all) has them.
 */
#include <glob.h>
#include <string.h>
#include <sys/utsname.h>

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

/* With the wheel of `make wheel`, which has what a bare image lacks. */
SCENARIO(packages, image, SCENARIO_ONCE)
{
	static const char *const steps[] = {"the image is built", "the sidecar has a socket", "the program runs",
					    "the trace, read by evprof in the image"};
	struct outcome *outcome;
	struct utsname machine;
	glob_t found;

	(void)python;
	if (!test_all())
		cr_skip_test("a root is fetched for the image; EVPROF_TEST_ALL=1 does that");
	uname(&machine);
	if (glob(text("%s/evprof-*manylinux*_%s.whl", program_path("../../../dist"), machine.machine), 0, NULL, &found))
		cr_skip_test("no wheel for %s in dist/; make wheel builds one", machine.machine);
	outcome = run(.how = JOB_BARE, .timeout_s = 1500,
		      .args = {"sh", program_path("../../../tools/packaging/try_image.sh"), found.gl_pathv[0]});
	globfree(&found);
	skip_without(outcome);
	expect(outcome, outcome->status == 0, "it works: %s", outcome->out);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		expect(outcome, strstr(outcome->out, text("works: %s\n", steps[i])), "%s: %s", steps[i], outcome->out);
}
