/*
 * test_stack.c - evprof stack prints what the threads of a running Python do, recorded or not. The oracles are the
 * program's own faulthandler, and the program's source.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "compile.h"
#include "harness.h"
#include "packages.h"
#include "process.h"

/* Runs a program that compares what evprof stack says of it with what it knows itself. argument: may be NULL. */
static void expect_agreement(const struct python *python, enum job_how how, const char *program, const char *argument,
			     const char *what)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome =
	    run(.python = python, .how = how, .args = {program, build_path("evprof"), argument}, .timeout_s = 200);
	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "same\n"), "%s", what);
}

/* Functions, lines, names and waits of parked threads. */
SCENARIO(stack, parked, 6)
{
	expect_agreement(python, JOB_BARE, "@stacked.py", NULL, "the stacks are those of faulthandler");
}

/* The same, where Python's heap follows its variables. */
SCENARIO(stack, parked_without_random_addresses, SUPPORTED)
{
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		cr_skip_test("addresses stay random here");
	expect_agreement(python, JOB_BARE, "@stacked.py", NULL, "the stacks are those of faulthandler");
}

/* The same, and a thread has the id 32767, which is half of the address of each thread's memory. */
SCENARIO(stack, parked_with_an_id_in_all_addresses, SUPPORTED)
{
	struct outcome *outcome;

	python_needs(python, "ctypes");
	if (python->chrooted || geteuid() != 0 || personality(ADDR_NO_RANDOMIZE) < 0)
		cr_skip_test("this needs root, and addresses that are not random");
	outcome = run(.how = JOB_BARE, .timeout_s = 200,
		      .args = {"unshare", "--fork", "--pid", "--mount-proc", "sh", "-c",
			       "echo 32760 >/proc/sys/kernel/ns_last_pid && exec \"$@\"", "sh", python->command[0],
			       "@stacked.py", build_path("evprof")});
	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "same\n"), "the ids are the threads' own");
}

/* The same, while hooks of evprof are set in it. */
SCENARIO_SOME(stack, recorded, SUPPORTED)
{
	expect_agreement(python, JOB_PRELOAD, "@stacked.py", NULL, "the stacks are those of faulthandler");
}

/* The local variables of parked functions. */
SCENARIO(stack, locals, 6)
{
	expect_agreement(python, JOB_BARE, "@stacked_locals.py", NULL, "the variables are Python's own");
}

/* Native frames between the Python ones, of parked threads, in a program that goes on. */
SCENARIO(stack, native, 6)
{
	if (!dlopen("libunwind-ptrace.so.0", RTLD_LAZY))
		cr_skip("libunwind is not installed");
	expect_agreement(python, JOB_BARE, "@stacked_native.py", NULL, "the native frames are backtrace()'s");
}

/* A hundred looks at a busy program in make check-all. */
SCENARIO(stack, busy, 6)
{
	struct outcome *outcome;
	json_t *said;
	long long seen;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE, .timeout_s = 300,
		      .args = {"@stacks_busy.py", build_path("evprof"), test_at_length(python) ? "100" : "15"});
	said = json_loads(outcome->out, 0, NULL);
	expect(outcome, outcome->status == 0 && said, "it ends well");
	seen = json_integer_value(json_object_get(said, "seen"));
	expect(outcome, seen == (test_at_length(python) ? 300 : 45), "each thread is in each look, not %lld times",
	       seen);
	expect(outcome, json_array_size(json_object_get(said, "wrong")) == 0, "no stack is one that it cannot have");
	expect(outcome, json_integer_value(json_object_get(said, "whole")) * 2 > seen, "most are complete");
	expect(outcome, json_integer_value(json_object_get(said, "depth")) > 8, "and some are deep");
	json_decref(said);
}

/* A program that prints "ready" when it has begun. */
static struct background *start_job(const struct job *job)
{
	struct background *background = background_start(job);
	char *log = NULL;

	for (int i = 0; i < 600 && !(log && strstr(log, "ready")); i++) {
		free(log);
		usleep(50000);
		log = file_read(background->log, NULL);
	}
	free(log);
	return background;
}

static struct background *start(const char *program)
{
	return start_job(&(const struct job){.python = python_any(), .how = JOB_BARE, .args = {"-uc", program}});
}

static void expect_refusal(const char *target, const char *line)
{
	struct outcome *outcome = tool("stack", target);

	expect(outcome, outcome->status == 2 && strstr(outcome->err, line), "a line has: %s", line);
	expect(outcome, strchr(outcome->err, '\n') == outcome->err + strlen(outcome->err) - 1, "one line");
	expect(outcome, !outcome->out_bytes, "nothing is printed");
}

/* What people see, and which processes a name means. */
SCENARIO(stack, by_name, SCENARIO_ONCE)
{
	struct background *one, *other;
	struct outcome *outcome;
	json_t *said;

	(void)python;
	one = start("import time\ndef naps(): print('ready'); time.sleep(60)\nnaps()");
	other = background_start(&(const struct job){.how = JOB_BARE, .args = {"/bin/sleep", "60"}});
	outcome = tool("stack", text("%d", (int)one->pid));
	expect(outcome,
	       outcome->status == 0 && strstr(outcome->out, "MainThread: sleeping (") &&
		   strstr(outcome->out, "\n    naps (<string>:2)\n    <module> (<string>:3)\n"),
	       "the stack is there");
	outcome = tool("stack", "--json", "all");
	said = json_loads(outcome->out, 0, NULL);
	expect(outcome, outcome->status == 0 && json_array_size(json_object_get(said, "processes")) >= 1,
	       "all are many");
	json_decref(said);
	expect_refusal("no-such-program", "there is no Python process no-such-program that this user may read");
	expect_refusal("999999999", "there is no process 999999999");
	expect_refusal(text("%d", (int)other->pid), "is no CPython");
	outcome = tool("stack");
	expect(outcome, outcome->status == 2, "a target is needed");
	expect(outcome, kill(one->pid, 0) == 0, "the program goes on");
	background_stop(other);
	background_stop(one);
}

#define SYSTEM_PYTHON "/usr/bin/python3"
#define USER "12345"

/* Of two processes of a name, one is another user's: it has a line, and the exit status shows it. */
SCENARIO(stack, by_name_of_two_users, SCENARIO_ONCE)
{
	static const char code[] = "import time; open('/proc/self/comm', 'w').write('naps-of-two'); print('ready')\n"
				   "while 1: time.sleep(1)";
	struct background *own, *other;
	struct outcome *outcome;

	(void)python;
	if (geteuid() != 0 ||
	    run(.how = JOB_BARE, .args = {"setpriv", "--reuid", USER, "%B/evprof", "--version"})->status)
		cr_skip_test("needs root, setpriv, and a build folder that others may read");
	own = start_job(&(const struct job){.python = python_any(), .how = JOB_BARE, .args = {"-uc", code}});
	other = start_job(&(const struct job){
	    .how = JOB_BARE,
	    .args = {"setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", SYSTEM_PYTHON, "-uc", code}});
	outcome = tool("stack", "naps-of-two");
	expect(outcome,
	       outcome->status == 0 && strstr(outcome->out, text("%d", (int)own->pid)) &&
		   strstr(outcome->out, text("%d", (int)other->pid)),
	       "root may read both");
	outcome = run(.how = JOB_BARE, .args = {"setpriv", "--reuid", USER, "--regid", USER, "--clear-groups",
						"%B/evprof", "stack", "naps-of-two"});
	expect(outcome, outcome->status == 1 && strstr(outcome->out, text("%d", (int)other->pid)), "the own is there");
	expect(outcome, strstr(outcome->err, text("process %d is user 0's", (int)own->pid)), "the other has a line");
	background_stop(other);
	background_stop(own);
}

/* It is not stopped by a look, and one that is stopped is seen as such. */
SCENARIO(stack, stopped, SCENARIO_ONCE)
{
	struct background *loop = start("import time; print('ready')\nwhile 1: time.sleep(0.001)");
	struct outcome *outcome = NULL;

	(void)python;
	kill(loop->pid, SIGSTOP);
	for (int i = 0; i < 50 && !(outcome && strstr(outcome->out, ": stopped")); i++) {
		usleep(100000);
		outcome = tool("stack", text("%d", (int)loop->pid));
	}
	expect(outcome,
	       outcome->status == 0 && strstr(outcome->out, "MainThread: stopped\n    <module> (<string>:2)\n"),
	       "it is stopped in its line");
	kill(loop->pid, SIGCONT);
	background_stop(loop);
}

/* The list of threads, and where the first of them is, change while they are read. */
SCENARIO(stack, while_threads_begin_and_end, 6)
{
	expect_agreement(python, JOB_BARE, "@churning.py", NULL, "each look has those that wait");
}

/* A thread that is in no function of Python now. */
SCENARIO(stack, without_a_function, 6)
{
	const char *library = compile("entering.c", "entering.so", COMPILE_PLAIN);
	struct outcome *outcome;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .how = JOB_BARE, .args = {"@idle.py", library, build_path("evprof")});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, ")\n    (no Python function)\n"), "it is in none");
	expect(outcome,
	       strstr(outcome->out, "    <module> (") && strstr(outcome->out, "/idle.py:28)\n") &&
		   !strstr(outcome->out, "too fast"),
	       "the other one is in its line");
}

static void expect_greenlets(const struct python *python, const char *package)
{
	const char *path;
	struct outcome *outcome;

	python_needs(python, "ctypes");
	path = package_variable(python, package);
	outcome = run(.python = python, .how = JOB_BARE, .env = {path},
		      .args = {"@stacked_greenlets.py", build_path("evprof"), package});
	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "same\n"),
	       "the stacks of greenlets are those of gr_frame");
}

SCENARIO(stack, greenlets, SUPPORTED)
{
	expect_greenlets(python, "greenlet");
}

SCENARIO(stack, greenlets_of_gevent, SUPPORTED)
{
	expect_greenlets(python, "gevent");
}

/* Tasks of asyncio and of other loops. */
SCENARIO(stack, suspended, SUPPORTED)
{
	expect_agreement(python, JOB_BARE, "@suspended.py", NULL, "the tasks are those of asyncio");
}

/* Objects are in lists of the collector's own meanwhile. */
SCENARIO(stack, suspended_while_garbage_is_collected, SUPPORTED)
{
	expect_agreement(python, JOB_BARE, "@suspended.py", "collected", "the tasks are those of asyncio");
}
