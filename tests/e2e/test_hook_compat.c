/*
 * test_hook_compat.c - other tools at the interpreter's hooks behave as they do without evprof, and evprof goes on
 * recording with them.
 *
 * Each scenario runs programs/hook_compat.py with one of its tools, bare and under evprof: all that the tool got,
 * the output and the exit status must be the same. That evprof goes on shows in the calls of known.leaf, whose number
 * is known whatever tool listens, and in ends that all have their calls.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

static const char *const no_memory = "EVPROF_EVENTS=call,c_call,exception";

/* Any number of calls of leaf. */
#define ANY (-1)

static void expect_leaves(const struct outcome *outcome, const json_t *report, long leaves)
{
	long got = report_calls(report, "/known.py", "leaf");

	expect(outcome, got == leaves, "leaf was called %ld times, not %ld", leaves, got);
}

/* One tool; variable NULL: none. Balanced: no end without its call. */
static void expect_whole(const struct outcome *outcome, long leaves, bool balanced)
{
	json_t *info = expect_trace(outcome, 1), *report = trace_report(outcome->trace, NULL);

	if (leaves != ANY)
		expect_leaves(outcome, report, leaves);
	if (balanced)
		expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

static void expect_as_bare(const struct python *python, const char *tool, const char *variable, long leaves,
			   bool balanced)
{
	struct outcome *bare =
	    run(.python = python, .how = JOB_BARE, .args = {"@hook_compat.py", tool}, .env = {variable});
	struct outcome *outcome = run(.python = python, .args = {"@hook_compat.py", tool}, .env = {variable});

	expect_same(bare, outcome);
	expect_whole(outcome, leaves, balanced);
}

#define TOOL(Name, Leaves)                                                                                             \
	SCENARIO(hook_compat, Name, SUPPORTED)                                                                         \
	{                                                                                                              \
		expect_as_bare(python, #Name, NULL, Leaves, true);                                                     \
		if (test_all())                                                                                        \
			expect_as_bare(python, #Name, no_memory, Leaves, true);                                        \
	}                                                                                                              \
	ALSO_CALLS_ONLY(hook_compat, Name)

/* ---- profile and trace functions -------------------------------------------------------------------------------- */

TOOL(setprofile, 300)
TOOL(setprofile_in_thread, 300)
TOOL(setprofile_stays, 300)
TOOL(settrace, 300)
TOOL(both, 300)
TOOL(threading_hooks, 300)
TOOL(all_threads, 300)
TOOL(replaced_within, 300)
TOOL(cprofile, 300)
TOOL(cprofile_in_thread, 300)

/* Where C calls are not recorded, its methods have no definition, with which they are wrapped. */
SCENARIO(hook_compat, cprofile_without_c_calls, SUPPORTED)
{
	expect_as_bare(python, "cprofile_in_thread", "EVPROF_EVENTS=call,exception", 300, true);
}

TOOL(pure_profile, 300)
TOOL(trace_module, 300)
TOOL(audited, 400)
TOOL(audited_id, 300)

/*
 * Code whose events one thread's function gets has more events for functions of parallel threads: it is chance
 * which.
 */
SCENARIO(hook_compat, setprofile_in_many, SUPPORTED)
{
	if (python->minor >= 12)
		expect_whole(run(.python = python, .args = {"@hook_compat.py", "setprofile_in_many"}), 2300, true);
	else
		expect_as_bare(python, "setprofile_in_many", NULL, 2300, true);
}
ALSO_CALLS_ONLY(hook_compat, setprofile_in_many)
#define REFUSALS_FROM 8

SCENARIO(hook_compat, bdb_module, SUPPORTED)
{
	expect_as_bare(python, "bdb_module", NULL, 300, python->minor >= REFUSALS_FROM);
}
ALSO_CALLS_ONLY(hook_compat, bdb_module)

SCENARIO(hook_compat, settrace_raises, SUPPORTED)
{
	expect_as_bare(python, "settrace_raises", NULL, 300, python->minor >= REFUSALS_FROM);
}
ALSO_CALLS_ONLY(hook_compat, settrace_raises)

/* 3.11: the return that the trace function refused has no event of its own; the call ends with the one around it. */
SCENARIO(hook_compat, settrace_raises_at_return, SUPPORTED)
{
	expect_as_bare(python, "settrace_raises_at_return", NULL, 300, python->minor != 11);
}
ALSO_CALLS_ONLY(hook_compat, settrace_raises_at_return)

/* Until 3.9 Python counts trace functions; evprof's, which records lines in threads, is not among them. */
SCENARIO(hook_compat, settrace_in_other_threads, SUPPORTED)
{
	python_needs(python, "ctypes");
	expect_as_bare(python, "settrace_in_other_threads", "EVPROF_EVENTS=call,line", 300, true);
}

SCENARIO(hook_compat, setprofile_raises, SUPPORTED)
{
	expect_as_bare(python, "setprofile_raises", NULL, python->minor >= REFUSALS_FROM ? 300 : ANY,
		       python->minor >= REFUSALS_FROM);
}
ALSO_CALLS_ONLY(hook_compat, setprofile_raises)

SCENARIO(hook_compat, handler_raises, SUPPORTED)
{
	expect_as_bare(python, "handler_raises", NULL, ANY, python->minor >= REFUSALS_FROM);
}
ALSO_CALLS_ONLY(hook_compat, handler_raises)

/* ---- sys.monitoring ---------------------------------------------------------------------------------------------- */

TOOL(monitoring_each, 1800)
TOOL(monitoring_looks, 300)
TOOL(monitoring_disables, 300)

/* A tool that comes after evprof (0) and raises at an event: both are recorded, the event and the exception. */
SCENARIO(hook_compat, monitoring_raises, SUPPORTED)
{
	expect_as_bare(python, "monitoring_raises", NULL, ANY, true);
}

/* Whatever events the tool has, and whether evprof comes before it (5) or after it (0): each end has its beginning. */
TOOL(monitoring_raises_anywhere, ANY)

/* The place of the exception is no place in the code. */
TOOL(monitoring_raises_at_branch, ANY)

/* Where the program has all six ids, evprof says so and goes on when there is one again. */
SCENARIO(hook_compat, monitoring_all, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@hook_compat.py", "monitoring_all"});
	bool taken = python->minor >= 12;

	expect_as_bare(python, "monitoring_all", NULL, taken ? 200 : 300, true);
	expect(outcome, stderr_evprof_lines(outcome) == 1u + taken, "one line says that the ids are taken");
	expect(outcome, !taken || strstr(stderr_evprof_line(outcome, 0), "takes all ids of sys.monitoring"),
	       "the line says that the ids are taken");
}

/* ---- code objects ------------------------------------------------------------------------------------------------ */

SCENARIO(hook_compat, code_extra, SUPPORTED)
{
	python_needs(python, "ctypes");
	expect_as_bare(python, "code_extra", NULL, 50, true);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

TOOL(tracemalloc_between, 500)

/*
 * Nothing that evprof keeps is the program's: the total is that of a bare run, to the byte, whatever start-up has
 * left. From 3.11 on Python itself keeps something at each code object for whoever listens, so the bare run has a hook
 * of its own, which does nothing; the frames of the running functions, which evprof looks at from 3.12 on, may be more.
 * One bare run in some ten on 3.11 has 1,200 bytes more than the others, so there are more turns where two differ.
 */
#define FRAMES_BYTES 4000
#define TURNS_MOST 4

static long traced_bytes(const struct outcome *outcome)
{
	long total = -1;

	sscanf(outcome->out, "300 %ld", &total);
	expect(outcome, total > 0, "it prints a total");
	return total;
}

SCENARIO(hook_compat, tracemalloc_totals, SUPPORTED)
{
	static const char *const starts[] = {"START=0", "START=235", "START=500"};
	static const char *const seed = "PYTHONHASHSEED=0"; /* sets of names may have another size with another one */
	const char *listen = python->minor >= 11 ? "LISTEN=1" : "LISTEN=";
	long more = python->minor >= 12 ? FRAMES_BYTES : 0;

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		struct outcome *outcome;
		long expected, total;
		unsigned turns = 0;

		do {
			expected = traced_bytes(run(.python = python, .how = JOB_BARE,
						    .args = {"@hook_compat.py", "tracemalloc_totals"},
						    .env = {starts[i], listen, seed}));
			outcome = run(.python = python, .args = {"@hook_compat.py", "tracemalloc_totals"},
				      .env = {starts[i], "LISTEN=", seed});
			total = traced_bytes(outcome);
		} while (labs(total - expected) > more && ++turns < TURNS_MOST);
		expect(outcome, labs(total - expected) <= more, "%ld bytes are traced, not %ld, with %s", total,
		       expected, starts[i]);
		json_decref(expect_trace(outcome, 1));
	}
}

static size_t blocks_of(const struct outcome *outcome, unsigned long long size)
{
	size_t count, found = 0;
	struct event *events = trace_dump(outcome->trace, &count);

	for (size_t i = 0; i < count; i++)
		found += events[i].size == size && strcmp(events[i].kind, "free") != 0;
	free(events);
	return found;
}

/* tracemalloc was there first: its end is not the end of evprof's recording. */
SCENARIO(hook_compat, tracemalloc_first, SUPPORTED)
{
	const char *const first = "PYTHONTRACEMALLOC=1";
	const unsigned long long header = python->minor >= 15 ? 32 : 0; /* of bytes, which a bytearray holds there */
	struct outcome *outcome =
	    run(.python = python, .args = {"@hook_compat.py", "tracemalloc_between"}, .env = {first});

	expect_as_bare(python, "tracemalloc_between", first, 500, true);
	expect(outcome, blocks_of(outcome, 100001 + header) == 60, "%zu blocks of 100000 bytes and a NUL",
	       blocks_of(outcome, 100001 + header));
	expect(outcome, blocks_of(outcome, 77778 + header) == 10, "%zu blocks of 77777 bytes and a NUL",
	       blocks_of(outcome, 77778 + header));
}

TOOL(faults, 300)

/* What it says of Python's allocator, but for the numbers, which differ from one bare run to the next. */
SCENARIO(hook_compat, allocator_statistics, SUPPORTED)
{
	static const char program[] = "import os, re, sys, tempfile\n"
				      "file = tempfile.TemporaryFile()\n"
				      "keep = os.dup(2)\n"
				      "os.dup2(file.fileno(), 2)\n"
				      "sys._debugmallocstats()\n"
				      "os.dup2(keep, 2)\n"
				      "file.seek(0)\n"
				      "for line in file.read().decode().split('\\n'):\n"
				      "    if not re.match(r' +\\d', line):\n" /* the sizes that are in use */
				      "        print(re.sub('[ 0-9,]+', ' ', line))\n";
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", program}};
	struct outcome *bare = job_run(&job);

	if (python_is_free_threaded(python))
		cr_skip_test("other threads use the allocator meanwhile");
	job.how = JOB_PRELOAD;
	expect_same(bare, job_run(&job));
}

SCENARIO(hook_compat, variables, SUPPORTED)
{
	bool parallel = python_is_free_threaded(python); /* it has mimalloc only */
	const char *const variables[] = {
	    "PYTHONMALLOC=debug",  parallel ? "PYTHONMALLOC=mimalloc" : "PYTHONMALLOC=malloc",
	    "PYTHONDEVMODE=1",	   parallel ? "PYTHONMALLOC=mimalloc_debug" : "PYTHONMALLOC=malloc_debug",
	    "PYTHONTRACEMALLOC=1", "PYTHONFAULTHANDLER=1"};

	for (size_t i = 0; i < (test_all() ? 6 : 2); i++) {
		expect_as_bare(python, "setprofile_in_thread", variables[i], 300, true);
		if (test_all())
			expect_as_bare(python, "cprofile", variables[i], 300, true);
		if (test_all())
			expect_as_bare(python, "tracemalloc_between", variables[i], 500, true);
	}
}

/* ---- tools at the prompt ----------------------------------------------------------------------------------------- */

SCENARIO(hook_compat, pdb, SUPPORTED)
{
	const char *const input = "b leaf\nc\nw\nbt\ncl 1\nn\ns\nu\np 1/0\nc\nq\n", *known = program_path("known.py");
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-m", "pdb", known}, .input = input);
	struct outcome *outcome = run(.python = python, .args = {"-m", "pdb", known}, .input = input);
	json_t *report;

	expect(bare, strstr(bare->out, "leaf()"), "the debugger stops in leaf");
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect_leaves(outcome, report, 1000);
	expect_balanced(outcome, report);
	json_decref(report);
}
ALSO_CALLS_ONLY(hook_compat, pdb)

/* The order of imports; their times differ. */
static char *imports(const struct outcome *outcome)
{
	char *lines = stderr_of_program(outcome), *result = calloc(1, strlen(lines) + 1);

	for (char *at = lines, *line; (line = strsep(&at, "\n"));)
		if (strrchr(line, '|'))
			strcat(strcat(result, strrchr(line, '|')), "\n");
	return result;
}

SCENARIO(hook_compat, importtime, SUPPORTED)
{
	const char *const known = program_path("known.py");
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-X", "importtime", known});
	struct outcome *outcome = run(.python = python, .args = {"-X", "importtime", known});

	expect(bare, strstr(imports(bare), "site"), "imports are recorded");
	expect(outcome, strcmp(imports(bare), imports(outcome)) == 0, "the same imports, not:\n%s", imports(outcome));
}

SCENARIO(hook_compat, coverage, SUPPORTED)
{
	static const char *const cores[] = {"COVERAGE_CORE=ctrace", "COVERAGE_CORE=sysmon", "COVERAGE_CORE=pytrace"};
	const char *path = package_variable(python, "coverage");

	for (size_t i = 0; i < (test_all() ? 3 : 2); i++) {
		struct outcome *bare = run(.python = python, .how = JOB_BARE,
					   .args = {"@hook_compat.py", "coverage_tool"}, .env = {path, cores[i]});
		struct outcome *outcome =
		    run(.python = python, .args = {"@hook_compat.py", "coverage_tool"}, .env = {path, cores[i]});
		json_t *report;

		/* The index has wheels without it only, for some builds. */
		if (strstr(bare->err, "can't import CTracer"))
			continue;
		expect(bare, bare->status == 0, "coverage runs");
		expect_same(bare, outcome);
		report = trace_report(outcome->trace, NULL);
		expect_leaves(outcome, report, 300);
		expect_balanced(outcome, report);
		json_decref(report);
	}
}
ALSO_CALLS_ONLY(hook_compat, coverage)
