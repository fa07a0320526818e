/*
 * test_wheel.c - the wheels: tools/packaging/trial.sh installs one into a new environment and uses it as somebody does
 * who has nothing else.
 *
 * Three wheels are tried: one of what this build has made, that of `make wheel` with each Python, which is in dist/ if
 * it was made, and that which pip builds of the sdist. The last two take minutes, so only EVPROF_TEST_ALL=1
 * (make check-all) makes them.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness.h"

static const char *const promises[] = {"pip install",
				       "evprof run app.py",
				       "python -m evprof run app.py",
				       "evprof run -m app",
				       "evprof run -c",
				       "an environment that is not activated",
				       "import evprof",
				       "export",
				       "native stacks, with names",
				       "tree, check, diff, memory, annotate, completion",
				       "evprof.profile()",
				       "attach, status, top, snapshot, detach",
				       "the daemon"};

static void expect_trial(const struct python *python, const char *wheel)
{
	struct outcome *outcome;

	if (geteuid() ==
	    0) /* verbs ask all collectors of the user, and those of other tests may be of another version */
		network_apart();
	outcome = run(.how = JOB_BARE, .timeout_s = 300,
		      .args = {"sh", program_path("../../../tools/packaging/trial.sh"), wheel, python->command[0]});
	if (strstr(outcome->out, "fails: a virtual environment"))
		cr_skip_test("%s makes no virtual environments", python->name);
	expect(outcome, outcome->status == 0 && !strstr(outcome->out, "fails"), "%s", outcome->out);
	for (size_t i = 0; i < sizeof(promises) / sizeof(*promises); i++)
		expect(outcome, strstr(outcome->out, text("works: %s\n", promises[i])), "%s was tried: %s", promises[i],
		       outcome->out);
}

static const struct python *usable(void)
{
#ifdef EVPROF_INSTRUMENTED
	cr_skip_test("a wheel has no sanitizers");
#endif
	return python_any();
}

SCENARIO(wheel, of_this_build, SCENARIO_ONCE)
{
	const struct python *any = usable();
	struct outcome *made =
	    run(.how = JOB_BARE, .timeout_s = 300,
		.args = {"sh", program_path("../../../tools/packaging/wheel.sh"), "--of", "%B", "."});
	char *wheel;

	(void)python;
	if (strstr(made->err, "could not be fetched") || strstr(made->err, "no Python here can make"))
		cr_skip_test("what packs a wheel is not here: %s", made->err);
	expect(made, made->status == 0, "a wheel is packed: %s", made->err);
	wheel = strdup(made->out);
	wheel[strcspn(wheel, "\n")] = 0;
	expect_trial(any, wheel);
	free(wheel);
}

/* Makes it anew, one scenario after the other, and copies it here. The path, or NULL: there is none. */
static const char *manylinux_wheel(void)
{
	static const char script[] = "{ [ -z \"$MAKES\" ] || sh \"$1/tools/packaging/wheel.sh\" \"$2\" >&2; } && "
				     "cp \"$1\"/dist/evprof-*manylinux*_\"$2\".whl .";
	struct utsname machine;
	struct outcome *made;
	glob_t found;

	uname(&machine);
	made = run(.how = JOB_BARE, .timeout_s = 1500, .env = {text("MAKES=%s", test_all() ? "1" : "")},
		   .args = {"flock", build_path("wheel.lock"), "sh", "-c", script, "sh", program_path("../../.."),
			    machine.machine});
	if (test_all() && !strstr(made->err, "could not be fetched") && !strstr(made->err, "no Python here can make"))
		expect(made, made->status == 0, "a wheel is made: %s", made->err);
	if (glob(text("%s/evprof-*.whl", made->directory), 0, NULL, &found))
		return NULL;
	return found.gl_pathv[0];
}

/* A test of evprof-symbols, with the wheel's: its elfutils and what that reads with are others than this machine's. */
static void expect_compressed_names(const char *wheel)
{
	static const char script[] = "python3 -m zipfile -e \"$1\" wheel && cp wheel/evprof/_bin/evprof-symbols . && "
				     "chmod 755 evprof-symbols && "
				     "cp \"$BUILD/tests/unit/test_symbols\" . && "
				     "./test_symbols --filter '*names_that_xz*'";
	struct outcome *outcome;

	if (access(build_path("tests/unit/test_symbols"), X_OK) != 0)
		return;
	outcome = run(.how = JOB_BARE, .timeout_s = 200, .env = {text("BUILD=%s", build_path("."))},
		      .args = {"sh", "-c", script, "sh", wheel});
	expect(outcome, outcome->status == 0 && strstr(outcome->err, "Passing: 1"),
	       "evprof-symbols reads .gnu_debugdata: %s", outcome->err);
}

SCENARIO_SOME(wheel, of_dist, SUPPORTED)
{
	const char *wheel;

	usable();
	if (python->chrooted)
		cr_skip_test("%s has no pip in its root", python->name);
	wheel = manylinux_wheel();
	if (!wheel)
		cr_skip_test("no manylinux wheel in dist/; make wheel builds one");
	expect_trial(python, wheel);
	expect_compressed_names(wheel);
}

SCENARIO(wheel, of_the_sdist, SCENARIO_ONCE)
{
	static const char script[] = "sh \"$1/tools/packaging/sdist.sh\" >&2 && "
				     "sh \"$1/tools/packaging/sdist.sh\" --build \"$1\"/dist/evprof-*.tar.gz \"$PWD\"";
	const struct python *any = usable();
	struct outcome *made;

	(void)python;
	if (!test_all())
		cr_skip_test("EVPROF_TEST_ALL=1 builds the sdist");
	made = run(.how = JOB_BARE, .timeout_s = 900, .args = {"sh", "-c", script, "sh", program_path("../../..")});
	if (strstr(made->err, "could not be fetched") || strstr(made->err, "no Python here can make"))
		cr_skip_test("what packs a wheel is not here: %s", made->err);
	expect(made, made->status == 0, "pip builds the sdist: %s", made->err);
	expect_trial(any, text("%.*s", (int)strcspn(made->out, "\n"), made->out));
}
