/*
 * test_live.c - what is alive at the end and at the peak, by function: as tracemalloc has it in another run of the same
 * program, and as go tool pprof reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void keep(const struct outcome *outcome, const char *name, const struct outcome *printed)
{
	expect(printed, printed->status == 0, "%s is made", name);
	file_write(text("%s/%s", outcome->directory, name), printed->out, printed->out_bytes);
}

static long long first_pid(const struct outcome *outcome)
{
	json_t *info = expect_trace(outcome, 2);
	long long pid =
	    json_integer_value(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "pid"));

	json_decref(info);
	return pid;
}

/* Blocks of two threads, of which the first frees some of the other's, and of a forked child. */
SCENARIO(live, as_tracemalloc_has_it, SUPPORTED)
{
	struct outcome *oracle = run(.python = python, .how = JOB_BARE, .args = {"@held.py", "tracemalloc"});
	struct outcome *outcome = run(.python = python, .args = {"@held.py"}), *judged;

	keep(outcome, "oracle.json", oracle);
	keep(outcome, "live.txt", tool("export", "-f", "folded", "--weight", "live", outcome->trace, "-o", "-"));
	keep(outcome, "peak.txt", tool("export", "-f", "folded", "--weight", "peak", outcome->trace, "-o", "-"));
	judged = run(.python = python_any(), .how = JOB_BARE,
		     .args = {"@judge_live.py", outcome->directory, text("%lld", first_pid(outcome))});
	expect(judged, judged->status == 0 && atoi(judged->out) == 10,
	       "five sums at the peak, four at the end, one of the child");
}

/* One line says that blocks may look alive that are not. */
SCENARIO(live, after_losses, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@flood.py"},
				      .env = {"EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K"}),
		       *told;

	(void)python;
	told = tool("export", "-f", "folded", "--weight", "live", outcome->trace, "-o", "-");
	expect(told, told->status == 0 && strstr(told->err, "freed by one of them counts as alive"),
	       "the line is there");
	expect(told, strchr(told->err, '\n') == strrchr(told->err, '\n'), "and no other");
}
