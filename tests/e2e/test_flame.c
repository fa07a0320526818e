/*
 * test_flame.c - the formats of flame graphs and other profilers: each says what evprof report says, and the readers of
 * others take them.
 *
 * oracle_flame.py reads all formats by their rules and holds them against the report; oracle_shapes.py holds every
 * format with calls or inclusive times against what a program of many shapes has counted and stopped itself. Where they
 * are there, speedscope's own JSON schema, the Firefox Profiler's own reader and go tool pprof judge too; the first two
 * come from npm:
 *
 *   EVPROF_TEST_NPM    a folder in which npm has installed speedscope, ajv and @firefox-devtools/profiler-cli;
 *                      evprof/npm in the user's cache folder otherwise
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "packages.h"
#include "strike.h"

static const struct {
	const char *format;
	const char *file;
} exports[] = {
    {"folded", "folded.txt"},
    {"speedscope", "speedscope.json"},
    {"speedscope-sampled", "sampled.json"},
    {"pprof", "profile.pb.gz"},
    {"firefox", "firefox.json"},
    {"csv", "events.csv"},
    {"pstats", "stats.pstats"},
    {"html", "page.html"},
    {"callgrind", "callgrind.out"},
    {"chrome", "chrome.json"},
};

#define FLAME_EXPORTS 5 /* the others are not of this file, and judged by what the program says of itself */

static void keep(const struct outcome *outcome, const char *name, const struct outcome *printed)
{
	file_write(text("%s/%s", outcome->directory, name), printed->out, printed->out_bytes);
}

/* Writes all formats, report and diff, next to the trace. status: what a reader of that trace ends with. */
static void export_some(const struct outcome *outcome, int status, size_t count)
{
	struct outcome *result;

	for (size_t i = 0; i < count; i++) {
		result = tool("export", "-f", exports[i].format, outcome->trace, "-o",
			      text("%s/%s", outcome->directory, exports[i].file));
		expect(result, result->status == status, "export -f %s ends with %d", exports[i].format, status);
	}
	result = tool("report", "--json", outcome->trace);
	expect(result, result->status == status, "report ends with %d", status);
	keep(outcome, "report.json", result);
	result = tool("diff", "--json", outcome->trace, outcome->trace);
	expect(result, result->status == status, "diff ends with %d", status);
	keep(outcome, "diff.json", result);
}

static void export_all(const struct outcome *outcome, int status)
{
	export_some(outcome, status, FLAME_EXPORTS);
}

static void expect_same_in_all(const struct outcome *outcome)
{
	struct outcome *judge = run(.python = python_any(), .how = JOB_BARE,
				    .args = {"@../oracle_flame.py", outcome->directory}, .timeout_s = 120);

	expect(judge, judge->status == 0 && atoi(judge->out) > 0, "all formats say what the report says");
}

#define ALIKE(Name, ...)                                                                                               \
	SCENARIO_SOME(flame, Name, SUPPORTED)                                                                          \
	{                                                                                                              \
		struct outcome *outcome = run(.python = python, .args = {__VA_ARGS__});                                \
                                                                                                                       \
		export_all(outcome, 0);                                                                                \
		expect_same_in_all(outcome);                                                                           \
	}

ALIKE(known_work, "@known.py")
ALIKE(threads, "@threads.py")
ALIKE(processes, "@processes.py", "forks")
ALIKE(generators_and_exceptions, "@raises.py")
ALIKE(strange_names, "@names.py")
ALIKE(killed, "@ends.py", "SIGKILL") /* functions are open at its end */

/* What was recorded of a program of which many events are lost: stacks are taken anew after each gap. */
SCENARIO(flame, after_losses, SCENARIO_ONCE)
{
	struct outcome *outcome = strike_run_with_losses(python_any(), "EVPROF_EVENTS=call,c_call");

	(void)python;
	export_all(outcome, 0);
	expect_same_in_all(outcome);
}

/* ---- what the program says of itself ------------------------------------------------------------------------- */

#define TIMES_ARE_OFF 3 /* oracle_shapes.py */

/*
 * Calls and times of all formats that have any are those that the program has counted and stopped itself. Where only
 * times differ it runs again: what else runs on the machine may have come between the two stopwatches.
 */
static void expect_own_counts(const struct python *python, const char *events)
{
	struct outcome *outcome, *judge;
	int turn = 0;

	do {
		outcome = run(.python = python, .args = {"@shapes.py", "counted.json"},
			      .env = {text("EVPROF_EVENTS=%s", events), text("PYTHONPATH=%s", package_folder(python))});
		export_some(outcome, 0, sizeof(exports) / sizeof(*exports));
		judge = run(.python = python_any(), .how = JOB_BARE,
			    .args = {"@../oracle_shapes.py", outcome->directory}, .timeout_s = 120);
	} while (judge->status == TIMES_ARE_OFF && ++turn < 3);
	expect(judge, judge->status == 0 && atoi(judge->out) > 10, "all formats say what the program says");
}

SCENARIO(flame, shapes, SUPPORTED)
{
	expect_own_counts(python, "call,c_call,exception,mem");
}

SCENARIO_SOME(flame, shapes_calls, SUPPORTED)
{
	expect_own_counts(python, "call");
}

SCENARIO(flame, shapes_lines, SUPPORTED)
{
	expect_own_counts(python, "call,c_call,line");
}

/* Files of one name are distinguished by as much of their path as that needs. Each stops in work() and around it. */
SCENARIO_SOME(flame, folded_packages, SUPPORTED)
{
	static const char *const paths[] = {"one/__init__.py", "two/__init__.py", "two/sub/__init__.py", "main.py"};
#define WORKS(seconds)                                                                                                 \
	"import time\ndef work():\n begin = time.perf_counter()\n time.sleep(" seconds                                 \
	")\n print(time.perf_counter() - begin)\n"                                                                     \
	"begin = time.perf_counter()\nwork()\nprint(time.perf_counter() - begin)\n"
	static const char *const sources[] = {WORKS("0.01"), WORKS("0.02"), WORKS("0.04"),
					      "import one, two, two.sub\n"};
	char *directory = text("%s", run(.how = JOB_BARE, .args = {"mkdir", "-p", "one", "two/sub"})->directory);
	struct outcome *outcome, *result;
	char *own;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		file_write(text("%s/%s", directory, paths[i]), sources[i], strlen(sources[i]));
	outcome = run(.python = python, .directory = directory, .args = {"main.py"}, .env = {"EVPROF_EVENTS=call"});
	result = tool("export", "-f", "folded", outcome->trace, "-o", "-");
	own = outcome->out;
	for (int i = 0; i < 3; i++) {
		double least_ns = strtod(own, &own) * 1e9, most_ns = strtod(own, &own) * 1e9;
		const char *at = strstr(result->out, text(";work (%s:2) ", paths[i] + (i == 2 ? strlen("two/") : 0)));
		double ns = at ? atof(strchr(at, ')') + 1) : 0;

		expect(result, ns >= least_ns * 0.999 && ns < most_ns * 1.001, "work() of %s takes %f ns, not %f to %f",
		       paths[i], ns, least_ns, most_ns);
	}
	expect(result, strstr(result->out, ";<module> (main.py:1)"),
	       "a file of no other's name is called by that alone");
}

/* ---- readers of others ----------------------------------------------------------------------------------------- */

static bool has_command(const char *name)
{
	struct outcome *found = run(.how = JOB_BARE, .args = {"sh", "-c", text("command -v %s", name)});

	return found->status == 0;
}

/* The folder of a package that npm installed; skips the test where it is not there. */
static const char *npm_package(const char *package)
{
	const char *folder = getenv("EVPROF_TEST_NPM"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *path;

	if (!folder)
		folder =
		    cache && *cache ? text("%s/evprof/npm", cache) : text("%s/.cache/evprof/npm", home ? home : "");
	path = text("%s/node_modules/%s", folder, package);
	if (!has_command("node"))
		cr_skip_test("node is not installed");
	if (access(path, R_OK) != 0)
		cr_skip_test("the npm package %s is not in %s", package, folder);
	return path;
}

SCENARIO(flame, speedscope_schema, SCENARIO_ONCE)
{
	static const char *const code =
	    "const fs = require('fs'), [, ajv, schema, ...files] = process.argv;\n"
	    "const Ajv = require(ajv), read = name => JSON.parse(fs.readFileSync(name, 'utf8'));\n"
	    "const check = new (Ajv.default || Ajv)({strict: false}).compile(read(schema));\n"
	    "for (const name of files)\n"
	    "  if (!check(read(name))) { console.error(name, check.errors); process.exit(1); }\n"
	    "if (check({profiles: [{}]})) process.exit(2);\n";
	const char *ajv = npm_package("ajv");
	const char *schema = text("%s/dist/release/file-format-schema.json", npm_package("speedscope"));
	struct outcome *outcome = run(.python = python_any(), .args = {"@names.py"}), *judge;

	(void)python;
	export_all(outcome, 0);
	judge = run(.how = JOB_BARE,
		    .args = {"node", "-e", code, ajv, schema, text("%s/speedscope.json", outcome->directory),
			     text("%s/sampled.json", outcome->directory)});
	expect(judge, judge->status == 0, "speedscope's schema accepts both");
}

/* ---- the Firefox Profiler ---- */

static const char *profiler, *session;

#define PROFILER(...)                                                                                                  \
	run(.how = JOB_BARE, .args = {"node", profiler, __VA_ARGS__},                                                  \
	    .env = {text("PROFILER_CLI_SESSION_DIR=%s", session), "PROFILER_CLI_NO_SYMBOLICATE=1"}, .lingers = true)

/* Its daemon may need longer than the command waits for it. */
static void profiler_load(const struct outcome *outcome)
{
	struct outcome *result = PROFILER("load", text("%s/firefox.json", outcome->directory));

	for (int i = 0; i < 40 && result->status != 0; i++) {
		usleep(250000);
		result = PROFILER("status");
	}
	expect(result, result->status == 0, "the profiler loads the export");
}

/* Self time in ms of a function, over all threads, as the profiler sees it. */
static double profiler_self_ms(const char *function)
{
	struct outcome *result = PROFILER("thread", "list", "--json");
	json_t *list = json_loads(result->out, 0, NULL);
	const json_t *thread, *row;
	double sum = 0;
	size_t i, k;

	expect(result, list, "the profiler lists threads");
	json_array_foreach(json_object_get(list, "threads"), i, thread)
	{
		const char *handle = json_string_value(json_object_get(thread, "threadHandle"));
		struct outcome *functions =
		    PROFILER("thread", "functions", "--include-idle", "--thread", handle, "--json");
		json_t *root = json_loads(functions->out, 0, NULL);

		expect(functions, root, "the profiler lists functions of %s", handle);
		json_array_foreach(json_object_get(root, "functions"), k, row)
		{
			if (strcmp(json_string_value(json_object_get(row, "name")), function) == 0)
				sum += json_number_value(json_object_get(row, "selfSamples"));
		}
		json_decref(root);
	}
	json_decref(list);
	return sum;
}

static double report_own_ms(const char *trace, const char *function)
{
	json_t *report = trace_report(trace, NULL);
	const json_t *row;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(report, "functions"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "function")), function) == 0)
			sum += (double)json_integer_value(json_object_get(row, "tottime_ns")) / 1e6;
	}
	json_decref(report);
	return sum;
}

SCENARIO(flame, firefox_profiler, SCENARIO_ONCE)
{
	static const char *const functions[] = {"leaf", "work", "by_executor"};
	struct outcome *outcome, *result;

	(void)python;
	profiler = text("%s/dist/profiler-cli.js", npm_package("@firefox-devtools/profiler-cli"));
	if (run(.how = JOB_BARE, .args = {"node", profiler, "--version"})->status != 0)
		cr_skip_test("this node is too old for @firefox-devtools/profiler-cli");
	outcome = run(.python = python_any(), .args = {"@threads.py"});
	session = text("%s/session", outcome->directory);
	export_all(outcome, 0);
	profiler_load(outcome);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		double mine = report_own_ms(outcome->trace, functions[i]), its = profiler_self_ms(functions[i]);

		expect(outcome, mine > 0 && fabs(mine - its) < 0.01 + mine / 1e4,
		       "%s: %f ms in the report, %f ms in the profiler", functions[i], mine, its);
	}
	result = PROFILER("stop", "--all");
	expect(result, result->status == 0, "the profiler's daemon ends");
	outcome_settle(result);
}

/* ---- go tool pprof ---- */

SCENARIO(flame, go_tool_pprof, SCENARIO_ONCE)
{
	struct outcome *outcome, *top;
	const char *line;
	double mine, its;

	(void)python;
	if (!has_command("go"))
		cr_skip_test("go is not installed");
	outcome = run(.python = python_any(), .args = {"@threads.py"});
	export_all(outcome, 0);
	top = run(.how = JOB_BARE, .timeout_s = 300,
		  .args = {"go", "tool", "pprof", "-top", "-unit=ns", "-nodefraction=0", "-nodecount=100000",
			   text("%s/profile.pb.gz", outcome->directory)});
	if (top->status != 0 && strstr(top->err, "no such tool"))
		cr_skip_test("this go has no pprof");
	expect(top, top->status == 0 && strstr(top->out, "Type: time"), "go tool pprof reads the export");
	line = strstr(top->out, "100% of ");
	expect(top, line, "it adds up");
	its = atof(line + strlen("100% of ")) / 1e6;
	json_t *report = trace_report(outcome->trace, NULL);

	mine = json_number_value(json_object_get(report, "tottime")) * 1e3;
	expect(top, fabs(mine - its) < 0.01 + mine / 1e4, "%f ms in the report, %f ms in pprof", mine, its);
	json_decref(report);
	top = run(.how = JOB_BARE, .timeout_s = 300,
		  .args = {"go", "tool", "pprof", "-top", "-nodefraction=0", "-nodecount=100000",
			   text("%s/profile.pb.gz", outcome->directory)});
	expect(top, strstr(top->out, " <module>\n"), "names in angle brackets are there");
	expect(top, !strstr(top->out, "["), "and none has the name of its file");
	top = run(.how = JOB_BARE, .timeout_s = 300,
		  .args = {"go", "tool", "pprof", "-sample_index=calls", "-tagfocus=thread=named-2", "-top",
			   "-nodefraction=0", "-nodecount=100000", "-focus=^work$",
			   text("%s/profile.pb.gz", outcome->directory)});
	line = strstr(top->out, " leaf\n");
	expect(top, line, "leaf is in the thread named-2");
	while (line > top->out && line[-1] != '\n')
		line--;
	expect(top, atoi(line) == 100, "leaf is called 100 times in the thread named-2, not %d", atoi(line));
}
