/*
 * test_pytest.c - the pytest plugin of the package evprof: limits, spans and the summary, against what the suites in
 * programs/pytest_suite count themselves, tracemalloc, and pytest's own JUnit file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

/* A run of pytest. */
struct suite {
	const struct python *python;
	enum job_how how;
	const char *file;
	const char *options[8];
	const char *env[4];
};

static char *python_path(const struct python *python)
{
	return text("PYTHONPATH=%s:%s", program_path("../../../tools/python"), package_path(python));
}

/* Writes junit.xml, and seen: what the tests counted. Temporary files are in the working directory, too. */
static struct outcome *run_suite(const struct suite *suite)
{
	struct job job = {.python = suite->python,
			  .how = suite->how,
			  .args = {"-m", "pytest", "-p", "evprof.pytest_plugin", "-p", "no:cacheprovider",
				   "--junit-xml=junit.xml", suite->file},
			  .env = {"SEEN=seen", "TMPDIR=.", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=default"},
			  .timeout_s = 200};
	size_t arg = 8, variable = 4;

	if (built_with_asan())
		cr_skip_test("Python cannot load a library with the address sanitizer in it");
	python_needs(suite->python, "ctypes");
	package_variable(suite->python, "pytest");
	job.env[variable++] = python_path(suite->python);
	for (size_t i = 0; i < 4 && suite->env[i]; i++)
		job.env[variable++] = suite->env[i];
	for (size_t i = 0; i < 8 && suite->options[i]; i++)
		job.args[arg++] = suite->options[i];
	return job_run(&job);
}
#define pytest(...) run_suite(&(const struct suite){__VA_ARGS__})

static struct outcome *run_text(const struct python *python, const char *test, const char *option, const char *variable)
{
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"});
	char *path = path_in(place, "test_text.py");

	file_write(path, test, strlen(test));
	return pytest(.python = python, .how = JOB_BARE, .file = path, .options = {option}, .env = {variable});
}

/* The tests that failed are those that counted more calls than their limits, and their messages have those counts. */
static void expect_counted(const struct outcome *outcome)
{
	struct outcome *judged;

	expect(outcome, outcome->status == 1, "some tests fail");
	judged = run(.how = JOB_BARE,
		     .args = {"python3", "@judge_pytest.py", path_in(outcome, "seen"), path_in(outcome, "junit.xml")});
	expect(judged, judged->status == 0 && strcmp(judged->out, "18 tests\n") == 0, "the limits hold as counted");
}

/* No directory of a temporary trace is left. */
static void expect_no_rest(const struct outcome *outcome)
{
	struct outcome *list = run(.how = JOB_BARE, .args = {"ls", outcome->directory});

	expect(list, !strstr(list->out, "evprof"), "nothing is left in %s", outcome->directory);
}

static void expect_spans(const struct outcome *outcome, const char *rows, const char *more)
{
	struct outcome *judged =
	    run(.how = JOB_BARE, .args = {"python3", "@judge_pytest_spans.py", path_in(outcome, "seen"),
					  path_in(outcome, "junit.xml"), rows, more});

	expect(judged, judged->status == 0 && strcmp(judged->out, "19 tests\n") == 0, "spans of all tests");
}

/* With rows for all functions: on a busy machine any of them may be among the ten slowest. */
static void expect_summary(const struct outcome *outcome, bool late)
{
	expect(outcome, strstr(outcome->out, "slowest tests, in seconds\n"), "the tests");
	expect(outcome, strstr(outcome->out, "app.py:") && strstr(outcome->out, "(query)\n"), "the functions");
	expect(outcome, !strstr(outcome->out, "_library.py:"), "none of evprof's own, wherever the package is");
	expect(outcome, strstr(outcome->out, "; show it with: evprof report "), "the trace");
	expect(outcome, !strstr(outcome->out, "the library was loaded by pytest") == !late,
	       "what a late library cannot do");
}

/* ---- counts of calls ------------------------------------------------------------------------------------------- */

/* Limits hold without any option, and leave nothing behind. */
SCENARIO(pytest, limits_of_calls, SUPPORTED)
{
	struct outcome *outcome = pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_counts.py");

	expect_counted(outcome);
	expect_no_rest(outcome);
	expect(outcome, stderr_evprof_lines(outcome) == 0, "stderr is the program's");
}

SCENARIO(pytest, recorded_late, SUPPORTED)
{
	struct outcome *outcome = pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_counts.py",
					 .options = {"--evprof", "--evprof-rows=1000"}, .env = {"EVPROF_EVENTS=call"});

	expect_counted(outcome);
	expect(outcome, outcome->traces == 1, "one trace");
	json_decref(expect_trace(outcome, 2)); /* and the child of a fork */
	expect_spans(outcome, oracle_spans(outcome->trace), NULL);
	expect_summary(outcome, true);
}

SCENARIO_SOME(pytest, recorded_by_run, SUPPORTED)
{
	struct outcome *outcome = pytest(.python = python, .how = JOB_RUN, .file = "@pytest_suite/test_counts.py",
					 .options = {"--evprof", "--evprof-rows=1000"}, .env = {"EVPROF_EVENTS=call"});

	expect_counted(outcome);
	json_decref(expect_trace(outcome, 0));
	expect_spans(outcome, oracle_spans(outcome->trace), NULL);
	expect_summary(outcome, false);
}

/* The line of a file in the table of coverage; "" where it has none. */
static char *coverage_of(const struct outcome *outcome, const char *file)
{
	const char *line = strstr(outcome->out, text("\n%s ", file));

	return line ? text("%.*s", (int)strcspn(line + 1, "\n"), line + 1) : text("%s", "");
}

/* Each worker has a trace; what coverage finds is what it finds alone. */
SCENARIO_SOME(pytest, xdist_and_cov, SUPPORTED)
{
	struct outcome *bare, *outcome, *list;
	const char *rows[2], *cover = text("--cov=%s", program_path("pytest_suite"));
	char *line;
	size_t count = 0;

	package_variable(python, "xdist, pytest_cov");
	bare = pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_counts.py", .options = {cover},
		      .env = {"EVPROF=0"});
	outcome =
	    pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_counts.py",
		   .options = {"--evprof", "--evprof-rows=1000", "-n", "2", cover}, .env = {"EVPROF_EVENTS=call"});
	expect(bare, bare->status == 0, "all tests pass without limits");
	expect_counted(outcome);
	expect(outcome, outcome->traces == 2, "a trace of each worker");
	list = run(.how = JOB_BARE, .args = {"sh", "-c", text("ls -d %s/*.evp", outcome->directory)});
	for (line = strtok(list->out, "\n"); line && count < 2; line = strtok(NULL, "\n"))
		rows[count++] = oracle_spans(line);
	expect_spans(outcome, rows[0], rows[1]);
	expect_summary(outcome, true);
	line = coverage_of(bare, program_path("pytest_suite/app.py"));
	expect(bare, strstr(line, "%"), "coverage of app.py");
	expect(outcome, strcmp(line, coverage_of(outcome, program_path("pytest_suite/app.py"))) == 0,
	       "the same coverage: %s", line);
}

/* ---- a trace a test -------------------------------------------------------------------------------------------- */

/* Each trace has what its test counted, also where it fails; all verbs read it. */
static void expect_traces_of_tests(const struct outcome *outcome)
{
	static const char *const verbs[][4] = {{"report"},
					       {"tree"},
					       {"info"},
					       {"dump"},
					       {"check", "--max-calls", "app:query=1000"},
					       {"export", "-f", "html", "-o-"},
					       {"export", "-f", "csv", "-o-"}};
	const char *folder = path_in(outcome, "traces"), *one;
	struct outcome *judged, *list, *read;

	expect_counted(outcome);
	expect(outcome, strstr(outcome->out, "traces of 19 tests: "), "a line says where the traces are");
	expect(outcome, !strstr(outcome->out, "traces of tests are missing"), "none is missing");
	judged =
	    run(.how = JOB_BARE,
		.args = {"python3", "@judge_pytest_traces.py", build_path("evprof"), path_in(outcome, "seen"), folder},
		.timeout_s = 120);
	expect(judged, judged->status == 0 && strcmp(judged->out, "19 tests\n") == 0, "calls as the tests counted");
	list = run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s/*test_fork.evp", folder)});
	expect(list, list->status == 0, "the test with a child");
	one = text("%.*s", (int)strcspn(list->out, "\n"), list->out);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		struct job job = {.how = JOB_BARE, .args = {"%B/evprof"}};
		size_t count = 1;

		for (size_t k = 0; k < 4 && verbs[i][k]; k++)
			job.args[count++] = verbs[i][k];
		job.args[count] = one;
		read = job_run(&job);
		expect(read, read->status == 0 && read->out_bytes > 50, "evprof %s reads it", verbs[i][0]);
	}
}

SCENARIO(pytest, traces_of_tests, SUPPORTED)
{
	struct outcome *outcome =
	    pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_counts.py",
		   .options = {"--evprof", "--evprof-dir", "traces"}, .env = {"EVPROF_EVENTS=call"});

	expect_traces_of_tests(outcome);
}

/* The folder's option alone records, too. */
SCENARIO_SOME(pytest, traces_of_tests_by_run, SUPPORTED)
{
	struct outcome *outcome = pytest(.python = python, .how = JOB_RUN, .file = "@pytest_suite/test_counts.py",
					 .options = {"--evprof-dir=traces"}, .env = {"EVPROF_EVENTS=call"});

	expect_traces_of_tests(outcome);
}

SCENARIO_SOME(pytest, traces_of_tests_by_xdist, SUPPORTED)
{
	struct outcome *outcome;

	package_variable(python, "xdist");
	outcome = pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_counts.py",
			 .options = {"--evprof", "--evprof-dir", "traces", "-n", "2"}, .env = {"EVPROF_EVENTS=call"});
	expect_traces_of_tests(outcome);
}

/* Whatever the tests are called, each has a file; one that cannot be written is no failure of the run. */
SCENARIO_SOME(pytest, names_of_traces, SUPPORTED)
{
	static const char *const test = "import pytest\n"
					"names = ['a/b', 'a:b', 'a b', 'A-B', '../../x', '', 'x' * 400, 'x' * 400 + "
					"'y', '\\u00e9', '\\n', '~', '*']\n"
					"@pytest.mark.parametrize('x', names, ids=names)\ndef test_x(x): pass\n";
	struct outcome *outcome = run_text(python, test, "--evprof-dir=one/two", NULL), *list;

	expect(outcome, outcome->status == 0 && strstr(outcome->out, "traces of 12 tests: "), "a trace each");
	list =
	    run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s | grep -c '[.]evp$'", path_in(outcome, "one/two"))});
	expect(list, strcmp(list->out, "12\n") == 0, "twelve files: %s", list->out);
	outcome = run_text(python, "def test_x(): pass\n", "--evprof-dir=/dev/null/traces", NULL);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "traces of tests are missing: "), "a line");
}

/* ---- a worker that crashes ------------------------------------------------------------------------------------- */

#define TESTS_OF_CRASH 7

/* Cuts the span of a test out of whichever trace of the run has it. NULL: none has it. */
static const char *cut_of(const struct outcome *outcome, const char *test)
{
	struct outcome *list = run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s/*.evp", outcome->directory)});
	const char *found = NULL;

	for (char *trace = strtok(list->out, "\n"); trace; trace = strtok(NULL, "\n")) {
		const char *cut = text("%s.%zu.cut", trace, strlen(test));

		if (run(.how = JOB_BARE, .args = {build_path("evprof"), "cut", "--span", test, trace, "-o", cut})
			->status)
			continue;
		expect(outcome, !found, "%s is in one trace", test);
		found = cut;
	}
	return found;
}

/* Test number n calls leaf() n + 1 times; the last one kills its worker then. */
static void expect_cut(const struct outcome *outcome, unsigned number)
{
	const char *name = number < TESTS_OF_CRASH - 1 ? text("test_good[%u]", number) : "test_dies";
	const char *cut = cut_of(outcome, text("test_crash.py::%s", name));
	struct outcome *enough, *less;

	expect(outcome, cut != NULL, "a trace has the span of %s", name);
	enough = run(.how = JOB_BARE, .args = {build_path("evprof"), "check", "--max-calls",
					       text("test_crash:leaf=%u", number + 1), cut});
	less = run(.how = JOB_BARE,
		   .args = {build_path("evprof"), "check", "--max-calls", text("test_crash:leaf=%u", number), cut});
	expect(enough, enough->status == 0, "%s calls leaf() at most %u times", name, number + 1);
	expect(less, less->status == 1, "%s calls leaf() more than %u times", name, number);
}

/* The table has the calls of the crashed worker, too: 1 + 2 + ... + 7. A line names each trace. */
static void expect_whole_table(const struct outcome *outcome)
{
	const char *row = strstr(outcome->out, "(leaf)\n"), *first = strstr(outcome->out, "\ntrace: ");
	unsigned calls = 0;

	expect(outcome, row != NULL, "a row of leaf()");
	while (row > outcome->out && row[-1] != '\n')
		row--;
	expect(outcome, sscanf(row, "%*f %*f %u", &calls) == 1 && calls == 28, "%u calls of leaf(), not 28", calls);
	expect(outcome, first && strstr(first + 1, "\ntrace: "), "two traces are named");
}

/* What docs/pytest.md promises: the trace of the crashed worker's run is there, and spans can be cut out of it. */
SCENARIO_SOME(pytest, worker_killed, SUPPORTED)
{
	static const char *const tests = "import os, pytest\n"
					 "def leaf(): pass\n"
					 "@pytest.mark.parametrize('n', range(6))\n"
					 "def test_good(n):\n"
					 "    for _ in range(n + 1): leaf()\n"
					 "def test_dies():\n"
					 "    for _ in range(7): leaf()\n"
					 "    os.kill(os.getpid(), 9)\n";
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"}), *outcome, *list;
	const char *path = path_in(place, "test_crash.py");

	package_variable(python, "xdist");
	file_write(path, tests, strlen(tests));
	outcome = pytest(.python = python, .how = JOB_BARE, .file = path,
			 .options = {"--evprof", "--evprof-dir", "traces", "-n", "2", "--max-worker-restart=0",
				     text("--rootdir=%s", place->directory)},
			 .env = {"EVPROF_EVENTS=call"});
	expect(outcome, outcome->status != 0 && strstr(outcome->out, "crashed"), "pytest-xdist sees the crash");
	expect(outcome, outcome->traces == 2, "a trace of each worker: %zu", (size_t)outcome->traces);
	expect_whole_table(outcome);
	for (unsigned i = 0; i < TESTS_OF_CRASH; i++)
		expect_cut(outcome, i);
	list = run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s", path_in(outcome, "traces"))});
	expect(list, !strstr(list->out, "test_dies"), "the crashed worker writes no trace of its test");
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static struct outcome *run_memory(const struct python *python, const char *oracle, const char *limits,
				  const char *option)
{
	return pytest(.python = python, .how = JOB_BARE, .file = "@pytest_suite/test_memory.py",
		      .options = {"-k", option}, .env = {text("ORACLE=%s", oracle), text("LIMITS=%s", limits)});
}

/* The messages of the failures. */
static char *messages(const struct outcome *outcome)
{
	static const char *const code =
	    "import sys, xml.etree.ElementTree as trees\n"
	    "for failure in trees.parse(sys.argv[1]).iter('failure'): print(failure.get('message'))";
	struct outcome *found = run(.how = JOB_BARE, .args = {"python3", "-c", code, path_in(outcome, "junit.xml")});

	expect(found, found->status == 0, "junit.xml is read");
	return text("%s", found->out);
}

/* Limits a twentieth above what tracemalloc says hold, those a twentieth below do not. */
SCENARIO(pytest, limits_of_memory, SUPPORTED)
{
	struct outcome *oracle = run(.python = python, .how = JOB_BARE, .args = {"@pytest_suite/test_memory.py"},
				     .env = {"PYTHONDONTWRITEBYTECODE=1"});
	char *path = path_in(oracle, "oracle.json");
	struct outcome *outcome;

	expect(oracle, oracle->status == 0, "tracemalloc measures");
	file_write(path, oracle->out, oracle->out_bytes);
	outcome = run_memory(python, path, "above", "test");
	expect(outcome, outcome->status == 0 && strstr(outcome->out, " 10 passed"), "limits above hold");
	outcome = run_memory(python, path, "below", "test");
	expect(outcome, outcome->status == 1 && strstr(outcome->out, " 9 failed, 1 skipped"), "limits below do not");
}

/* Two runs find the same, to the byte. A thread's registration depends on addresses: it is left out. */
SCENARIO(pytest, same_in_each_run, SUPPORTED)
{
	static const char nothing[] = "{\"peak\": [0, 0], \"leak\": [0, 0], \"garbage\": [0, 0], \"grows\": [0, 0], "
				      "\"threads\": [0, 0]}";
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"}), *outcome;
	char *path = path_in(place, "oracle.json"), *first;

	file_write(path, nothing, strlen(nothing));
	outcome = run_memory(python, path, "zero", "not threads");
	first = messages(outcome);
	expect(outcome,
	       strstr(first, " bytes at the peak, at most 0; allocated by") &&
		   strstr(first, " bytes not freed, at most 0; allocated by") &&
		   strstr(first, " allocations, at most 0; by"),
	       "each limit fails: %s", first);
	outcome = run_memory(python, path, "zero", "not threads");
	expect(outcome, strcmp(messages(outcome), first) == 0, "the same as in the first run: %s", first);
}

/* ---- around it --------------------------------------------------------------------------------------------------- */

SCENARIO_SOME(pytest, wrong_marks, SUPPORTED)
{
	static const char *const marks[][2] = {
	    {"max_calls=3", "max_calls is a dict such as {\"app.db:query\": 20}, not 3"},
	    {"max_calls={'query': 3}", "a key of max_calls is \"MODULE:FUNCTION\", not 'query'"},
	    {"max_time='soon'", "max_time is a number or a text such as \"200ms\", not 'soon'"},
	    {"max_time=float('inf')", "max_time is a number or a text such as \"200ms\", not inf"},
	    {"max_memory='24 furlongs'", "max_memory is a number or a text such as \"24MB\""},
	    {"max_allocations=1.5", "max_allocations is a whole number, not 1.5"},
	    {"max_call={}", "the mark evprof has no argument max_call; it has max_calls, max_time, "},
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		struct outcome *outcome =
		    run_text(python, text("import pytest\n@pytest.mark.evprof(%s)\ndef test_x(): pass\n", marks[i][0]),
			     NULL, NULL);

		expect(outcome, outcome->status == 4, "pytest ends with its status for wrong use");
		expect(outcome, strstr(outcome->err, marks[i][1]), "a line says what is wrong with %s", marks[i][0]);
	}
}

/* A limit of what the trace does not have never holds. That of time needs no trace. */
SCENARIO_SOME(pytest, limits_that_cannot_be_checked, SUPPORTED)
{
	static const char *const cases[][3] = {
	    {"max_memory='1GB'", "EVPROF_EVENTS=call,c_call", "memory was not recorded"},
	    {"max_allocations=10**9", "EVPROF_EVENTS=call", "memory was not recorded"},
	    {"max_leak='1GB'", "EVPROF_MEMORY_INTERVAL=64K", "memory was sampled"},
	    {"max_leak='1GB'", "EVPROF_EVENTS=mem", "calls were not recorded"},
	    {"max_calls={'test_text:work': 0}", "EVPROF_EVENTS=mem", "calls were not recorded"},
	    {"max_calls={'test_text:work': 9}", "EVPROF_EVENTS=sample", "stacks were sampled"},
	};
	struct outcome *outcome;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		outcome = run_text(
		    python,
		    text("import pytest\ndef work(): bytearray(1)\n@pytest.mark.evprof(%s)\ndef test_x(): work()\n",
			 cases[i][0]),
		    NULL, cases[i][1]);
		expect(outcome,
		       outcome->status == 1 &&
			   strstr(outcome->out, text("the limits cannot be checked: evprof: %s", cases[i][2])),
		       "%s with %s", cases[i][0], cases[i][1]);
	}
	outcome = run_text(python, "import pytest\n@pytest.mark.evprof(max_time=50)\ndef test_x(): pass\n", NULL,
			   "EVPROF_EVENTS=mem");
	expect(outcome, outcome->status == 0, "a limit of time");
}

/* A limit of time that must fail and one that must not, whatever the machine does. */
SCENARIO_SOME(pytest, limits_of_time, SUPPORTED)
{
	struct outcome *outcome = run_text(python,
					   "import pytest, time\n"
					   "@pytest.mark.evprof(max_time='20ms')\ndef test_over(): time.sleep(0.021)\n"
					   "@pytest.mark.evprof(max_time=50)\ndef test_under(): pass\n",
					   NULL, NULL);

	expect(outcome, outcome->status == 1 && strstr(outcome->out, "1 failed, 1 passed"), "one fails");
	expect(outcome, strstr(outcome->out, "/test_text.py::test_over\n  max_time: "), "it is that one");
	expect(outcome, strstr(outcome->out, " ms, at most 20 ms\n"), "with the limit");
}

/* The time of subtests is in that of their test. */
SCENARIO_RANGE(pytest, subtests, 10, 0)
{
	struct outcome *outcome = run_text(python,
					   "import os, time, unittest\n"
					   "def rest(subtest):\n"
					   "    begin = time.perf_counter()\n"
					   "    for n in range(5):\n"
					   "        with subtest(n=n): time.sleep(0.1)\n"
					   "    with open(os.environ['SEEN'], 'a') as seen:\n"
					   "        seen.write('%f ' % (time.perf_counter() - begin))\n"
					   "def test_one(subtests): rest(lambda n: subtests.test(n=n))\n"
					   "class Test(unittest.TestCase):\n"
					   "    def test_two(self): rest(self.subTest)\n",
					   "--evprof", NULL);
	const char *const rows[] = {"::test_one\n", "::test_two\n"};
	double seen[2], call;

	expect(outcome, outcome->status == 0, "both pass");
	cr_assert(sscanf(file_read(path_in(outcome, "seen"), NULL), "%lf %lf", &seen[0], &seen[1]) == 2);
	for (size_t i = 0; i < 2; i++) {
		const char *row = strstr(strstr(outcome->out, "slowest tests"), rows[i]);

		expect(outcome, row != NULL, "a row of %s", rows[i]);
		while (row[-1] != '\n')
			row--;
		expect(outcome,
		       sscanf(row, "%*f %*f %lf", &call) == 1 && call > seen[i] - 0.002 && call < 1.5 * seen[i],
		       "%g s, not %g", call, seen[i]);
	}
}

/* A test that fails by itself fails for that reason only; a function that is not there is named. */
SCENARIO_SOME(pytest, other_ends, SUPPORTED)
{
	struct outcome *outcome = run_text(
	    python,
	    "import pytest\n"
	    "@pytest.mark.evprof(max_allocations=0)\ndef test_fails(): assert [] == [bytearray(1)], 'own reason'\n"
	    "@pytest.mark.evprof(max_calls={'nowhere:nothing': 1})\ndef test_renamed(): pass\n",
	    NULL, NULL);

	expect(outcome, strstr(outcome->out, "1 failed, 1 passed, 1 warning"), "one fails");
	expect(outcome, strstr(outcome->out, "own reason") && !strstr(outcome->out, "max_allocations:"), "by itself");
	expect(outcome, strstr(outcome->out, "evprof: nowhere:nothing was not called; is that its name?"), "a warning");
}

SCENARIO_SOME(pytest, switched_off, SUPPORTED)
{
	struct outcome *outcome =
	    run_text(python, "import pytest\n@pytest.mark.evprof(max_allocations=0)\ndef test_x(): bytearray(1)\n",
		     "--evprof", "EVPROF=0");

	expect(outcome, outcome->status == 0 && strstr(outcome->out, "limits are not checked: EVPROF=0"), "a warning");
	expect(outcome, strstr(outcome->out, "nothing was recorded: EVPROF=0\n") && !outcome->traces, "no trace");
}

/* A run that asks for nothing loads nothing. */
SCENARIO_SOME(pytest, idle, SUPPORTED)
{
	struct outcome *outcome =
	    run_text(python,
		     "def test_x():\n import sys\n assert 'libevprof' not in open('/proc/self/maps').read()\n"
		     " assert 'evprof.recording' not in sys.modules and 'evprof.trace' not in sys.modules\n",
		     NULL, NULL);

	expect(outcome, outcome->status == 0, "neither the library nor the package's other modules are loaded");
}

/* pip's entry point is the plugin: pytest finds it without -p. */
SCENARIO_RANGE(pytest, entry_point, 11, 0)
{
	static const char *const code =
	    "import sys, tomllib, pathlib\n"
	    "points = tomllib.load(open(sys.argv[1], 'rb'))['project']['entry-points']\n"
	    "info = pathlib.Path('evprof-0.dist-info'); info.mkdir()\n"
	    "(info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: evprof\\nVersion: 0\\n')\n"
	    "(info / 'entry_points.txt').write_text('\\n'.join('[%s]\\n%s' % (group, '\\n'.join("
	    "'%s = %s' % item for item in names.items())) for group, names in points.items()))\n";
	struct outcome *place, *outcome;

	package_variable(python, "pytest");
	place = run(.python = python, .how = JOB_BARE,
		    .args = {"-c", code, program_path("../../../tools/packaging/pyproject.toml")});
	expect(place, place->status == 0, "the entry points are written");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"-m", "pytest", "--help"},
		      .env = {text("%s:%s", python_path(python), place->directory)});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "--evprof "), "pytest has the option");
}
