/*
 * test_docs.c - every command of README.md and of the tutorials is run, and prints what the document says but for the
 * numbers; so do the examples of the man pages, which only have to end well (run_docs.py).
 */
#include <string.h>

#include "harness.h"

static void expect_document(const char *name)
{
	const struct python *any = python_any();
	struct outcome *outcome;

#ifdef EVPROF_INSTRUMENTED
	cr_skip_test("a Python without sanitizers cannot load the library");
#endif
	if (any->command[1])
		cr_skip_test("%s has no path of its own", any->name);
	python_needs(any, "ctypes");
	python_needs(any, "sqlite3");
	outcome =
	    run(.how = JOB_BARE, .timeout_s = 200,
		.args = {"python3", "@../run_docs.py", "%B", any->command[0], program_path(text("../../../%s", name))});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, " 0 differ"), "%s is true:\n%s", name,
	       outcome->out);
}

#define DOCUMENT(Name, Path)                                                                                           \
	SCENARIO(docs, Name, SCENARIO_ONCE)                                                                            \
	{                                                                                                              \
		(void)python;                                                                                          \
		expect_document(Path);                                                                                 \
	}

DOCUMENT(readme, "README.md")
DOCUMENT(slow_endpoint, "docs/tutorials/slow-endpoint.md")
DOCUMENT(leak, "docs/tutorials/leak.md")
DOCUMENT(service, "docs/tutorials/service.md")
DOCUMENT(ci_limit, "docs/tutorials/ci-limit.md")
DOCUMENT(one_block, "docs/tutorials/one-block.md")
DOCUMENT(memory, "docs/memory.md")
DOCUMENT(formats, "docs/formats.md")
DOCUMENT(the_tool, "docs/man/evprof.1")
DOCUMENT(the_variables, "docs/man/evprof.7")
