/*
 * test_check.c - evprof check and evprof diff on what real programs left: counts that are known, the peak of the heap
 * against tracemalloc's, JUnit files against Python's XML parser.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

SCENARIO(check, calls, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	struct outcome *result =
	    tool("check", "--max-calls", "known:leaf=1000", "--max-calls", "__main__:recurse=51", "--max-calls",
		 "known.py:numbers=11", "--max-calls", "no.such:function=0", "--max-lost", "0", outcome->trace);

	expect(result, result->status == 0 && strstr(result->out, "ok     --max-calls known:leaf=1000: 1000 calls"),
	       "limits that are just held");
	result = tool("check", "--max-calls", "known:leaf=999", "--max-calls", "known:work=1", outcome->trace);
	expect(result, result->status == 1 && strstr(result->out, "FAILED --max-calls known:leaf=999: 1000 calls"),
	       "one call too many");
	expect(result, strstr(result->out, "ok     --max-calls known:work=1"), "the other limit is reported too");
	result = tool("check", "--max-calls", "known:laef=1000", outcome->trace);
	expect(result, result->status == 2 && strstr(result->out, "ERROR"), "a function that is not there");
}

/* Both sums are of the same events: the total must be the report's. */
SCENARIO(check, total, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	json_t *report = trace_report(outcome->trace, NULL);
	long calls = (long)json_integer_value(json_object_get(report, "calls"));
	double seconds = json_number_value(json_object_get(report, "tottime"));
	struct outcome *result = tool("check", "--max-calls", text("TOTAL=%ld", calls), "--max-time",
				      text("TOTAL=%.6f", seconds + 0.001), outcome->trace);

	expect(result, result->status == 0, "%ld calls in %f s", calls, seconds);
	result = tool("check", "--max-calls", text("TOTAL=%ld", calls - 1), outcome->trace);
	expect(result, result->status == 1, "one call less");
	result = tool("check", "--max-time", text("TOTAL=%.6f", seconds - 0.001), outcome->trace);
	expect(result, result->status == 1, "a millisecond less");
	json_decref(report);
}

SCENARIO(check, peak_of_the_heap, SUPPORTED)
{
	struct outcome *judge =
	    run(.python = python, .how = JOB_BARE, .args = {"-X", "tracemalloc", "@compared.py", "10", "peak"});
	struct outcome *outcome = run(.python = python, .args = {"@compared.py", "10"}), *result;
	long its = atol(judge->out), mine;
	const char *line;

	expect(judge, judge->status == 0 && its > 70000000, "tracemalloc sees a peak of %ld", its);
	result = tool("check", "--max-alloc", "1M", outcome->trace);
	expect(result, result->status == 1, "more than 1 MiB");
	line = strstr(result->out, "--max-alloc 1M: ");
	expect(result, line, "the peak is reported");
	mine = atol(line + strlen("--max-alloc 1M: "));
	/* What Python holds before either is on, and what tracemalloc imports, differ. */
	expect(result, labs(mine - its) < 4000000, "%ld bytes, %ld by tracemalloc", mine, its);
	result = tool("check", "--max-alloc", text("%ld", mine), outcome->trace);
	expect(result, result->status == 0, "a limit that is just held");
	result = tool("check", "--max-alloc", text("%ld", mine - 1), outcome->trace);
	expect(result, result->status == 1, "one byte less");
}

/* Runs a check with --junit and lets Python's parser count: "tests failures errors" and the names of the cases. */
static struct outcome *junit_of(const struct outcome *outcome, const char *limit, const char *value, int status)
{
	static const char *const code =
	    "import sys, xml.etree.ElementTree as tree\n"
	    "root = tree.parse(sys.argv[1]).getroot()\n"
	    "assert root.tag == 'testsuites'\n"
	    "for suite in root:\n"
	    "    cases = list(suite)\n"
	    "    assert suite.tag == 'testsuite' and len(cases) == int(suite.get('tests'))\n"
	    "    for word in 'failure', 'error':\n"
	    "        assert len(suite.findall('testcase/' + word)) == int(suite.get(word + 's'))\n"
	    "    assert all(case.get('classname') and case.get('name') for case in cases)\n"
	    "    print(suite.get('tests'), suite.get('failures'), suite.get('errors'))\n"
	    "    for case in cases: print(ascii(case.get('name')), [part.get('message') for part in case])\n";
	char *path = text("%s/junit.xml", outcome->directory);
	struct outcome *result = tool("check", limit, value, "--max-lost", "0", "--junit", path, outcome->trace),
		       *judge;

	expect(result, result->status == status, "%s %s ends with %d", limit, value, status);
	judge = run(.python = python_any(), .how = JOB_BARE, .args = {"-c", code, path});
	expect(judge, judge->status == 0, "the JUnit file is XML of the right shape");
	return judge;
}

SCENARIO(check, junit, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@names.py"}), *judge;

	(void)python;
	judge = junit_of(outcome, "--max-calls", "names:called=1000", 0);
	expect(judge, strncmp(judge->out, "3 0 0\n", 6) == 0, "two limits and the trace, all fine");
	judge = junit_of(outcome, "--max-calls", "names:called=1", 1);
	expect(judge, strncmp(judge->out, "3 1 0\n", 6) == 0 && strstr(judge->out, "calls, at most 1'"), "one failure");
	judge = junit_of(outcome, "--max-calls", "*:quo\"te=0", 1);
	expect(judge, strstr(judge->out, "*:quo\"te=0"), "a quote");
	judge = junit_of(outcome, "--max-calls", "*:</script>=0", 1);
	expect(judge, strstr(judge->out, "*:</script>=0"), "angle brackets");
	judge = junit_of(outcome, "--max-calls", "*:new\nline=0", 1);
	expect(judge, strstr(judge->out, "*:new\\nline=0"), "a newline");
	judge = junit_of(outcome, "--max-calls",
			 "*:\x01"
			 "control\xff&amp;=7",
			 2);
	expect(judge, strncmp(judge->out, "3 0 1\n", 6) == 0 && strstr(judge->out, "\\ufffdcontrol\\ufffd&amp;"),
	       "what XML cannot hold");
}

/* A trace that was cut: a broken limit is broken, but none holds for sure. */
SCENARIO(check, cut_trace, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@known.py"}), *result;
	char *cut = text("%s/cut.trace", outcome->directory);
	size_t bytes;
	char *whole = file_read(outcome->trace, &bytes);

	(void)python;
	file_write(cut, whole, bytes - 20);
	result = tool("check", "--max-calls", "known:leaf=1000", cut);
	expect(result, result->status == 2 && strstr(result->out, "ok ") && *result->err, "what holds may not");
	result = tool("check", "--max-calls", "known:leaf=3", cut);
	expect(result, result->status == 1, "what is broken is broken");
	snprintf(outcome->trace, sizeof(outcome->trace), "%s", cut);
	result = junit_of(outcome, "--max-calls", "known:leaf=1000", 2);
	expect(result, strncmp(result->out, "3 0 1\n", 6) == 0, "the trace is a case of its own");
}

SCENARIO(check, junit_that_cannot_be_written, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@known.py"});
	struct outcome *result = tool("check", "--max-lost", "0", "--junit", "/nonexistent/junit.xml", outcome->trace);

	(void)python;
	expect(result, result->status == 2 && strstr(result->err, "/nonexistent/junit.xml"), "that is an error");
	result = tool("check", "--max-lost", "0", "--junit", "/dev/full", outcome->trace);
	expect(result, result->status == 2 && strstr(result->err, "/dev/full"), "a full disk too");
}

/* Whatever the limits are: also where none of them is of the events that are damaged. */
SCENARIO(check, damage_holds_no_limit, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@compared.py", "100"}), *result;
	char *path = text("%s/damaged.evp", outcome->directory);
	size_t bytes;
	char *data = file_read(outcome->trace, &bytes);

	(void)python;
	data[bytes / 2] ^= 4;
	file_write(path, data, bytes);
	free(data);
	result = tool("check", "--max-lost", "0", outcome->trace);
	expect(result, result->status == 0 && !*result->err, "the trace was whole");
	result = tool("check", "--max-lost", "0", path);
	expect(result, result->status == 2 && *result->err, "it is not any more");
	result = tool("check", "--max-calls", "TOTAL=100000000", path);
	expect(result, result->status == 2 && *result->err, "nor for a limit of calls");
}

/* A limit of a function that was not recorded is an error: evprof cannot know that leaf() is called 1000 times. */
SCENARIO_SOME(check, what_is_not_recorded, SUPPORTED)
{
	const struct {
		const char *variable, *limit;
	} cases[] = {{"EVPROF_EVENTS=sample", "known:leaf=100000"}, {"EVPROF_EVENTS=call", "builtins:sum=0"},
		     {"EVPROF_EXCLUDE=*leaf", "known:leaf=0"},	    {"EVPROF_EXCLUDE=*leaf", "known:*=200"},
		     {"EVPROF_INCLUDE=*recurse", "known:leaf=0"},   {"EVPROF_EXCLUDE_SYSPATH=1", "json*:*=0"},
		     {"EVPROF_INCLUDE=*recurse", "TOTAL=51"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {cases[i].variable});
		struct outcome *result = tool("check", "--max-calls", cases[i].limit, outcome->trace);

		expect(result, result->status == 2 && strstr(result->out, "ERROR"), "%s, %s", cases[i].variable,
		       cases[i].limit);
		expect(result, !strstr(result->out, "no function of the trace"), "%s: the reason", cases[i].variable);
	}
}

/* What was called before the stretch that a trace keeps (EVPROF_KEEP), in a process that has left it, too. */
SCENARIO_SOME(check, last_stretch, SUPPORTED)
{
	static const char program[] = "import subprocess, sys, time\n"
				      "def early(): pass\n"
				      "early()\n"
				      "subprocess.check_call([sys.executable, '-c', 'def early(): pass\\nearly()'])\n"
				      "end = time.monotonic() + 3\n"
				      "while time.monotonic() < end: time.sleep(0.01)\n";
	const struct {
		const char *keep;
		int check, diff;
	} cases[] = {{"EVPROF_KEEP=1h", 1, 0}, {"EVPROF_KEEP=1s", 2, 2}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome *outcome = run(.python = python, .args = {"-c", program}, .env = {cases[i].keep});
		struct outcome *result = tool("check", "--max-calls", "*:early=0", outcome->trace);

		expect(result, result->status == cases[i].check, "%s", cases[i].keep);
		result = tool("diff", "--fail-on", "calls", outcome->trace, outcome->trace);
		expect(result, result->status == cases[i].diff, "%s", cases[i].keep);
	}
}

/* ---- diff ------------------------------------------------------------------------------------------------------ */

static const json_t *function_named(const json_t *root, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i,
			   row) if (strcmp(json_string_value(json_object_get(row, "function")), name) == 0) return row;
	return NULL;
}

static long change(const json_t *row, const char *key)
{
	return (long)json_integer_value(json_object_get(json_object_get(row, "change"), key));
}

SCENARIO(diff, known_change, SUPPORTED)
{
	struct outcome *before = run(.python = python, .args = {"@compared.py", "100"});
	struct outcome *after = run(.python = python, .args = {"@compared.py", "160"});
	struct outcome *result = tool("diff", "--json", "--sort", "bytes", before->trace, after->trace), *csv;
	json_t *root = json_loads(result->out, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *leaf = root ? function_named(root, "leaf") : NULL;
	long block = 10000 + (python_is_free_threaded(python) ? 49 : 33), bytes; /* with the head of a bytes object */

	expect(result, result->status == 0 && leaf, "diff ends with 0 and knows leaf");
	expect(result, change(leaf, "ncalls") == 60, "60 calls more, not %ld", change(leaf, "ncalls"));
	expect(result, change(leaf, "allocs") == 60, "60 blocks more, not %ld", change(leaf, "allocs"));
	bytes = change(leaf, "bytes");
	expect(result, bytes == 60 * block, "60 times 10000 bytes and a header, not %ld", bytes);
	expect(result, leaf == json_array_get(json_object_get(root, "functions"), 0), "the largest change comes first");
	expect(result, change(function_named(root, "peak"), "bytes") == 0, "the same in both");
	json_decref(root);
	csv = tool("diff", "--csv", before->trace, after->trace);
	file_write(text("%s/diff.csv", after->directory), csv->out, csv->out_bytes);
	result = run(.python = python_any(), .how = JOB_BARE,
		     .args = {"-c",
			      "import csv, sys\n"
			      "rows = list(csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8')))\n"
			      "assert all(None not in row and None not in row.values() for row in rows)\n"
			      "leaf, = [row for row in rows if row['function'] == 'leaf']\n"
			      "assert (leaf['ncalls_a'], leaf['ncalls_b'], leaf['ncalls_change'], leaf['in']) == "
			      "('100', '160', '60', 'both'), leaf\n",
			      text("%s/diff.csv", after->directory)});
	expect(result, result->status == 0, "Python's csv reads the same");
}

/* Two runs of the same program have the same counts; one that does more has a regression, in a table for a comment. */
SCENARIO_SOME(diff, regression, SUPPORTED)
{
	struct outcome *before = run(.python = python, .args = {"@compared.py", "100"});
	struct outcome *same = run(.python = python, .args = {"@compared.py", "100"});
	struct outcome *after = run(.python = python, .args = {"@compared.py", "160"});
	/* A machine that stands still for a moment is no change of what is counted. */
	struct outcome *result =
	    tool("diff", "--include", "*compared.py", "--fail-on", "calls,total-calls", "--threshold", "time=100s",
		 "--threshold", "cumtime=100s", before->trace, same->trace);

	expect(result, result->status == 0 && !strstr(result->out, "(leaf)"), "the same calls: %s", result->out);
	result =
	    tool("diff", "--include", "*compared.py", "--fail-on", "calls", "--markdown", before->trace, after->trace);
	expect(result, result->status == 4 && strstr(result->out, "| **100 → 160 (+60 %)** |"), "60 calls more: %s",
	       result->out);
	for (const char *line = strstr(result->out, "\n| "); line; line = strstr(line + 1, "\n| ")) {
		size_t cells = 0;

		for (const char *at = line + 1; *at && *at != '\n'; at++)
			cells += *at == '|' && at[-1] != '\\';
		expect(result, cells == 7, "each row has six cells, not %zu: %.200s", cells - 1, line);
	}
	result = tool("diff", "--include", "*compared.py", "--fail-on", "calls", "--threshold", "calls=60%",
		      before->trace, after->trace);
	expect(result, result->status == 0, "60 %% are not more than 60 %%");
}
