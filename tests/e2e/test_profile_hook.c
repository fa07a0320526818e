/*
 * test_profile_hook.c - whatever a program does with sys.setprofile, sys.settrace and cProfile, it gets the events that
 * it gets bare, each end has its call, and no call is lost.
 *
 * Each scenario runs a part of programs/profile_hook.py, bare and under evprof: the same output and exit status. The
 * program counts the calls of its leaf() itself and prints the number last: evprof has the same.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static const char *const no_memory = "EVPROF_EVENTS=call,c_call";

/* The number on the last line. */
static long last_number(const struct outcome *outcome)
{
	const char *at = outcome->out + outcome->out_bytes;

	while (at > outcome->out && (at == outcome->out + outcome->out_bytes || at[-1] != '\n'))
		at--;
	return atol(at);
}

static void expect_whole(const struct outcome *outcome)
{
	json_t *report;
	long leaves = last_number(outcome);

	expect(outcome, outcome->status == 0 && leaves > 0, "leaf was called");
	json_decref(expect_trace(outcome, 0));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "/profile_hook.py", "leaf") == leaves,
	       "leaf was called %ld times, not %ld", report_calls(report, "/profile_hook.py", "leaf"), leaves);
	expect_balanced(outcome, report);
	json_decref(report);
}

static void expect_as_bare(const struct python *python, const char *part, const char *variable)
{
	struct outcome *bare =
	    run(.python = python, .how = JOB_BARE, .args = {"@profile_hook.py", part}, .env = {variable});
	struct outcome *outcome = run(.python = python, .args = {"@profile_hook.py", part}, .env = {variable});

	expect_same(bare, outcome);
	expect_whole(outcome);
}

#define PART_RANGE(Name, Lowest, Highest)                                                                              \
	SCENARIO_RANGE(profile_hook, Name, Lowest, Highest)                                                            \
	{                                                                                                              \
		expect_as_bare(python, #Name, NULL);                                                                   \
		if (test_all())                                                                                        \
			expect_as_bare(python, #Name, no_memory);                                                      \
	}
#define PART(Name) PART_RANGE(Name, 6, 0) ALSO_CALLS_ONLY(profile_hook, Name)

PART(profile_raises)
PART(trace_raises)
PART(recurses)
PART(not_callable)
PART(at_exit)
PART(itself)
PART(within)
PART(open_calls)
PART(otherwise_called)
PART(call_tracing)
PART(in_handler)
PART(in_generators)
PART(threading_during)
PART(cprofile_among)
PART(forked)
/*
 * From 3.12 on a function's code stays prepared for a while after the last listener left: bare, the end of the call
 * that sets another one gets an event then, and under evprof it does not.
 */
PART_RANGE(in_destructor, 6, 11)

/* From 3.12 on a profiler gets the events of all threads: where they run in parallel, their order is chance. */
SCENARIO(profile_hook, cprofile_in_many, 6)
{
	if (python_is_free_threaded(python))
		expect_whole(run(.python = python, .args = {"@profile_hook.py", "cprofile_in_many"}));
	else
		expect_as_bare(python, "cprofile_in_many", NULL);
}

/* Where the program is interrupted is chance, so there is no output to compare. */
#define BY_CHANCE(Name)                                                                                                \
	SCENARIO(profile_hook, Name, 6)                                                                                \
	{                                                                                                              \
		expect_whole(run(.python = python, .args = {"@profile_hook.py", #Name}));                              \
	}                                                                                                              \
	ALSO_CALLS_ONLY(profile_hook, Name)

BY_CHANCE(by_timer)
BY_CHANCE(interrupted)
