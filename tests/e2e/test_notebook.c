/*
 * test_notebook.c - %%evprof in notebooks: programs/notebook_cells.py executes one by nbclient, in a kernel with and
 * without the preload, and compares what the cells show with what they counted. The page of a cell is opened in
 * Chromium.
 */
#include <string.h>

#include "browser.h"
#include "harness.h"
#include "packages.h"

/*
 * Executes the notebook; the output of a cell is in cell.html. HOME is the working directory, as a kernel writes to
 * it; what leads into the root of an interpreter would look for the packages there.
 */
static struct outcome *execute(const struct python *python, enum job_how how)
{
	struct outcome *outcome;

	if (built_with_asan())
		cr_skip_test("Python cannot load a library with the address sanitizer in it");
	python_needs(python, "ctypes");
	package_variable(python, "nbclient, nbformat, ipykernel");
	outcome = run(.python = python, .how = how, .args = {"@notebook_cells.py", "cell.html"},
		      .env = {text("PYTHONPATH=%s:%s", program_path("../../../tools/python"), package_path(python)),
			      text("TEST_PACKAGES=%s", package_folders()), "PYTHONDONTWRITEBYTECODE=1", "HOME=.",
			      "TMPDIR=/tmp"},
		      .timeout_s = 250);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "as counted\n"),
	       "the cells show what they counted");
	return outcome;
}

#define PAGE "document.querySelector('iframe').contentWindow"

static double calls_of(struct browser *browser, const char *function)
{
	return browser_number(browser,
			      "[..." PAGE ".Array(" PAGE ".evprof.functions.count).keys()].filter((f) => " PAGE
			      ".evprof.functionName(f).endsWith('%s')).reduce((sum, f) => sum + " PAGE
			      ".evprof.functions.calls[f], 0)",
			      function);
}

/* In the cell, the page works: it has the counts of the cell, a timeline, a flame graph and a table. */
static void expect_page(const struct outcome *outcome)
{
	struct browser *browser = browser_open(outcome->directory);

	browser_load(browser, text("%s/cell.html", outcome->directory));
	cr_assert(browser_number(browser, "document.querySelector('iframe').clientHeight") == 600,
		  "as high as asked for");
	cr_assert(
	    strstr(json_string_value(browser_ask(browser, "document.querySelector('pre').textContent")), "(work)"),
	    "the table of the cell");
	browser_number(browser, "evprof.ready");
	cr_expect(calls_of(browser, "work") == 23, "%g calls of work()", calls_of(browser, "work"));
	cr_expect(calls_of(browser, "<lambda>") == 203, "%g calls of its key", calls_of(browser, "<lambda>"));
	cr_expect(browser_number(browser, PAGE ".evprof.meta.threads.length") == 3, "the cell's thread, and two of it");
	cr_expect(browser_number(browser, PAGE ".document.querySelectorAll('canvas').length") > 0, "the timeline");
	browser_ask(browser, PAGE ".document.getElementById('tab_table').click(), " PAGE ".evprof.drawNow(), 1");
	cr_expect(browser_number(browser, PAGE ".document.querySelectorAll('#rows tr').length") > 3, "the table");
	browser_expect_quiet(browser);
	browser_close(browser);
}

SCENARIO(notebook, without_preload, SUPPORTED)
{
	expect_page(execute(python, JOB_BARE));
}

SCENARIO_SOME(notebook, preloaded, SUPPORTED)
{
	expect_page(execute(python, JOB_PRELOAD));
}
