/*
 * test_attach_sample.c - evprof attach --sample sees what a Python does, and the Python does not see it: the program
 * measures its own functions, and looks at its own descriptors, threads and mappings (programs/sampled_outside.py).
 */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

static void expect_how(const struct outcome *outcome, const char *trace, const char *how)
{
	json_t *info = trace_info(trace);
	const char *found =
	    json_string_value(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "how"));

	expect(outcome, found && !strcmp(found, how), "the trace says how it ended: %s", found ? found : "");
	expect(outcome, json_integer_value(json_object_get(info, "lost")) == 0, "nothing is lost");
	json_decref(info);
}

SCENARIO(attach_sample, shares, 6)
{
	struct outcome *outcome = run(.python = python, .how = JOB_BARE, .timeout_s = 300,
				      .args = {"@sampled_outside.py", build_path("evprof"), "sampled.evp", "4s"});
	json_t *said = json_loads(outcome->out, 0, NULL), *report;
	char *trace = text("%s/sampled.evp", outcome->directory);
	double brief, lasting;

	expect(outcome, outcome->status == 0 && said, "it ends well and prints JSON");
	expect(outcome, json_integer_value(json_object_get(said, "status")) == 0, "the tool ends well: %s",
	       json_string_value(json_object_get(said, "said")));
	expect(outcome, json_equal(json_object_get(said, "before"), json_object_get(said, "during")),
	       "nothing is loaded into it, and nothing traces it");
	expect_how(outcome, trace, "detached");
	report = trace_report(trace, NULL);
	brief = report_seconds(report, "sampled_outside.py", "short");
	lasting = report_seconds(report, "sampled_outside.py", "long");
	/* A sampler that gets no processor for a while errs by that while. */
	expect(outcome, lasting > brief && brief > 0, "short has %f s, long %f s; by itself: %s", brief, lasting,
	       json_dumps(json_object_get(said, "spent"), 0));
	expect(outcome,
	       report_seconds(report, "sampled_outside.py", "waits") >= 0 &&
		   report_calls(report, "sampled_outside.py", "waits") == 1,
	       "the other thread is in it, too");
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(said);
}

/* A program that says when it runs. */
static struct background *start_loop(const struct python *python, const char *seconds)
{
	struct background *loop = background_start(&(const struct job){
	    .python = python,
	    .how = JOB_BARE,
	    .args = {"-c",
		     "import sys, time\ndef work(): time.sleep(0.001)\nend = time.time() + float(sys.argv[1])\n"
		     "while time.time() < end: work()",
		     seconds}});

	for (time_t end = time(NULL) + 120;
	     !strstr(tool("stack", text("%d", (int)loop->pid))->out, "work") && time(NULL) < end;)
		usleep(10000);
	return loop;
}

SCENARIO(attach_sample, until_the_program_ends, 6)
{
	struct background *loop = start_loop(python, "4");
	char *trace = text("%s.evp", loop->log);
	struct outcome *outcome = tool("attach", "--sample", "-o", trace, text("%d", (int)loop->pid));

	expect(outcome, outcome->status == 0, "the tool ends with the program");
	expect_how(outcome, trace, "exit");
	background_wait(loop);
}

/* The main interpreter is sampled, although the main thread has a state in a newer one, too. */
SCENARIO(attach_sample, with_another_interpreter, 8)
{
	static const char program[] =
	    "import importlib, sys, time\n"
	    "name = '_interpreters' if sys.version_info >= (3, 13) else '_xxsubinterpreters'\n"
	    "other = importlib.import_module(name).create()\n"
	    "def work():\n    time.sleep(0.001)\n"
	    "while True: work()\n";
	struct background *loop =
	    background_start(&(const struct job){.python = python, .how = JOB_BARE, .args = {"-c", program}});
	char *trace = text("%s.evp", loop->log), *pid = text("%d", (int)loop->pid);
	struct outcome *outcome;
	json_t *report;

	for (time_t end = time(NULL) + 120; !strstr(tool("stack", pid)->out, "work") && time(NULL) < end;)
		usleep(10000);
	outcome = tool("attach", "--sample", "--for=1s", "-o", trace, pid);
	background_stop(loop);
	expect(outcome, outcome->status == 0, "it is sampled");
	report = trace_report(trace, NULL);
	expect(outcome, report_seconds(report, "<string>", "work") > 0.3, "work has %f s",
	       report_seconds(report, "<string>", "work"));
	json_decref(report);
}

static void expect_no_switch(const char *verb, const char *argument, const struct background *loop)
{
	const char *pid = text("%d", (int)loop->pid);
	struct outcome *outcome = argument ? tool(verb, argument, pid) : tool(verb, pid);

	expect(outcome, outcome->status == 2 && strstr(outcome->err, "sampled from outside"), "%s says why not", verb);
	expect(outcome, outcome->seconds < 2, "%s does not wait for what cannot come", verb);
}

/* Nothing is loaded that could follow. */
SCENARIO_SOME(attach_sample, is_not_switched, 6)
{
	struct background *loop = start_loop(python, "60");
	const char *pid = text("%d", (int)loop->pid);
	struct background *samples = background_start(&(const struct job){
	    .how = JOB_BARE,
	    .args = {build_path("evprof"), "attach", "--sample", "-o", text("%s.evp", loop->log), pid}});

	for (time_t end = time(NULL) + 60; !strstr(tool("status")->out, pid) && time(NULL) < end;)
		usleep(10000);
	expect_no_switch("stop", NULL, loop);
	expect_no_switch("start", NULL, loop);
	expect_no_switch("mark", "here", loop);
	expect_no_switch("detach", NULL, loop);
	background_stop(samples);
	background_stop(loop);
}

/* Its collector does not keep the process until that ends. */
SCENARIO_SOME(attach_sample, leaves_a_collector_that_cannot_write, 6)
{
	struct background *loop = start_loop(python, "60");
	const char *pid = text("%d", (int)loop->pid);
	struct outcome *outcome = tool("attach", "--sample", "--for=1s", "-o", "/proc/nonexistent/x.evp", pid);

	expect(outcome, outcome->status == 2 && strstr(outcome->err, "cannot create /proc/nonexistent/x.evp"), "why");
	for (time_t end = time(NULL) + 10; tool("status", pid)->status != 2 && time(NULL) < end;)
		usleep(10000);
	outcome = tool("status", pid);
	expect(outcome, outcome->status == 2, "no collector has the process");
	background_stop(loop);
}

static void expect_refusal(const char *pid, const char *option, const char *line)
{
	struct outcome *outcome = tool("attach", "--sample", option, "--for=1s", pid);

	expect(outcome, outcome->status == 2 && strstr(outcome->err, line), "a line has: %s", line);
}

SCENARIO(attach_sample, refusals, SCENARIO_ONCE)
{
	struct background *sleeps =
	    background_start(&(const struct job){.how = JOB_BARE, .args = {"/bin/sleep", "60"}});
	char *pid = text("%d", (int)sleeps->pid);

	(void)python;
	expect_refusal("999999999", "-q", "there is no process 999999999");
	expect_refusal(pid, "-q", "is no CPython");
	expect_refusal(pid, "--keep=1s", "--sample goes without");
	expect_refusal(pid, "--events=call", "--sample goes without");
	expect_refusal(pid, "--sample=0", "allowed: 1 to 10000");
	background_stop(sleeps);
}
