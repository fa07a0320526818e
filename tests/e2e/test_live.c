/*
 * test_live.c - what is alive at the end and at the peak, by function: as tracemalloc has it in another run of the same
 * program, and as go tool pprof reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "strike.h"

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

/* However the program ends: what the interpreter gives back after that was alive. */
SCENARIO_SOME(live, ends_of_programs, SUPPORTED)
{
	static const char *const ends[] = {
	    "0",	   "__import__('sys').exit(3)", "1/0",
	    "os._exit(4)", "os.kill(os.getpid(), 9)",	"__import__('threading').Thread(target=keep).start()"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		const char *program = text("import os\n"
					   "kept = []\n"
					   "def keep():\n"
					   "    for _ in range(100): kept.append(bytes(5000))\n"
					   "keep()\n%s\n",
					   ends[i]);
		struct outcome *outcome = run(.python = python, .args = {"-c", program});
		struct outcome *result = tool("export", "-f", "folded", "--weight", "live", outcome->trace, "-o", "-");
		const char *at = result->out;
		unsigned found = 0;

		while ((at = strstr(at, ";keep (<string>:3) "))) {
			at += strlen(";keep (<string>:3) ");
			expect(result, atoi(at) >= 503300 && atoi(at) < 512000, "%s: keep holds %d", ends[i], atoi(at));
			found++;
		}
		expect(result, found == 1 + (i == 5), "%s: keep holds blocks in %u threads", ends[i], found);
	}
}

static void alive_as_tracemalloc_has_it(const struct python *python, const char *events, const char *keep_what,
					const char *how, int least)
{
	struct outcome *outcome, *judged;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE, .timeout_s = 120,
		      .args = {"@alive_by_stack.py", "%B/libevprof.so", "60"},
		      .env = {text("EVPROF_EVENTS=%s", events), "EVPROF_MEMORY_LINES=1", keep_what});
	expect(outcome, outcome->status == 0, "the program ends");
	keep(outcome, "oracle.json", outcome);
	keep(outcome, "live.txt", tool("export", "-f", "folded", "--weight", "live", outcome->trace, "-o", "-"));
	judged = run(.python = python_any(), .how = JOB_BARE,
		     .args = {"@judge_alive.py", text("%s/oracle.json", outcome->directory),
			      text("%s/live.txt", outcome->directory), text("%lld", first_pid(outcome)), "60", how});
	expect(judged, judged->status == 0 && atoi(judged->out) > least, "each stack holds what tracemalloc says");
}

/*
 * Where calls are not recorded, allocations have stacks of their own, with lines: recursion, callers that take turns,
 * generators, coroutines, exceptions, threads, code that dies, a thousand frames.
 */
SCENARIO(live, stacks_of_their_own, 6)
{
	alive_as_tracemalloc_has_it(python, "mem", NULL, NULL, 150);
}

/* The same of a trace that keeps what is alive, and no events. */
SCENARIO(live, kept_stacks, 6)
{
	alive_as_tracemalloc_has_it(python, "mem", "EVPROF_KEEP=alive", NULL, 150);
}

/* Where calls are recorded, allocations have the line at which the innermost function stands. */
SCENARIO(live, lines_with_calls, 6)
{
	alive_as_tracemalloc_has_it(python, "call,mem", NULL, "calls", 19);
}

/* ---- go tool pprof ---- */

/* What it says is the sum of the samples of that type and function, in bytes or blocks; 0 where it does not name it. */
static double pprof_flat(const struct outcome *outcome, const char *type, const char *unit, const char *granularity,
			 const char *name)
{
	struct outcome *top =
	    run(.how = JOB_BARE, .timeout_s = 300,
		.args = {"go", "tool", "pprof", text("-sample_index=%s", type), text("-unit=%s", unit), granularity,
			 "-top", "-nodefraction=0", "-edgefraction=0", "-nodecount=100000", "-output=/dev/stdout",
			 text("%s/profile.pb.gz", outcome->directory)});
	const char *line;

	if (top->status != 0 && strstr(top->err, "no such tool"))
		cr_skip_test("this go has no pprof");
	expect(top, top->status == 0 && strstr(top->out, text("Type: %s", type)), "go tool pprof reads %s", type);
	line = strstr(top->out, text(" %s\n", name));
	while (line && line > top->out && line[-1] != '\n')
		line--;
	return line ? atof(line) : 0;
}

/* bytes() of 1,000 and of 3,000 bytes, of which the ones are kept and the others are not. */
SCENARIO(live, go_tool_pprof, SCENARIO_ONCE)
{
	static const char *const program = "kept = []\n"
					   "def keep():\n"
					   "    for _ in range(400): kept.append(bytes(1000))\n"
					   "def drop():\n"
					   "    for _ in range(300): bytes(3000)\n"
					   "def both():\n"
					   "    keep(); drop()\n"
					   "both()\n";
	struct outcome *outcome, *result;
	double space, objects;

	(void)python;
	if (run(.how = JOB_BARE, .args = {"sh", "-c", "command -v go"})->status != 0)
		cr_skip_test("go is not installed");
	outcome = run(.python = python_any(), .args = {"-c", program});
	result = tool("export", "-f", "pprof", outcome->trace, "-o", text("%s/profile.pb.gz", outcome->directory));
	expect(result, result->status == 0, "it is exported");
	space = pprof_flat(outcome, "inuse_space", "B", "-functions", "keep");
	objects = pprof_flat(outcome, "inuse_objects", "count", "-functions", "keep");
	expect(result, space >= 400 * 1033 && space < 400 * 1033 * 1.03, "keep holds %f bytes", space);
	expect(result, objects >= 400 && objects < 420, "in %f blocks", objects);
	space = pprof_flat(outcome, "alloc_space", "B", "-functions", "drop");
	objects = pprof_flat(outcome, "alloc_objects", "count", "-functions", "drop");
	expect(result, space >= 300 * 3033 && space < 300 * 3033 * 1.03, "drop allocated %f bytes", space);
	expect(result, objects >= 300 && objects < 700, "in %f blocks", objects);
	expect(result, pprof_flat(outcome, "inuse_space", "B", "-functions", "drop") < 3000, "and holds none");
}

/* The same by line, where lines are recorded; with nothing but memory the type is that of Go's heap profiles. */
SCENARIO(live, go_tool_pprof_by_line, SCENARIO_ONCE)
{
	static const char *const events[] = {"EVPROF_EVENTS=call,c_call,mem,line", "EVPROF_EVENTS=mem"};
	static const char *const program = "kept = []\n"
					   "def keep():\n"
					   "    for _ in range(400):\n"
					   "        kept.append(bytes(1000))\n"
					   "        bytes(3000)\n"
					   "keep()\n";
	struct outcome *outcome, *top;
	double kept, dropped;

	(void)python;
	if (run(.how = JOB_BARE, .args = {"sh", "-c", "command -v go"})->status != 0)
		cr_skip_test("go is not installed");
	for (int i = 0; i < 2; i++) {
		outcome = run(.python = python_any(), .args = {"-c", program}, .env = {events[i]});
		tool("export", "-f", "pprof", outcome->trace, "-o", text("%s/profile.pb.gz", outcome->directory));
		kept = pprof_flat(outcome, "inuse_space", "B", "-lines", "keep <string>:4");
		dropped = pprof_flat(outcome, "inuse_space", "B", "-lines", "keep <string>:5");
		expect(outcome, kept >= 400 * 1033 && kept < 400 * 1033 * 1.03, "line 4 holds %f bytes", kept);
		expect(outcome, dropped < 3000, "line 5 holds %f", dropped);
		dropped = pprof_flat(outcome, "alloc_objects", "count", "-lines", "keep <string>:5");
		expect(outcome, dropped >= 400 && dropped < 420, "line 5 makes %f blocks", dropped);
	}
	top = run(.how = JOB_BARE, .timeout_s = 300,
		  .args = {"go", "tool", "pprof", "-top", text("%s/profile.pb.gz", outcome->directory)});
	expect(top, strstr(top->out, "Type: inuse_space"), "what is alive comes first");
}

/* One line says that blocks may look alive that are not. */
SCENARIO(live, after_losses, SCENARIO_ONCE)
{
	struct outcome *outcome = strike_run_with_losses(python_any(), NULL), *result;

	(void)python;
	result = tool("export", "-f", "folded", "--weight", "live", outcome->trace, "-o", "-");
	expect(result, result->status == 0 && strstr(result->err, "freed by one of them counts as alive"),
	       "the line is there");
	expect(result, strchr(result->err, '\n') == strrchr(result->err, '\n'), "and no other");
}
