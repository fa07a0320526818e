/*
 * test_ship.c - evprof ship: each finished trace of a daemon's folder arrives once, through failures, restarts and
 * redaction; what is removed before is counted (programs/drive_ship.py). The same to a store of S3
 * (programs/drive_store.py).
 */
#include <string.h>

#include "harness.h"
#include "packages.h"

SCENARIO_SOME(ship, arrives_once, SUPPORTED)
{
	struct outcome *verdict =
	    run(.python = python, .how = JOB_BARE, .timeout_s = 400, .args = {"@drive_ship.py", "%B"});

	expect(verdict, verdict->status == 0 && strcmp(verdict->out, "shipped\n") == 0, "the traces arrive");
}

/* With one version: the store knows nothing of Python. */
SCENARIO_ANY_OF(ship, a_store_has_it_once, 11, 11, true)
{
	struct outcome *verdict = run(.python = python, .how = JOB_BARE, .timeout_s = 400,
				      .args = {"@drive_store.py", "%B"}, .env = {store_variable(python)});

	if (strncmp(verdict->out, "libcurl:", 8) == 0)
		cr_skip_test("libcurl is not installed, or signs nothing for a store");
	expect(verdict, verdict->status == 0 && strcmp(verdict->out, "stored\n") == 0, "the traces are in the store");
}

SCENARIO(ship, refuses, SCENARIO_ONCE)
{
	static const struct {
		const char *words[6], *line;
	} refused[] = {
	    {{"ship", "."}, "FOLDER COMMAND is missing"},
	    {{"ship", "-e", "(", ".", "true"}, "cannot be used"},
	    {{"ship", ".", "s3://bucket/x", "true"}, "a store is one word"},
	    {{"ship", ".", "s3://b"}, "a store is s3://BUCKET or s3://BUCKET/PREFIX"},
	    {{"ship", "--once", "/nowhere", "true"}, "cannot read /nowhere: No such file or directory"},
	};

	(void)python;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct outcome *outcome = tool_run(refused[i].words);

		expect(outcome, outcome->status == 2 && strstr(outcome->err, refused[i].line), "refusal %zu", i);
	}
}
