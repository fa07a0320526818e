/*
 * test_run.c - evprof run in the place of the program: its status, its signals, timers and job control, what it hands
 * down, and what it refuses before the program has started.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

static void add(struct job *job, int *n, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		job->args[(*n)++] = words[i];
}

#define ADD(Job, N, ...) add(Job, N, (const char *const[]){__VA_ARGS__, NULL})

static const char behind_a_shell[] = "this interpreter is started by a shell, which has signals of its own";

/* Where it is ignored, the kernel keeps no status of a child. The program gets the signal as it was. */
SCENARIO(run, status_where_sigchld_is_ignored, SUPPORTED)
{
	static const char program[] = "import signal, sys\n"
				      "print(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN)\n"
				      "sys.exit(3)\n";
	struct job job = {.how = JOB_BARE};
	struct outcome *outcome;
	char *folded;
	int n = 0;

	if (python->chrooted)
		cr_skip_test("%s", behind_a_shell);
	ADD(&job, &n, "env", "--ignore-signal=CHLD", "%B/evprof", "run", "--format", "folded", "-o", "x.evp", "--");
	add(&job, &n, (const char *const *)python->command);
	ADD(&job, &n, "-c", program);
	outcome = job_run(&job);
	expect(outcome, outcome->status == 3, "the status is %d, not 3", outcome->status);
	expect(outcome, strcmp(outcome->out, "True\n") == 0, "the program inherits that it is ignored");
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
	folded = file_read(text("%s/x.folded", outcome->directory), NULL);
	expect(outcome, folded, "the format is there");
	free(folded);
}

/* The collector is started by fork() then, and the program is recorded as ever. */
SCENARIO_SOME(run, clone_untraced_refused, SUPPORTED)
{
	struct job job = {.how = JOB_BARE};
	struct outcome *outcome;
	int n = 0;

	if (python->chrooted)
		cr_skip_test("%s", behind_a_shell);
	ADD(&job, &n, "python3", "@refuses_untraced.py", "%B/evprof", "run", "-o", "x.evp", "--");
	add(&job, &n, (const char *const *)python->command);
	ADD(&job, &n, "-c", "print('ran')");
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0 && strcmp(outcome->out, "ran\n") == 0, "the program runs");
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
}

static const char *const names[] = {"SIGHUP",  "SIGINT",  "SIGQUIT",  "SIGUSR1", "SIGALRM",
				    "SIGCONT", "SIGPIPE", "SIGWINCH", "SIGTERM", NULL};
static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGALRM, SIGCONT, SIGPIPE, SIGWINCH, SIGTERM};

/* Each signal of that name that the program had, in its own count. */
static int times_got(const char *directory, const char *name)
{
	char *got = file_read(text("%s/got", directory), NULL);
	int count = 0;

	for (char *at = got, *word; at && (word = strsep(&at, "\n"));)
		count += strcmp(word, name) == 0;
	free(got);
	return count;
}

static bool comes(const char *directory, const char *name)
{
	for (int i = 0; i < 2000; i++) {
		if (times_got(directory, name))
			return true;
		usleep(10000);
	}
	return false;
}

/* group: to the whole group that evprof run leads, with the program in it; else to evprof run alone. */
static void expect_signals_once(const struct python *python, bool group)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"true"});
	const char *folder = outcome->directory;
	struct job job = {.python = python, .how = JOB_RUN, .directory = folder, .args = {"@signals.py"}};
	struct background *program;
	int n = 1;

	add(&job, &n, names);
	program = background_start(&job);
	expect(outcome, comes(folder, "ready"), "the program is there: %s", file_read(program->log, NULL));
	for (size_t i = 0; names[i]; i++) {
		kill(group ? -program->pid : program->pid, numbers[i]);
		usleep(group ? 50000 : 0); /* what comes twice comes a little later */
		expect(outcome, comes(folder, names[i]), "%s comes: %s", names[i], file_read(program->log, NULL));
	}
	expect(outcome, background_wait(program) == 9, "the status is that of the program: %s",
	       file_read(program->log, NULL));
	for (size_t i = 0; names[i]; i++)
		expect(outcome, times_got(folder, names[i]) == 1, "%s comes once, not %d times", names[i],
		       times_got(folder, names[i]));
	outcome_settle(outcome);
	json_decref(expect_trace(outcome, 1));
}

/* As a supervisor does it: to the process that it has started. */
SCENARIO(run, signals_to_it_alone, SUPPORTED)
{
	expect_signals_once(python, false);
}

/* As os.killpg() and kill -- -PGID do it. */
SCENARIO(run, signals_to_the_group, SUPPORTED)
{
	expect_signals_once(python, true);
}

/* What is typed goes to the whole group, and comes once; whoever waits for evprof run sees the program stop. */
SCENARIO(run, job_of_a_terminal, SUPPORTED)
{
	struct job bare = {.python = python, .how = JOB_BARE, .args = {"@terminal.py"}}, job = bare;
	static const char *const program[] = {"@signals.py", "SIGINT",	"SIGQUIT", "SIGCONT",
					      "SIGUSR2",     "SIGTERM", NULL};
	struct outcome *expected, *outcome;
	int n = 1;

	if (python->chrooted)
		cr_skip_test("%s", behind_a_shell);
	add(&bare, &n, (const char *const *)python->command);
	add(&bare, &n, program);
	n = 1;
	ADD(&job, &n, "%B/evprof", "run", "--");
	add(&job, &n, (const char *const *)python->command);
	add(&job, &n, program);
	expected = job_run(&bare);
	expect(expected,
	       strcmp(expected->out,
		      "ready SIGINT SIGQUIT SIGCONT SIGUSR2 SIGCONT SIGTERM / stopped stopped ended 9\n") == 0,
	       "so it is without evprof");
	outcome = job_run(&job);
	expect_same(expected, outcome);
	json_decref(expect_trace(outcome, 1));
}

/* alarm() and setitimer() reach over an exec, and are meant for what runs then. */
SCENARIO(run, pending_alarm, SUPPORTED)
{
	static const char program[] = "import os, signal, sys\n"
				      "signal.signal(signal.SIGALRM, lambda *_: sys.exit(7))\n"
				      "if len(sys.argv) > 1:\n"
				      "    signal.alarm(2)\n"
				      "    os.execvp(sys.argv[1], sys.argv[1:])\n"
				      "signal.pause()\n";
	struct job job = {.python = python, .how = JOB_BARE, .args = {"-c", program, "%B/evprof", "run", "--"}};
	struct outcome *outcome;
	int n = 5;

	if (python->chrooted)
		cr_skip_test("%s", behind_a_shell);
	add(&job, &n, (const char *const *)python->command);
	ADD(&job, &n, "-c", program);
	outcome = job_run(&job);
	expect(outcome, outcome->status == 7, "the status is %d, not 7", outcome->status);
	json_decref(expect_trace(outcome, 1));
}

/* The runtime of the address sanitizer ends a program in which it does not come first. */
SCENARIO(run, behind_other_preloads, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .env = {"LD_PRELOAD=libdl.so.2"},
				      .args = {"-c", "import os, subprocess, sys\n"
						     "print(os.environ['LD_PRELOAD'])\n"
						     "subprocess.check_call([sys.executable, '-c', '1'])\n"});

	expect(outcome, strcmp(outcome->out, text("libdl.so.2:%s\n", build_path("libevprof.so"))) == 0,
	       "what was there comes first");
	json_decref(expect_trace(outcome, 2));
	outcome = run(.python = python, .how = JOB_RUN, .env = {"LD_PRELOAD=libdl.so.2"},
		      .options = {"--keep", "alive"}, .args = {"-c", "import os; print(os.environ['LD_PRELOAD'])"});
	expect(outcome, strcmp(outcome->out, text("%s:libdl.so.2\n", build_path("libevprof.so"))) == 0,
	       "evprof does, where native allocations are recorded");
	outcome = run(.python = python, .how = JOB_RUN, .env = {"LD_PRELOAD=libdl.so.2:/other/libevprof.so"},
		      .args = {"-c", "import os; print(os.environ['LD_PRELOAD'])"});
	expect(outcome, strcmp(outcome->out, text("libdl.so.2:%s\n", build_path("libevprof.so"))) == 0,
	       "another installation's library is left out");
}

SCENARIO(run, behind_the_address_sanitizer, SUPPORTED)
{
	struct outcome *path = run(.how = JOB_BARE, .args = {"gcc", "-print-file-name=libasan.so"});
	char *library = text("LD_PRELOAD=%.*s", (int)strcspn(path->out, "\n"), path->out), *both;
	struct outcome *outcome;

	if (path->status || path->out[0] != '/' || built_with_asan())
		cr_skip_test("no libasan.so here to be preloaded");
	both = text("%s:%s", library, build_path("libevprof.so"));
	outcome = run(.python = python, .how = JOB_RUN, .env = {library, "ASAN_OPTIONS=detect_leaks=0"},
		      .args = {"@known.py", "x"});
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
	outcome = run(.python = python, .how = JOB_BARE, .env = {both, "ASAN_OPTIONS=detect_leaks=0"},
		      .args = {"@known.py", "x"});
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
}

static void expect_trace_in(struct outcome *outcome, const char *folder)
{
	outcome_find_traces(outcome, text("%s/%s", outcome->directory, folder));
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
}

/* As docs/ci.md has it: traces go to a folder that nobody has made. */
SCENARIO(run, folders_are_made, SUPPORTED)
{
	expect_trace_in(run(.python = python, .how = JOB_RUN, .options = {"-o", "a/%n/x.evp"}, .args = {"@known.py"}),
			"a/known");
	expect_trace_in(run(.python = python, .env = {"EVPROF_OUTPUT=traces/%n.evp"}, .args = {"@known.py"}), "traces");
}

SCENARIO(run, lists_add_up, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .env = {"EVPROF_INCLUDE=everything"},
				      .options = {"--include", "leaf", "--include=recurse", "--exclude=x",
						  "--exclude=recurse", "--events=call"},
				      .args = {"@known.py"});
	json_t *report = trace_report(outcome->trace, NULL);

	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "leaf is included");
	expect(outcome, report_calls(report, "known.py", "recurse") == 0, "recurse is excluded");
	expect(outcome, report_calls(report, "known.py", "everything") == 0, "the option counts, not the variable");
	json_decref(report);
	outcome = run(.python = python, .how = JOB_RUN, .options = {"--include", "leaf", "--include=recurse"},
		      .args = {"@known.py"});
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "leaf is included");
	expect(outcome, report_calls(report, "known.py", "recurse") == 51, "recurse is included");
	json_decref(report);
}

static size_t count_traces_that_are_whole(const struct outcome *outcome, const char *const *paths)
{
	size_t count = 0;

	for (; *paths; paths++) {
		struct outcome *info = tool("info", text("%s/%s", outcome->directory, *paths));

		count += info->status == 0;
	}
	return count;
}

/* The second image knows nothing of the first one's session, and has its name. */
SCENARIO(run, exec_that_forgets_the_session, SUPPORTED)
{
	static const char program[] =
	    "import os, sys\n"
	    "if len(sys.argv) < 2:\n"
	    "    keep = {'LD_PRELOAD': os.environ['LD_PRELOAD'], 'EVPROF_OUTPUT': 'x-%p.evp'}\n"
	    "    os.execve(sys.executable, [sys.executable, '-c', open('/proc/self/cmdline').read()"
	    ".split(chr(0))[-2], 'again'], keep)\n";
	struct outcome *outcome;
	const char *paths[3] = {NULL};

	if (built_with_asan())
		cr_skip_test("the sanitizer wants its options, which the exec forgets");
	outcome = run(.python = python, .env = {"EVPROF_OUTPUT=x-%p.evp"}, .args = {"-c", program});
	paths[0] = text("x-%d.evp", outcome->pid);
	paths[1] = text("x-%d-2.evp", outcome->pid);
	expect(outcome, !strstr(outcome->err, "nothing is kept"), "nothing is lost");
	expect(outcome, outcome->traces == 2, "two traces, not %u", outcome->traces);
	expect(outcome, count_traces_that_are_whole(outcome, paths) == 2, "both are whole");
}

/* A library of the program's, of another version than the collector's, or for another thing altogether. */
SCENARIO(run, collector_has_an_environment_of_its_own, SUPPORTED)
{
	struct outcome *made =
	    run(.how = JOB_BARE, .args = {"sh", "-c", "mkdir odd && echo none >odd/libjansson.so.4"});
	const char *program = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n";
	char *path = text("LD_LIBRARY_PATH=%s/odd", made->directory);
	struct outcome *outcome =
	    run(.python = python, .args = {"-c", program}, .env = {path, "GLIBC_TUNABLES=glibc.malloc.check=3"});

	json_decref(expect_trace(outcome, 2));
	outcome = run(.python = python, .how = JOB_BARE,
		      .args = {"-c",
			       "import os, sys\n"
			       "os.environ['LD_LIBRARY_PATH'] = sys.argv[1]\n"
			       "os.environ['LD_PRELOAD'] = sys.argv[2]\n"
			       "os.environ['EVPROF_EVENTS'] = 'sample'\n"
			       "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(0.3)'])",
			       path + strlen("LD_LIBRARY_PATH="), "%B/libevprof.so"});
	json_decref(expect_trace(outcome, 1));
}

/* A child that outlives the program by some seconds, as daemons do. */
static const char goes_on[] = "import os, sys, time\n"
			      "if os.fork() == 0:\n"
			      "    os.setsid()\n"
			      "    null = os.open('/dev/null', os.O_RDWR)\n"
			      "    for fd in range(3): os.dup2(null, fd)\n"
			      "    time.sleep(float(sys.argv[1]))\n"
			      "    os._exit(0)\n";

SCENARIO_SOME(run, waits_for_processes_that_go_on, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .how = JOB_RUN, .options = {"--wait"}, .args = {"-c", goes_on, "1.5"});

	expect(outcome, outcome->seconds > 1.4, "it ends after %.2f s", outcome->seconds);
	expect_closing_line(outcome);
	json_decref(expect_trace(outcome, 2));
	outcome = run(.python = python, .how = JOB_RUN, .options = {"--wait=1", "-o", "x.evp"}, .lingers = true,
		      .args = {"-c", goes_on, "20"});
	expect(outcome, outcome->seconds > 0.9 && outcome->seconds < 15, "it ends after %.2f s", outcome->seconds);
	expect(outcome, strstr(outcome->err, "1 still runs and the trace grows"), "the line says so");
	for (int i = 0; i < 2; i++) {
		struct outcome *result = tool(i ? "report" : "info", outcome->trace);

		expect(result, result->status == 3, "what grows ends with 3, not %d", result->status);
	}
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "run", "--wait=soon", "--", "true"});
	expect(outcome, outcome->status == 125 && strstr(outcome->err, "\"soon\""), "a wrong value is refused");
}

/* It does not say that it has waited for what nobody could say any more. */
SCENARIO_SOME(run, collector_that_is_gone, SUPPORTED)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"true"});
	struct background *program = background_start(&(struct job){
	    .python = python, .how = JOB_RUN, .directory = outcome->directory, .args = {"@busy.py", "3"}});
	pid_t collector = 0;

	for (int i = 0; i < 1000 && collector <= 0; i++) {
		usleep(10000);
		collector = process_child_named("evprof-collecto");
	}
	cr_assert(collector > 0, "no collector was started");
	usleep(1000000);
	kill(collector, SIGKILL);
	expect(outcome, background_wait(program) == 0, "the status is the program's");
	outcome->err = file_read(program->log, NULL);
	expect(outcome, strstr(outcome->err, "the collector has ended without a summary"), "the line says so: %s",
	       outcome->err);
	expect(outcome, !strstr(outcome->err, "within"), "nobody has waited");
}

/* As a script is typed that nobody has made executable. */
SCENARIO(run, script_that_cannot_be_executed, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"cp", "@known.py", "."}), *made = outcome;

	(void)python;
	chmod(text("%s/known.py", made->directory), 0644);
	for (int i = 0; i < 2; i++) {
		outcome = run(.how = JOB_RUN, .directory = made->directory, .options = {"-o", i ? "b.evp" : "a.evp"},
			      .args = {i ? "./known.py" : "known.py", "x"});
		expect(outcome, outcome->status == 0 && strstr(outcome->out, "arguments"), "python3 runs it");
		expect(outcome, stderr_evprof_lines(outcome) == 1, "one line is said");
	}
	outcome = run(.how = JOB_RUN, .args = {"nosuch.py"});
	expect(outcome, outcome->status == 127, "one that is not there is not found, not %d", outcome->status);
}

/* The system has one word for all of them, and that is of another file. */
SCENARIO(run, what_cannot_be_run, SCENARIO_ONCE)
{
	static const char program[] = "#!/no/such/python -I\r\nprint()\r\n";
	struct outcome *made = run(.how = JOB_BARE, .args = {"mkdir", "folder"}), *outcome;
	const char *const wanted[][3] = {
	    {"./ends.py", "127", "./ends.py: its interpreter does not exist: #!/no/such/python -I\\r\n"},
	    {"folder", "127", "folder: it is a folder without __main__.py\n"},
	    {"./folder", "126", "./folder: it is a folder without __main__.py\n"},
	    {"./nosuch.py", "127", "./nosuch.py: No such file or directory\n"}};

	(void)python;
	file_write(text("%s/ends.py", made->directory), program, strlen(program));
	chmod(text("%s/ends.py", made->directory), 0755);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		outcome = run(.how = JOB_BARE, .directory = made->directory,
			      .args = {"%B/evprof", "run", "-q", wanted[i][0]});
		expect(outcome, outcome->status == atoi(wanted[i][1]), "%s ends with %s", wanted[i][0], wanted[i][1]);
		expect(outcome, strcmp(outcome->err, text("evprof run: cannot run %s", wanted[i][2])) == 0,
		       "its line: %s", outcome->err);
	}
}

/* What Python runs without its name in front: the program sees the arguments that Python alone would give it. */
SCENARIO(run, forms_without_an_interpreter, SCENARIO_ONCE)
{
	static const char shows[] = "import sys; print(sys.version_info[:2], sys.argv[1:])",
			  marked[] = "#!/bin/false\nimport sys; print(sys.version_info[:2], sys.argv[1:])";
	struct outcome *made = run(.how = JOB_BARE, .args = {"mkdir", "folder"}), *bare;
	const struct python *any = python_any();
	const char *forms[][2] = {{"-c", shows},       {"-m", "shows"},	     {"shows.py", NULL},
				  {"marked.py", NULL}, {"./plain.py", NULL}, {"folder", NULL}};

	file_write(text("%s/shows.py", made->directory), shows, strlen(shows));
	file_write(text("%s/folder/__main__.py", made->directory), shows, strlen(shows));
	/* execvp() gives it to the shell. */
	file_write(text("%s/plain.py", made->directory), shows, strlen(shows));
	chmod(text("%s/plain.py", made->directory), 0755);
	/* Without a path it is Python's, whatever it names. */
	file_write(text("%s/marked.py", made->directory), marked, strlen(marked));
	chmod(text("%s/marked.py", made->directory), 0755);
	(void)python;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct outcome *outcome;
		const char *first = forms[i][1] ? forms[i][1] : "-x", *second = forms[i][1] ? "-x" : "-c";

		bare = run(.python = any, .how = JOB_BARE, .directory = made->directory,
			   .args = {forms[i][0], first, second, forms[i][1] ? "-c" : NULL});
		outcome = run(.how = JOB_BARE, .directory = made->directory,
			      .args = {"%B/evprof", "run", "--python", any->command[0], "-qo", text("%d.evp", (int)i),
				       forms[i][0], first, second, forms[i][1] ? "-c" : NULL});
		expect(outcome, bare->status == 0 && outcome->status == 0 && strcmp(outcome->out, bare->out) == 0,
		       "%s: %s%s, not %s", forms[i][0], outcome->out, outcome->err, bare->out);
		expect(outcome, strstr(outcome->out, "'-x', '-c'"), "the program has its arguments: %s", outcome->out);
		expect(outcome, access(text("%s/%d.evp", made->directory, (int)i), R_OK) == 0, "%s is recorded",
		       forms[i][0]);
	}
	bare = run(.how = JOB_BARE, .directory = made->directory, .args = {"%B/evprof", "run", "-q", "./marked.py"});
	expect(bare, bare->status == 1, "with a path its own interpreter runs it: status %d", bare->status);
	bare = run(.how = JOB_BARE, .args = {"%B/evprof", "run", "-q", "--python", "nosuch", "-c", "pass"});
	expect(bare, bare->status == 127 && strstr(bare->err, "nosuch"), "a missing interpreter is not found: %s",
	       bare->err);
}

SCENARIO(run, words_that_are_misspelt, SCENARIO_ONCE)
{
	static const char *const slips[][4] = {{"reprot", NULL, "report?"},	{"rnu", NULL, "run?"},
					       {"report", "--sotr", "--sort?"}, {"run", "--inclde=x", "--include?"},
					       {"info", "--jsno", "--json?"},	{"export", "--frmat", "--format?"}};
	struct outcome *result;

	(void)python;
	for (size_t i = 0; i < sizeof(slips) / sizeof(*slips); i++) {
		result = tool_run((const char *const[]){slips[i][0], slips[i][1], NULL});
		expect(result, result->status > 0 && strstr(result->err, text("did you mean %s", slips[i][2])),
		       "%s is suggested", slips[i][2]);
	}
	result = tool(program_path("table.py"));
	expect(result, result->status == 2 && strstr(result->err, "did you mean evprof run /"),
	       "a program is to be run");
	result = tool(program_path("../../unit/old/version1.evp"));
	expect(result, result->status == 2 && strstr(result->err, "did you mean evprof report /"),
	       "a trace is to be shown");
	result = tool("frobnicate");
	expect(result, result->status == 2 && !strstr(result->err, "did you mean"), "nothing is near");
	result = tool("report", "--sort");
	expect(result, result->status == 2 && !strstr(result->err, "did you mean"), "that is what was written");
	result = tool("--help");
	expect(result, strstr(result->out, "examples:\n  evprof run") && strstr(result->out, "\n  evprof report"),
	       "the help ends with examples");
}

/* The folder gets another name while the trace is written: that is in the line, and the formats go there. */
SCENARIO(run, folder_that_is_renamed, SUPPORTED)
{
	static const char program[] = "import os, time\n"
				      "time.sleep(0.3)\n"
				      "os.rename('../before', '../after')\n";

	for (int i = 0; i < 2; i++) {
		struct outcome *outcome =
		    run(.python = python, .how = i ? JOB_RUN : JOB_PRELOAD, .subdirectory = "before",
			.env = {"EVPROF_FORMAT=folded", "EVPROF_OUTPUT=x.evp"}, .args = {"-c", program});
		int above = (int)(strrchr(outcome->directory, '/') - outcome->directory);
		char *after = text("%.*s/after", above, outcome->directory);

		outcome_find_traces(outcome, after);
		json_decref(expect_trace(outcome, 1));
		expect_closing_line(outcome);
		expect(outcome, strstr(outcome->err, "in x.evp; "), "as it is named from the folder");
		expect(outcome, access(text("%s/x.folded", after), R_OK) == 0, "the format is there");
	}
}
