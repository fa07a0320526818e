/*
 * test_use.c - the ways to use evprof: no variable set, evprof run, the host's daemon; and that the program does not
 * notice.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

/* What known.py's everything() does, in one process. */
static void expect_known(const struct outcome *outcome, const char *trace)
{
	json_t *report = trace_report(trace, NULL);

	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "leaf was called 1000 times, not %ld",
	       report_calls(report, "known.py", "leaf"));
	expect(outcome, report_calls(report, "known.py", "recurse") == 51, "recurse was called 51 times, not %ld",
	       report_calls(report, "known.py", "recurse"));
	expect(outcome, report_primitive_calls(report, "known.py", "recurse") == 1,
	       "recurse has one primitive call, not %ld", report_primitive_calls(report, "known.py", "recurse"));
	expect_balanced(outcome, report);
	json_decref(report);
}

SCENARIO(use, default_file, SCENARIO_ANY)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@known.py", "a b", "ä"});
	struct outcome *outcome = run(.python = python, .args = {"@known.py", "a b", "ä"});
	char *ending = text("-%d.evp", outcome->pid);
	const char *name;

	expect_same(bare, outcome);
	if (silent(python, outcome))
		return;
	json_decref(expect_trace(outcome, 1));
	name = strrchr(outcome->trace, '/') + 1;
	expect(outcome, strncmp(name, "evprof-known", 12) == 0, "the trace is called %s", name);
	expect(outcome, strlen(name) > strlen(ending) && !strcmp(name + strlen(name) - strlen(ending), ending),
	       "the trace is called %s and does not end with %s", name, ending);
	expect_closing_line(outcome);
	expect_known(outcome, outcome->trace);
}

SCENARIO(use, evprof_run, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@known.py", "x"});
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@known.py", "x"});

	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
	expect_known(outcome, outcome->trace);
}

/* multiprocessing has such helpers: they end a moment after the program, because it has. */
SCENARIO(use, evprof_run_waits_for_helpers, SUPPORTED)
{
	static const char program[] = "import os, time\n"
				      "begin, end = os.pipe()\n"
				      "if os.fork() == 0:\n"
				      "    os.close(end)\n"
				      "    os.read(begin, 1)\n"
				      "    time.sleep(0.1)\n"
				      "    os._exit(0)\n";
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"-c", program});

	expect(outcome, !strstr(outcome->err, "still run"), "the closing line comes when the helper has ended");
	json_decref(expect_trace(outcome, 2));
}

SCENARIO(use, evprof_run_statuses, SUPPORTED)
{
	static const char *const ends[] = {"exit3", "exception", "os_exit", "SIGTERM", "SIGKILL", "SIGINT"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@ends.py", ends[i]});
		struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@ends.py", ends[i]});

		expect_same(bare, outcome);
		json_decref(expect_trace(outcome, 1));
		expect_closing_line(outcome);
		expect_known(outcome, outcome->trace);
	}
}

/* The verb's own words: an option that is not there, no program, a program that is not there. */
SCENARIO(use, evprof_run_mistakes, SCENARIO_ONCE)
{
	static const char *const bad[][4] = {
	    {"run"}, {"run", "--"}, {"run", "--no-such-option", "--", "true"}, {"run", "--", "/nonexistent/program"}};
	static const int statuses[] = {125, 125, 125, 127};

	(void)python;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct outcome *outcome = tool_run(bad[i]);

		expect(outcome, outcome->status == statuses[i], "mistake %zu ends with %d, not %d", i, statuses[i],
		       outcome->status);
		expect(outcome, strncmp(outcome->err, "evprof", 6) == 0, "the message names evprof");
	}
}

SCENARIO(use, help_of_a_verb, SCENARIO_ONCE)
{
	struct outcome *outcome = tool("help", "report");

	(void)python;
	expect(outcome, outcome->status == 0 && strcmp(outcome->out, tool("report", "--help")->out) == 0,
	       "it is what report --help says");
	outcome = tool("help", "nonsense");
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "there is no verb \"nonsense\""),
	       "a verb that is not there");
}

SCENARIO(use, evprof_run_not_python, SCENARIO_ONCE)
{
	struct outcome *outcome;

	(void)python;
	outcome = run(.how = JOB_RUN, .args = {"sh", "-c", "echo out; exit 5"});
	expect(outcome, outcome->status == 5, "the status is that of the program");
	expect(outcome, strcmp(outcome->out, "out\n") == 0, "the output is that of the program");
	outcome = run(.how = JOB_RUN, .args = {"sh", "-c", "kill -TERM $$"});
	expect(outcome, outcome->status == -SIGTERM, "the program died by SIGTERM, and so must evprof run");
}

SCENARIO(use, several_at_once, SUPPORTED)
{
	const char *script = "for i in 1 2 3 4; do \"$@\" >/dev/null & done; wait";
	struct job job = {.python = NULL, .args = {"sh", "-c", script, "sh"}};
	struct outcome *outcome;
	int n = 4;

	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n] = "@known.py";
	outcome = job_run(&job);
	expect(outcome, outcome->traces == 4, "four processes that are not related make four traces, not %u",
	       outcome->traces);
	expect(outcome, stderr_evprof_lines(outcome) == 4, "one line from each");
}

SCENARIO(use, daemon_of_the_host, SUPPORTED)
{
	const char *script = "for i in 1 2 3; do \"$@\" & done; wait";
	struct outcome *first = run(.how = JOB_BARE, .args = {"mkdir", "traces"});
	char *socket = text("%s/sock", first->directory), *variable = text("EVPROF_SOCKET=%s", socket);
	char *folder = text("%s/traces", first->directory);
	struct background *daemon = background_start(&(struct job){
	    .how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", socket, "--output-dir", folder}});
	struct job job = {.env = {variable}, .args = {"sh", "-c", script, "sh"}, .lingers = true};
	struct outcome *outcome;
	int n = 4;

	background_listens(daemon, socket);
	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n] = "@known.py";
	outcome = job_run(&job);
	expect(outcome, outcome->traces == 0, "the daemon writes to its own folder, not to the program's");
	expect(outcome, background_stop(daemon) == 0, "the daemon ends with status 0: %s",
	       file_read(daemon->log, NULL));
	outcome_find_traces(outcome, folder);
	expect(outcome, outcome->traces == 3, "three processes make three traces, not %u", outcome->traces);
	expect_known(outcome, outcome->trace);
	json_decref(trace_info(outcome->trace));
}

/*
 * A user with more processes than the daemon has descriptors for: those over the limit are refused, run on, and leave
 * the daemon to others.
 */
SCENARIO(use, daemon_with_a_limit_for_each_user, SCENARIO_ONCE)
{
	const char *program = "import os, time\n"
			      "os.setuid(65534)\n"
			      "def work():\n time.sleep(0.01)\n"
			      "children = []\n"
			      "for _ in range(80):\n"
			      " pid = os.fork()\n"
			      " if pid == 0:\n"
			      "  work()\n"
			      "  time.sleep(5)\n"
			      "  os._exit(7)\n"
			      " children.append(pid)\n"
			      "assert all(os.waitpid(pid, 0)[1] == 7 << 8 for pid in children)\n";
	struct outcome *first = run(.how = JOB_BARE, .args = {"mkdir", "traces"}), *honest;
	char *socket = text("/tmp/evprof-limits-%d.sock", (int)getpid()), *variable = text("EVPROF_SOCKET=%s", socket);
	struct background *daemon, *greedy;
	char *log;

	(void)python;
	if (geteuid() != 0)
		cr_skip_test("only root can become another user");
	daemon = background_start(&(struct job){
	    .how = JOB_BARE,
	    .args = {"sh", "-c", "ulimit -n 128 && exec \"$@\"", "sh", "%B/evprof-collector", "--socket", socket,
		     "--allow-other-users", "--output-dir", text("%s/traces", first->directory)}});
	background_listens(daemon, socket);
	greedy = background_start(&(struct job){.python = python_any(), .args = {"-c", program}, .env = {variable}});
	sleep(2);
	honest = run(.python = python_any(), .args = {"@known.py"}, .env = {variable});
	expect(honest, strstr(honest->err, " events of 1 process, 0 lost, in "), "it has its closing line: %s",
	       honest->err);
	expect(honest, honest->seconds < 3, "the daemon has time for others: %.1f s", honest->seconds);
	expect(honest, background_wait(greedy) == 0, "who is refused runs on: %s", file_read(greedy->log, NULL));
	log = file_read(greedy->log, NULL);
	expect(honest, strstr(log, " events of 5 processes, 0 lost, in "),
	       "with a limit of 128 open files, that is four processes, and the first as root: %s", log);
	expect(honest, background_stop(daemon) == 0, "the daemon ends with status 0: %s", file_read(daemon->log, NULL));
}

/* What the daemon answers to evprof run is what the user reads: the daemon's own log is somebody else's. */
SCENARIO(use, daemon_of_another_user, SCENARIO_ONCE)
{
	struct outcome *first = run(.how = JOB_BARE, .args = {"mkdir", "traces"}), *outcome;
	char *socket = text("/tmp/evprof-other-%d.sock", (int)getpid());
	struct background *daemon;

	(void)python;
	if (geteuid() != 0)
		cr_skip_test("only root can become another user");
	daemon = background_start(&(struct job){
	    .how = JOB_BARE,
	    .args = {"%B/evprof-collector", "--socket", socket, "--output-dir", text("%s/traces", first->directory)}});
	background_listens(daemon, socket);
	chmod(socket, 0666);
	outcome = run(.how = JOB_BARE,
		      .args = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "%B/evprof", "run",
			       "--socket", socket, "--", "sh", "-c", "echo out; exit 5"});
	expect(outcome, outcome->status == 5 && strcmp(outcome->out, "out\n") == 0, "the program runs as it does bare");
	expect(outcome,
	       strcmp(outcome->err, "evprof: nothing was recorded: the collector serves user 0 only, not user 65534: "
				    "start it with --allow-other-users\n") == 0,
	       "one line says what to do");
	expect(outcome, background_stop(daemon) == 0, "the daemon ends with status 0: %s",
	       file_read(daemon->log, NULL));
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "run", "--socket", "/nonexistent/sock", "--", "true"});
	expect(outcome, outcome->status == 125 && strstr(outcome->err, "start evprof-collector there"),
	       "without a daemon a line says what to do");
}

/* The collector, which a child keeps alive, has no end of the program's pipes where it finds no /dev/null. */
SCENARIO(use, root_without_dev_null, SCENARIO_ONCE)
{
	const char *program = "import os, time\nif os.fork() == 0:\n os.closerange(0, 3)\n time.sleep(5)\n os._exit(0)";
	struct job job = {.args = {"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\"", "sh"},
			  .lingers = true};
	struct outcome *outcome;
	int n = 6;

	(void)python;
	if (geteuid() != 0)
		cr_skip_test("only root can mount");
	if (run(.how = JOB_BARE, .args = {"unshare", "--mount", "true"})->status)
		cr_skip_test("unshare is not allowed here");
	for (int i = 0; python_any()->command[i]; i++)
		job.args[n++] = python_any()->command[i];
	job.args[n++] = "-c";
	job.args[n] = program;
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0 && stderr_evprof_lines(outcome) == 1, "it is recorded");
	expect(outcome, outcome->eof_seconds - outcome->seconds < 2, "its output ends %.1f s after it",
	       outcome->eof_seconds - outcome->seconds);
	outcome_settle(outcome);
}

/* Where the host's daemon is gone nothing is written into the folders of services, unless that is asked for. */
SCENARIO(use, daemon_not_there, SUPPORTED)
{
	static const char twice[] = "import subprocess, sys\nprint(subprocess.call([sys.executable, '-c', 'pass']))";
	const char *missing = "EVPROF_SOCKET=/nonexistent/s";
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-c", twice});
	struct outcome *outcome = run(.python = python, .args = {"-c", twice}, .env = {missing});

	expect_same(bare, outcome);
	expect(outcome, strstr(outcome->err, "/nonexistent/s") && strstr(outcome->err, "is not recorded"),
	       "it is said that nothing is recorded, and why");
	expect(outcome, stderr_evprof_lines(outcome) == 1 && outcome->traces == 0,
	       "in one line for the tree, not %u, and no trace is written", stderr_evprof_lines(outcome));
	outcome = run(.python = python, .args = {"-c", twice}, .env = {missing, "EVPROF_FALLBACK=1"});
	expect_same(bare, outcome);
	expect(outcome, strstr(outcome->err, "a private collector is started") && outcome->traces == 1,
	       "where it is asked for there is one trace, not %u", outcome->traces);
	json_decref(expect_trace(outcome, 2));
	outcome = run(.python = python, .how = JOB_RUN, .args = {"-c", twice}, .env = {missing});
	expect(outcome, outcome->status == 125 && !outcome->out_bytes, "evprof run does not start the program");
	outcome = run(.python = python, .how = JOB_RUN, .args = {"-c", twice}, .env = {missing, "EVPROF_FALLBACK=1"});
	expect_same(bare, outcome);
	expect(outcome, strstr(outcome->err, "a private collector is started") && outcome->traces == 1,
	       "but where it is asked for: there is one trace, not %u", outcome->traces);
	json_decref(expect_trace(outcome, 2));
}

SCENARIO(use, paths_with_spaces_and_colons, SUPPORTED)
{
	static const char *const names[] = {"with space", "with:colon", "ümläut", "%p %n",
					    "quote'\"",	  "a;b&c",	"line\n", "\xff\xe9t\xe9"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .subdirectory = names[i]);

		json_decref(expect_trace(outcome, 1));
		expect_closing_line(outcome);
		expect(outcome,
		       strstr(outcome->err, names[i]) || strstr(outcome->err, "in ./") ||
			   strstr(outcome->err, "in evprof-"),
		       "the line names the file");
	}
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {"EVPROF_OUTPUT=a b:c %n.evp"});

	expect(outcome, strstr(outcome->trace, "/a b:c known"), "the trace is %s", outcome->trace);
	json_decref(expect_trace(outcome, 1));
}

/* What the closing line says to type is typed, in a shell. */
static void expect_command_works(const struct outcome *outcome)
{
	static const char before[] = "show it with: ";
	const char *command = strstr(outcome->err, before);
	struct outcome *shell;

	expect(outcome, command, "the line names a command");
	command = text("%.*s", (int)strcspn(command, "\n"), command); /* the summary of evprof run is below */
	shell = run(.how = JOB_BARE, .directory = outcome->directory,
		    .args = {"sh", "-c", text("PATH=%s:$PATH; %s", build_path(""), command + strlen(before))});
	expect(shell, shell->status == 0 && strstr(shell->out, "function calls"), "%s", command);
}

SCENARIO(use, the_command_can_be_copied, SUPPORTED)
{
	static const char *const names[] = {"EVPROF_OUTPUT=a b.evp", "EVPROF_OUTPUT=it's;$HOME.evp",
					    "EVPROF_OUTPUT=-n.evp"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		expect_command_works(run(.python = python, .args = {"@known.py"}, .env = {names[i]}));
		expect_command_works(run(.python = python, .how = JOB_RUN, .args = {"@known.py"}, .env = {names[i]}));
	}
}

/* A folder that cannot be made: the program runs on, one line says what was wrong. */
SCENARIO(use, output_that_cannot_be_written, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@known.py"}, .env = {"EVPROF_OUTPUT=/proc/nonexistent/x.evp"});

	expect(outcome, outcome->status == 0 && strstr(outcome->out, "arguments"), "the program runs on");
	expect(outcome, strstr(outcome->err, "/proc/nonexistent/x.evp"), "a line names the file");
	expect(outcome, stderr_evprof_lines(outcome) == 1, "one line, not %u", stderr_evprof_lines(outcome));
}

/* The folder is named from where the daemon stands, the trace from where the program does. */
SCENARIO(use, daemon_with_a_relative_folder, SUPPORTED)
{
	struct outcome *first = run(.how = JOB_BARE, .args = {"mkdir", "traces"});
	char *socket = text("%s/sock", first->directory), *variable = text("EVPROF_SOCKET=%s", socket);
	struct background *daemon = background_start(
	    &(struct job){.how = JOB_BARE,
			  .args = {"sh", "-c", "cd \"$1\" && exec \"$2\" --socket sock --output-dir traces", "sh",
				   first->directory, "%B/evprof-collector"}});

	background_listens(daemon, socket);
	expect_command_works(run(.python = python, .args = {"@known.py"}, .env = {variable}));
	expect_command_works(run(.python = python, .how = JOB_RUN, .args = {"@known.py"}, .env = {variable}));
	expect(first, background_stop(daemon) == 0, "the daemon ends with status 0: %s", file_read(daemon->log, NULL));
}

/* A run that cannot be recorded is not started; one line says so, with --quiet too. */
SCENARIO(use, quiet_but_for_failures, SUPPORTED)
{
	struct job job = {.how = JOB_BARE, .args = {"%B/evprof", "run", "-q", "-o", "/proc/nonexistent/x.evp", "--"}};
	struct outcome *outcome;
	int n = 6;

	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n] = "@known.py";
	outcome = job_run(&job);
	expect(outcome, outcome->status == 125 && !*outcome->out, "the program is not started");
	expect(outcome, strstr(outcome->err, "evprof run: cannot write to /proc/nonexistent/: "), "a line says so");
	expect(outcome, stderr_evprof_lines(outcome) == 1, "one line, not %u", stderr_evprof_lines(outcome));
	job.args[4] = "x.evp";
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0 && *outcome->trace, "it is recorded");
	expect(outcome, stderr_evprof_lines(outcome) == 0, "not a line, not %u", stderr_evprof_lines(outcome));
}

SCENARIO(use, preload_list, SUPPORTED)
{
	char *library = text("%s", build_path("libevprof.so"));
	static const char *const formats[] = {"LD_PRELOAD=libdl.so.2:%s", "LD_PRELOAD=%s:libdl.so.2",
					      "LD_PRELOAD=libdl.so.2 %s"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		char *variable = text(formats[i], library);
#pragma GCC diagnostic pop
		struct outcome *outcome =
		    run(.python = python, .args = {"@processes.py", "subprocesses"}, .env = {variable});

		json_decref(expect_trace(outcome, 3));
		free(variable);
	}
}

/* In a child in another folder, the loader would print on the program's stderr that it cannot find the library. */
SCENARIO(use, preload_relative, SUPPORTED)
{
	static const char *const lists[] = {"./libevprof.so", "./libevprof.so:libdl.so.2",
					    "$0/libevprof.so:./libevprof.so"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		char *line =
		    text("EVPROF_OUTPUT=$PWD/x.evp; export EVPROF_OUTPUT; cd \"$0\"; LD_PRELOAD=%s \"$@\"", lists[i]);
		struct job job = {.how = JOB_BARE, .args = {"sh", "-c", line, "%B"}};
		struct outcome *outcome;
		int n = 4;

		for (int k = 0; python->command[k]; k++)
			job.args[n++] = python->command[k];
		job.args[n++] = "-c";
		job.args[n] = "import subprocess; subprocess.check_call(['true'], cwd='/')";
		outcome = job_run(&job);
		expect(outcome, outcome->status == 0 && *outcome->trace, "%s: it is recorded", lists[i]);
		expect(outcome, stderr_evprof_lines(outcome) == 1 && !strstr(outcome->err, "ld.so"),
		       "%s: nothing but the closing line", lists[i]);
		free(line);
	}
}

/* A trace is readable while it grows, and what was written stays when the collector is killed; the program runs on. */
/* Neither the collector nor a sampler is a child of the program, and what started them is not accounted to it. */
SCENARIO(use, no_child_to_be_seen, SUPPORTED)
{
	static const char program[] = "import os, resource\n"
				      "def look(who):\n"
				      "    usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
				      "    print(who, usage.ru_maxrss, usage.ru_minflt, usage.ru_nvcsw, flush=True)\n"
				      "    try:\n"
				      "        print(os.waitpid(-1, os.WNOHANG | 0x40000000))\n" /* __WALL */
				      "    except ChildProcessError:\n"
				      "        print('no child')\n"
				      "look('first')\n"
				      "if not os.fork():\n"
				      "    look('forked')\n"
				      "    os._exit(0)\n"
				      "os.wait()\n";
	static const char *const events[] = {"EVPROF_EVENTS=call,mem", "EVPROF_EVENTS=sample"};

	if (python->chrooted)
		cr_skip_test("what leads into its root has children of its own");
	for (int i = 0; i < 2; i++) {
		struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", program}, .env = {events[i]}};
		struct outcome *bare = job_run(&job);

		job.how = JOB_PRELOAD;
		expect_same(bare, job_run(&job));
	}
}

SCENARIO(use, collector_killed, SUPPORTED)
{
	const char *folder = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct background *program =
	    background_start(&(struct job){.python = python, .args = {"@busy.py", "4"}, .directory = folder});
	struct outcome outcome = {.out = "", .err = ""};
	pid_t collector = 0;
	json_t *info;

	for (int i = 0; i < 300 && collector <= 0; i++) {
		usleep(10000);
		collector = process_child_named("evprof-collecto");
	}
	cr_assert(collector > 0, "no collector was started within 3 s: %s", file_read(program->log, NULL));
	usleep(1500000);
	outcome_find_traces(&outcome, folder);
	expect(&outcome, outcome.traces == 1, "the trace is there while the program runs");
	info = trace_info(outcome.trace);
	expect(&outcome, !json_is_true(json_object_get(info, "complete")), "the trace is not complete while it grows");
	kill(collector, SIGKILL);
	expect(&outcome, background_wait(program) == 0, "the program runs on without its collector: %s",
	       file_read(program->log, NULL));
	outcome.err = file_read(program->log, NULL);
	expect(&outcome, strstr(outcome.err, "busy done"), "the program did all it does");
	info = trace_info(outcome.trace);
	expect(&outcome, json_is_false(json_object_get(info, "complete")), "the trace says that it is not complete");
	expect(&outcome, info_events(info, "call") > 0, "what was written before can be read");
}

/* Ctrl-C goes to the whole group of the terminal: the trace is complete all the same, and a line says where it is. */
SCENARIO(use, interrupted_group, SUPPORTED)
{
	const char *folder = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct background *program =
	    background_start(&(struct job){.python = python, .args = {"@busy.py", "20"}, .directory = folder});
	struct outcome outcome = {.out = "", .err = ""};

	usleep(1500000);
	kill(-program->pid, SIGINT);
	expect(&outcome, background_wait(program) == -SIGINT, "the program dies by SIGINT: %s",
	       file_read(program->log, NULL));
	outcome.err = file_read(program->log, NULL);
	snprintf(outcome.directory, sizeof(outcome.directory), "%s", folder);
	outcome_settle(&outcome);
	json_decref(expect_trace(&outcome, 1));
	expect(&outcome, strstr(outcome.err, " 0 lost, in "), "the closing line is said");
}

/* The closing line goes to a pipe that nobody reads any more (`2>&1 | head`), or that is full. */
SCENARIO(use, stderr_that_nobody_reads, SUPPORTED)
{
	static const char *const pipes[] = {"broken", "full"};

	for (int i = 0; i < 2; i++) {
		struct outcome *outcome = run(.python = python, .args = {"@stderr_pipe.py", pipes[i]}, .timeout_s = 20);

		expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "ended\n"), "%s: it ends as bare",
		       pipes[i]);
		expect(outcome, outcome->seconds < 10, "%s: it is held up for %.2f s", pipes[i], outcome->seconds);
		json_decref(expect_trace(outcome, 1));
	}
}

/* A background job that writes nothing itself is not stopped for evprof's line (stty tostop). */
SCENARIO_SOME(use, stderr_that_stops_jobs, SUPPORTED)
{
	struct job job = {.how = JOB_BARE, .args = {"python3", "@in_background.py", "env"}, .timeout_s = 20};
	struct outcome *outcome;
	int n = 3;

	job.args[n++] = text("LD_PRELOAD=%s", build_path("libevprof.so"));
	for (int i = 0; python->command[i]; i++)
		job.args[n++] = python->command[i];
	job.args[n++] = "-c";
	job.args[n] = "pass";
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, " 0 lost, in "), "it ends, and the line is there");
	json_decref(expect_trace(outcome, 1));
}

/*
 * The command ends with status 5 although stderr is one where a write ends who writes. A wrong variable gets its line
 * before Python ignores the signal; evprof run has its own line, after the program.
 */
static void expect_not_ended(const struct python *python, const char *before, const char *after)
{
	static const char *const starts[] = {"EVPROF_NO_SUCH=1 LD_PRELOAD=$0/libevprof.so \"$@\"",
					     "$0/evprof run -- \"$@\""};

	for (int i = 0; i < 2; i++) {
		char *line = text("%s%s%s", before, starts[i], after);
		struct job job = {.how = JOB_BARE,
				  .args = {"env", "--default-signal=PIPE,XFSZ", "sh", "-c", line, "%B"}};
		struct outcome *outcome;
		char *status;
		int n = 6;

		for (int k = 0; python->command[k]; k++)
			job.args[n++] = python->command[k];
		job.args[n++] = "-c";
		job.args[n] = "import signal, sys\n"
			      "for number in signal.SIGPIPE, signal.SIGXFSZ:\n"
			      "    signal.signal(number, signal.SIG_DFL)\n"
			      "sys.exit(5)";
		outcome = job_run(&job);
		status = file_read(text("%s/status", outcome->directory), NULL);
		expect(outcome, status && !strcmp(status, "5\n"), "%s: the status is %s", starts[i],
		       status ? status : "not there");
		free(status);
		free(line);
	}
}

SCENARIO(use, stderr_closed_by_its_reader, SUPPORTED)
{
	expect_not_ended(python, "{ sleep 0.3; ", "; echo $? >status; } 2>&1 >/dev/null | true");
}

SCENARIO(use, stderr_of_the_largest_size_allowed, SUPPORTED)
{
	expect_not_ended(python, "truncate -s 204800000 log; (ulimit -c 0; ulimit -f 400000; ",
			 ") 2>>log; echo $? >status");
}

/* The number of a closed stderr is that of the next file that the program opens. */
SCENARIO(use, stderr_closed_at_the_start, SUPPORTED)
{
	static const char *const starts[] = {"exec \"$@\" 2>&-", "exec \"$@\""};
	static const char program[] = "import os, sys\n"
				      "if len(sys.argv) > 1:\n"
				      "    os.close(2)\n"
				      "os.dup2(os.open('data', os.O_RDWR | os.O_CREAT), 2)\n"
				      "os.write(2, b'data')\n";

	for (int i = 0; i < 2; i++) {
		struct job job = {.args = {"sh", "-c", starts[i], "sh"}};
		struct outcome *outcome;
		char *data;
		int n = 4;

		for (int k = 0; python->command[k]; k++)
			job.args[n++] = python->command[k];
		job.args[n++] = "-c";
		job.args[n++] = program;
		job.args[n] = i ? "close" : NULL;
		outcome = job_run(&job);
		data = file_read(text("%s/data", outcome->directory), NULL);
		json_decref(expect_trace(outcome, 1));
		expect(outcome, data && !strcmp(data, "data"), "the file has what the program wrote, not %s",
		       data ? data : "nothing");
		free(data);
	}
}
