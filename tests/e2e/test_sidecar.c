/*
 * test_sidecar.c - the sidecar of tools/packaging/container: the containers of kubernetes.yaml, each in mount and pid
 * namespaces of its own, with the shared folder, the entry point and the variables that the files name.
 *
 * programs/pod.py mounts what a pod would have. test_packages.c builds the image, and runs it.
 */
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* The folder with the packages that read YAML, and Python's path next to it (pip.sh). */
static char *yaml_packages(void)
{
	struct outcome *outcome = run(.how = JOB_BARE, .timeout_s = 300,
				      .args = {"sh", program_path("../../../tools/packaging/ci/validate.sh")});

	if (strstr(outcome->err, "could not be fetched") || strstr(outcome->err, "no Python here can make"))
		cr_skip_test("what reads YAML is not here: %s", outcome->err);
	expect(outcome, outcome->status == 0, "the packages are there");
	return text("%.*s", (int)strcspn(outcome->out, "\n"), outcome->out);
}

SCENARIO_SOME(sidecar, records_the_other_container, SUPPORTED)
{
	static const char *const sidecar = "../../../tools/packaging/container";
	char *packages, *work;
	struct outcome *outcome;
	json_t *report;

	if (python->chrooted)
		cr_skip_test("its root has no mounts of the pod");
	if (built_with_asan())
		cr_skip_test("the sanitizer's library has to be loaded before");
	if (run(.how = JOB_BARE, .args = {"unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"})->status)
		cr_skip_test("unshare is not allowed here");
	packages = yaml_packages();
	work = run(.how = JOB_BARE, .args = {"true"})->directory;
	outcome = run(.how = JOB_BARE, .timeout_s = 120, .env = {text("PYTHONPATH=%s", packages)},
		      .args = {"unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc",
			       text("%s/../../pip/bin/python", packages), "@pod.py", program_path(sidecar), "%B",
			       python->command[0], work, "@in_pod.py"});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "status 0\ncollector 0\n"), "both end well: %s",
	       outcome->out);
	expect(outcome, strstr(outcome->out, "pid 1 shared ['collector.sock', 'libevprof.so']\n"),
	       "the program is the first in its container, and sees what is shared: %s", outcome->out);
	outcome_find_traces(outcome, text("%s/volumes/traces", work));
	expect(outcome, outcome->traces == 1, "one trace, not %u", outcome->traces);
	json_decref(expect_trace(outcome, 2));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "in_pod.py", "leaf") == 2000, "%ld calls of leaf",
	       report_calls(report, "in_pod.py", "leaf"));
	json_decref(report);
}
