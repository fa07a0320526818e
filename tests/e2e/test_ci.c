/*
 * test_ci.c - the action and the template of tools/packaging/ci: their files against the schemas of the forges, and
 * their steps in a real shell, on two branches of a repository, with a wheel of this build.
 *
 * programs/ci_forge.py stands in for the forges' interface of comments, and for nothing else.
 */
#include <string.h>

#include "harness.h"

/* What is fetched for these tests is not here. */
static void skip_without(const struct outcome *outcome)
{
	if (strstr(outcome->err, "could not be fetched") || strstr(outcome->err, "no Python here can make"))
		cr_skip_test("packages for the test are not here: %s", outcome->err);
}

/* The first line of what a script printed. */
static char *first_line(const struct outcome *outcome)
{
	return text("%.*s", (int)strcspn(outcome->out, "\n"), outcome->out);
}

/* The folder with the packages that read YAML. */
static char *validate(void)
{
	struct outcome *outcome = run(.how = JOB_BARE, .timeout_s = 300,
				      .args = {"sh", program_path("../../../tools/packaging/ci/validate.sh")});

	skip_without(outcome);
	expect(outcome, outcome->status == 0 && *outcome->out == '/', "the files are what the schemas want");
	return first_line(outcome);
}

static char *make_wheel(void)
{
	struct outcome *outcome =
	    run(.how = JOB_BARE, .timeout_s = 300,
		.args = {"sh", program_path("../../../tools/packaging/wheel.sh"), "--of", "%B", "."});

	skip_without(outcome);
	expect(outcome, outcome->status == 0, "a wheel is packed");
	return first_line(outcome);
}

static void expect_comparison(const char *forge)
{
	static const char *const promises[] = {"a regression fails",
					       "the comment has the table",
					       "no regression passes",
					       "the comment is replaced",
					       "a limit fails",
					       "another title has another comment",
					       "a command that fails is an error",
					       "a missing quote is an error",
					       "no right to comment is no failure"};
	const struct python *any = python_any();
	struct outcome *outcome;
	char *packages;

#ifdef EVPROF_INSTRUMENTED
	cr_skip_test("a wheel has no sanitizers");
#endif
	packages = validate();
	/* pip.sh's Python, which the packages are for. */
	outcome = run(.how = JOB_BARE, .timeout_s = 300, .env = {text("PYTHONPATH=%s", packages)},
		      .args = {text("%s/../../pip/bin/python", packages), "@ci_forge.py", forge,
			       program_path("../../../tools/packaging/ci"), make_wheel(), any->command[0]});
	if (strstr(outcome->out, "No module named pip"))
		cr_skip_test("%s has no pip", any->name);
	expect(outcome, outcome->status == 0, "the job does what it should: %s", outcome->out);
	for (size_t i = 0; i < sizeof(promises) / sizeof(*promises); i++)
		expect(outcome, strstr(outcome->out, text("works: %s\n", promises[i])), "%s was done: %s", promises[i],
		       outcome->out);
}

SCENARIO(ci, github_action, SCENARIO_ONCE)
{
	(void)python;
	expect_comparison("github");
}

SCENARIO(ci, gitlab_template, SCENARIO_ONCE)
{
	(void)python;
	expect_comparison("gitlab");
}
