/*
 * test_redact.c - evprof redact: no byte that a pattern matches is left in the trace, as a reader made from
 * docs/trace.md alone unpacks it, and all else is as before (table/redacted.py).
 */
#include <string.h>

#include "harness.h"
#include "packages.h"

#define SECRET "alice7"

static struct outcome *record_secrets(const struct python *python)
{
	if (built_with_asan())
		cr_skip_test("Python cannot load a library with the address sanitizer in it");
	python_needs(python, "ctypes");
	return run(.python = python, .args = {"@secret_texts.py", SECRET},
		   .env = {text("PYTHONPATH=%s", program_path("../../../tools/python")), "EVPROF_PROGRAM_ONLY=1"});
}

SCENARIO_SOME(redact, leaves_nothing, SUPPORTED)
{
	struct outcome *outcome = record_secrets(python), *redacted, *verdict;
	char *path = text("%s/redacted.evp", outcome->directory);

	redacted = tool("redact", "-e", SECRET, outcome->trace, "-o", path);
	expect(redacted, redacted->status == 0 && !*redacted->err, "the trace is redacted");
	verdict = run(.python = python, .how = JOB_BARE, .timeout_s = 200,
		      .args = {"@../table/redacted.py", build_path("evprof"), outcome->trace, path, SECRET});
	expect(verdict, verdict->status == 0 && strstr(verdict->out, "redacted"), "nothing else has changed");
}

/* Words of the command line; in place; and what does not fit. */
SCENARIO(redact, command_lines, SCENARIO_ONCE)
{
	struct outcome *outcome = record_secrets(python_any()), *redacted;
	char *info;

	(void)python;
	redacted = tool("redact", "--argv", "--in-place", outcome->trace);
	expect(redacted, redacted->status == 0, "the trace is redacted");
	info = tool("info", "--json", outcome->trace)->out;
	expect(redacted, strstr(info, "\"*\"") && !strstr(info, "\"" SECRET "\""), "no argument is left: %s", info);
	redacted = tool("redact", outcome->trace, "-o", "x.evp");
	expect(redacted, redacted->status == 2 && strstr(redacted->err, "--pattern EXPRESSION or --argv is missing"),
	       "nothing to redact");
	redacted = tool("redact", "-e", "(", outcome->trace, "-o", "x.evp");
	expect(redacted, redacted->status == 2 && strstr(redacted->err, "cannot be used"), "a wrong expression");
	redacted = tool("redact", "-e", "x", outcome->trace);
	expect(redacted, redacted->status == 2 && strstr(redacted->err, "-o FILE or --in-place is missing"), "no file");
}
