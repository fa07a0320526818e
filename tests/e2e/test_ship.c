/*
 * test_ship.c - evprof ship: each finished trace of a daemon's folder arrives once, through failures, restarts and
 * redaction; what is removed before is counted (programs/drive_ship.py).
 */
#include <string.h>

#include "harness.h"

SCENARIO_SOME(ship, arrives_once, SUPPORTED)
{
	struct outcome *verdict =
	    run(.python = python, .how = JOB_BARE, .timeout_s = 400, .args = {"@drive_ship.py", "%B"});

	expect(verdict, verdict->status == 0 && strcmp(verdict->out, "shipped\n") == 0, "the traces arrive");
}

SCENARIO(ship, refuses, SCENARIO_ONCE)
{
	static const struct {
		const char *words[6], *line;
	} refused[] = {
	    {{"ship", "."}, "FOLDER COMMAND is missing"},
	    {{"ship", "-e", "(", ".", "true"}, "cannot be used"},
	    {{"ship", "--once", "/nowhere", "true"}, "cannot read /nowhere: No such file or directory"},
	};

	(void)python;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct outcome *outcome = tool_run(refused[i].words);

		expect(outcome, outcome->status == 2 && strstr(outcome->err, refused[i].line), "refusal %zu", i);
	}
}
