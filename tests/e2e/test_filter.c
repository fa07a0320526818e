/*
 * test_filter.c - a filter leaves the same functions when recording and when reading; no others are in the trace.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* The functions that a program of ours has, by the report of one trace; "name=calls" in order of the names. */
static char *rows_of(const struct outcome *outcome, const char *const *options)
{
	const char *args[12] = {"report", "--json", "--sort", "stdname"};
	struct outcome *reported;
	json_t *report;
	char *rows = text("%s", "");
	size_t n = 4;

	for (size_t i = 0; options[i]; i++)
		args[n++] = options[i];
	args[n++] = outcome->trace;
	args[n] = NULL;
	reported = tool_run(args);
	report = json_loads(reported->out, 0, NULL);
	expect(reported, report, "a report");
	for (size_t i = 0; i < report_functions(report); i++) {
		struct function function = report_function(report, i);

		rows = text("%s%s:%s=%ld/%ld\n", rows, strrchr(function.file, '/') ? strrchr(function.file, '/') : "",
			    function.name, function.total, function.primitive);
	}
	expect_balanced(outcome, report);
	json_decref(report);
	return rows;
}

static const char *const nothing[] = {NULL};

static void expect_same_choice(const struct python *python, const char *const *variables, const char *const *options)
{
	struct outcome *all =
	    run(.python = python, .args = {"-S", "@generators.py"}, .env = {"EVPROF_EVENTS=call,c_call"});
	struct outcome *some = run(.python = python, .args = {"-S", "@generators.py"},
				   .env = {"EVPROF_EVENTS=call,c_call", variables[0], variables[1]});
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-S", "@generators.py"});
	char *want = rows_of(all, options), *got = rows_of(some, nothing);
	json_t *info = expect_trace(some, 1);

	expect_same(bare, some);
	expect(some, !strcmp(want, got), "filtered when recording:\n%s, filtered when reading:\n%s", got, want);
	expect(some, *got, "some function is recorded");
	json_decref(info);
}

SCENARIO(filter, of_what_to_record, SUPPORTED)
{
	expect_same_choice(python, (const char *const[]){"EVPROF_INCLUDE=*/generators.py", NULL},
			   (const char *const[]){"--include", "*/generators.py", NULL});
}

SCENARIO(filter, by_expressions_and_both_ways, SUPPORTED)
{
	expect_same_choice(
	    python,
	    (const char *const[]){"EVPROF_INCLUDE=re:generators\\.py$,builtins.*,re:x{1\\,2}y", "EVPROF_EXCLUDE=re:^<"},
	    (const char *const[]){"--include", "re:generators\\.py$", "--include", "builtins.*", "--exclude", "re:^<",
				  NULL});
}

SCENARIO(filter, without_the_library, SUPPORTED)
{
	expect_same_choice(python, (const char *const[]){"EVPROF_EXCLUDE_SYSPATH=1", NULL},
			   (const char *const[]){"--exclude-syspath", NULL});
}

/* The program says how it calls its files. Recording and reading leave out the same. */
SCENARIO(filter, without_the_library_of_a_frozen_program, SUPPORTED)
{
	static const char *const none[] = {NULL}, *const runs_by_default[] = {"--exclude-syspath", NULL};

	for (int i = 0; i < 2; i++) {
		struct outcome *outcome = run(.python = python, .args = {"-S", "@frozen.py"},
					      .env = {"EVPROF_EVENTS=call", text("EVPROF_EXCLUDE_SYSPATH=%d", i)});
		char *rows = rows_of(outcome, i ? none : runs_by_default);

		expect(outcome, strstr(outcome->out, "threading.py json/__init__.py known.py"), "it looks frozen");
		expect(outcome, strstr(rows, ":work=30/30\n") && strstr(rows, ":leaf=90/90\n"),
		       "the program's own module is shown: %s", rows);
		expect(outcome, !strstr(rows, ":decode=") && !strstr(rows, ":_bootstrap="),
		       "json/decoder.py and threading.py are not: %s", rows);
	}
}

/* A script that is called like a module of the library is none. */
SCENARIO(filter, of_a_script_named_like_the_library, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .env = {"EVPROF_EXCLUDE_SYSPATH=1"},
				      .args = {"-c", "exec(compile('def own(): pass\\nown()', 'profile.py', 'exec'))"});
	char *rows = rows_of(outcome, nothing);

	(void)python;
	expect(outcome, strstr(rows, ":own=1/1\n"), "it is recorded: %s", rows);
}

/* A bad pattern costs a line, the others hold. */
SCENARIO(filter, of_a_bad_pattern, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"-S", "@generators.py"},
				      .env = {"EVPROF_INCLUDE=re:(,*/generators.py", "EVPROF_EVENTS=call"});
	char *line = stderr_evprof_line(outcome, 0);

	expect(outcome, strstr(line, "EVPROF_INCLUDE") && strstr(line, "re:("), "a line names the pattern: %s", line);
	expect(outcome, outcome->trace[0] && outcome->status == 0, "the program runs on");
	free(line);
}

/* An empty result looks like a program that did nothing. */
SCENARIO(filter, that_matches_nothing_is_reported, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@generators.py"}), *result;

	(void)python;
	result = tool("report", "--include", "generators.py", outcome->trace);
	expect(result,
	       result->status == 0 && strstr(result->err, "no function matches the filter") &&
		   strstr(result->err, "\"*/app.py\""),
	       "a line says that a glob is of the whole path");
	result = tool("report", "--include", "*/generators.py", outcome->trace);
	expect(result, result->status == 0 && !*result->err, "no line where a function matches");
	result = tool("export", "--format", "folded", "--exclude", "*", outcome->trace, "-o", "-");
	expect(result, result->status == 0 && strstr(result->err, "no function matches the filter"),
	       "all may be excluded, too");
}
