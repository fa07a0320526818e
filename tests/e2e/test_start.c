/*
 * test_start.c - every way to start Python, and other programs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile.h"
#include "harness.h"

/* The same bare and profiled; the trace holds n calls of leaf. */
static struct outcome *expect_start(struct job job, long leaves)
{
	struct outcome *bare, *outcome;
	json_t *report;

	job.how = JOB_BARE;
	bare = job_run(&job);
	job.how = JOB_PRELOAD;
	outcome = job_run(&job);
	expect_same(bare, outcome);
	if (job.python && silent(job.python, outcome))
		return outcome;
	json_decref(expect_trace(outcome, 1));
	expect_closing_line(outcome);
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "", "leaf") == leaves, "leaf was called %ld times, not %ld", leaves,
	       report_calls(report, "", "leaf"));
	expect_balanced(outcome, report);
	json_decref(report);
	return outcome;
}

#define CODE                                                                                                           \
	"def leaf():\n"                                                                                                \
	"    pass\n"                                                                                                   \
	"for i in range(77):\n"                                                                                        \
	"    leaf()\n"                                                                                                 \
	"print('said')\n"

SCENARIO(start, command, SCENARIO_ANY)
{
	struct outcome *outcome = expect_start((struct job){.python = python, .args = {"-c", CODE, "x"}}, 77);

	expect(outcome, strstr(outcome->out, "said"), "the code ran");
}

/* A debugger that follows children stays with the program, which has none, and finds the one of evprof run. */
SCENARIO(start, debugger_follows_children, SUPPORTED)
{
	struct job job = {.args = {"gdb", "-q", "-batch", "-ex", "set follow-fork-mode child", "-ex"}};
	int first = 6, n;

	if (access("/usr/bin/gdb", X_OK) != 0)
		cr_skip_test("gdb is not installed");
	if (python->chrooted)
		cr_skip_test("what leads into its root is a child, too");
	for (int run = 0; run < 2; run++) {
		struct outcome *outcome;

		n = first;
		job.how = JOB_BARE;
		job.args[n++] = run ? "set width 0" : text("set environment LD_PRELOAD=%s", build_path("libevprof.so"));
		job.args[n++] = "-ex";
		job.args[n++] = "run";
		job.args[n++] = "--args";
		if (run) {
			job.args[n++] = "%B/evprof";
			job.args[n++] = "run";
			job.args[n++] = "--";
		}
		for (int i = 0; python->command[i]; i++)
			job.args[n++] = python->command[i];
		job.args[n++] = "-c";
		job.args[n++] = CODE "raise SystemExit(7)";
		job.args[n] = NULL;
		outcome = job_run(&job);
		expect(outcome, strstr(outcome->out, "exited with code 07]"), "it is in the program to its end");
		expect(outcome, !strstr(outcome->out, "evprof-collector"), "and never in the collector");
		json_decref(expect_trace(outcome, 1));
	}
}

SCENARIO(start, module, SCENARIO_ANY)
{
	expect_start((struct job){.python = python,
				  .args = {"-m", "known", "x"},
				  .env = {text("PYTHONPATH=%s", program_path(""))}},
		     1000);
}

SCENARIO(start, standard_input, SCENARIO_ANY)
{
	expect_start((struct job){.python = python, .input = CODE}, 77);
	expect_start((struct job){.python = python, .args = {"-"}, .input = CODE}, 77);
}

SCENARIO(start, program_reads_its_input, SUPPORTED)
{
	struct outcome *outcome =
	    expect_start((struct job){.python = python, .args = {"@known.py", "stdin"}, .input = "12\n34"}, 1000);

	expect(outcome, strstr(outcome->out, "input 12\n34"), "the program reads its input");
}

SCENARIO(start, flags, SUPPORTED)
{
	static const char *const flags[] = {"-E", "-S", "-s", "-B", "-O", "-u", "-bb", "-q", "-v"};

	for (size_t i = 0; i + 1 < sizeof(flags) / sizeof(*flags); i++)
		expect_start((struct job){.python = python, .args = {flags[i], "@known.py"}}, 1000);
	expect_start((struct job){.python = python, .args = {"-I", "-c", CODE}}, 77);
	expect_start((struct job){.python = python, .args = {"-I", "-S", "-E", "-c", CODE}}, 77);
	expect_start((struct job){.python = python, .args = {"-X", "dev", "-c", CODE}}, 77);
	expect_start((struct job){.python = python, .args = {"-X", "utf8", "-c", CODE}}, 77);
}

SCENARIO(start, allocators, SUPPORTED)
{
	static const char *const allocators[] = {"PYTHONMALLOC=debug", "PYTHONTRACEMALLOC=1", "PYTHONMALLOC=malloc",
						 "PYTHONMALLOC=pymalloc"};
	static const char *const of_free_threaded[] = {"PYTHONMALLOC=debug", "PYTHONTRACEMALLOC=1",
						       "PYTHONMALLOC=mimalloc", "PYTHONMALLOC=mimalloc_debug"};

	for (size_t i = 0; i < sizeof(allocators) / sizeof(*allocators); i++) {
		const char *variable = python_is_free_threaded(python) ? of_free_threaded[i] : allocators[i];
		struct outcome *outcome =
		    expect_start((struct job){.python = python, .args = {"-c", CODE}, .env = {variable}}, 77);
		json_t *info = trace_info(outcome->trace);

		expect(outcome, info_events(info, "malloc") > 100, "%s: allocations are recorded", variable);
		json_decref(info);
	}
}

SCENARIO(start, version_only, SCENARIO_ANY)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-V"});
	struct outcome *outcome = run(.python = python, .args = {"-V"});

	expect_same(bare, outcome);
	outcome = run(.python = python, .args = {"--no-such-option"});
	expect(outcome, outcome->status == 2, "a bad option ends with 2");
}

SCENARIO(start, syntax_error, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-c", "def ("});
	struct outcome *outcome = run(.python = python, .args = {"-c", "def ("});

	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
}

SCENARIO(start, virtual_environment, SUPPORTED)
{
	struct outcome *made, *outcome;
	struct python inside = *python;

	python_needs(python, "venv");
	made = run(.python = python, .how = JOB_BARE, .args = {"-m", "venv", "--without-pip", "of its own"});
	if (made->status != 0)
		cr_skip_test("%s cannot make a virtual environment", python->name);
	for (int i = 0; inside.command[i]; i++)
		if (!inside.command[i + 1])
			inside.command[i] = text("%s/of its own/bin/python", made->directory);
	outcome =
	    expect_start((struct job){.python = &inside, .args = {"-c", CODE "import sys; print(sys.prefix)"}}, 77);
	expect(outcome, strstr(outcome->out, "of its own"), "it ran in the virtual environment");
}

/* Anything of Python's in the trace names the interpreter. */
SCENARIO(start, info_names_the_process, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py", "first", "second"});
	json_t *info = expect_trace(outcome, 1);
	const json_t *process = info_process(info, outcome->pid), *argv = json_object_get(process, "argv");
	const char *version = json_string_value(json_object_get(process, "python"));

	expect(outcome, process, "info has process %d", outcome->pid);
	expect(outcome, version && strncmp(version, python->version, strlen(python->version)) == 0,
	       "the version is %s, not %s", python->version, version);
	expect(outcome, json_integer_value(json_object_get(process, "ppid")) == getpid(), "ppid is %d", getpid());
	expect(outcome, json_array_size(argv) >= 3, "argv holds the words");
	expect(outcome, !strcmp(json_string_value(json_array_get(argv, json_array_size(argv) - 1)), "second"),
	       "the last word is the last");
	expect(outcome, json_integer_value(json_object_get(info, "duration_ns")) > 1000000, "it took longer than 1 ms");
	json_decref(info);
}

/* Text that is not UTF-8 in the arguments does not stop anything. */
SCENARIO(start, arguments_that_are_not_text, SUPPORTED)
{
	expect_start((struct job){.python = python, .args = {"-c", CODE, "\xff\xfe bytes", "\xc3\xa4"}}, 77);
}

SCENARIO(start, environment_untouched, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@environment.py", "x"});
	struct outcome *outcome = run(.python = python, .args = {"@environment.py", "x"});

	expect_same(bare, outcome);
	outcome = run(.python = python, .how = JOB_RUN, .args = {"@environment.py", "x"});
	expect_same(bare, outcome);
}

SCENARIO(start, descriptors_untouched, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@descriptors.py"});
	struct outcome *outcome = run(.python = python, .args = {"@descriptors.py"});

	expect_same(bare, outcome);
	expect(outcome, strstr(bare->out, "end 0=") && strstr(bare->out, "child 0="), "the program shows them");
	json_decref(expect_trace(outcome, 2));
}

SCENARIO(start, errno_untouched, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@errno_kept.py"});
	struct outcome *outcome = run(.python = python, .args = {"@errno_kept.py"},
				      .env = {"EVPROF_RING_SIZE=64K", "EVPROF_ON_FULL=wait:60000"});

	expect(bare, strcmp(bare->out, "wrong 0\n") == 0, "a bare run keeps errno");
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 1));
}

SCENARIO(start, closes_all_descriptors, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@closes.py"});
	json_t *info = expect_trace(outcome, 1), *report = trace_report(outcome->trace, NULL);
	char *path = text("%s/verdict", outcome->directory), *verdict = file_read(path, NULL);

	expect(outcome, outcome->status == 0, "the program runs");
	expect(outcome, verdict && strcmp(verdict, "True True") == 0, "its files are its own: %s", verdict);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1500, "all is recorded: 1500 calls, not %ld",
	       report_calls(report, "known.py", "leaf"));
	json_decref(report);
	json_decref(info);
}

SCENARIO(start, pipes_see_their_end, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@eof.py"});

	expect(outcome, strcmp(outcome->out, "last line\n") == 0, "the output is there");
	expect(outcome, outcome->eof_seconds < outcome->seconds - 1,
	       "the pipes end when the program closes them, 1.5 s before its end: %.2f s, end %.2f s",
	       outcome->eof_seconds, outcome->seconds);
	json_decref(expect_trace(outcome, 1));
}

/* The first library of two records the process, as if it were alone. */
SCENARIO(start, two_installations, SUPPORTED)
{
	struct outcome *copied = run(.how = JOB_BARE, .args = {"cp", "%B/libevprof.so", "."}), *outcome;
	const char *other = text("%s/libevprof.so", copied->directory);

	outcome = run(.python = python, .how = JOB_BARE, .args = {"@known.py"},
		      .env = {text("LD_PRELOAD=%s:%s", build_path("libevprof.so"), other)});
	json_decref(expect_trace(outcome, 1));
	expect(
	    outcome,
	    strstr(outcome->err, text("evprof: two evprof libraries are loaded: %s records this process, %s does not\n",
				      build_path("libevprof.so"), other)),
	    "a line says which");
	expect(outcome, stderr_evprof_lines(outcome) == 2, "it is one, besides the closing line");
}

/* ---- not Python ------------------------------------------------------------------------------------------------- */

SCENARIO(start, other_programs, SCENARIO_ONCE)
{
	static const char *const programs[][5] = {
	    {"true"}, {"false"}, {"ls", "/"}, {"sh", "-c", "echo said; exit 9"}, {"cat", "/proc/self/comm"}};

	(void)python;
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct job job = {.how = JOB_BARE};
		struct outcome *bare, *outcome;

		memcpy(job.args, programs[i], sizeof(programs[i]));
		bare = job_run(&job);
		job.how = JOB_PRELOAD;
		outcome = job_run(&job);
		expect_same(bare, outcome);
		expect(outcome, stderr_evprof_lines(outcome) == 0, "%s: not a word is said", programs[i][0]);
		expect(outcome, outcome->traces == 0, "%s: no trace is made", programs[i][0]);
	}
}

SCENARIO(start, other_program_is_logged_at_info, SCENARIO_ONCE)
{
	struct outcome *outcome;

	(void)python;
	outcome = run(.args = {"true"}, .env = {"EVPROF_LOG=info"});
	expect(outcome, stderr_evprof_lines(outcome) == 1 && strstr(outcome->err, "true is not Python"),
	       "one line at EVPROF_LOG=info");
	outcome = run(.args = {"true"}, .env = {"EVPROF_LOG=warning"});
	expect(outcome, stderr_evprof_lines(outcome) == 0, "and none below");
}

/* Below 3.8: recorded, or silent with one line at EVPROF_LOG=info. */
SCENARIO_RANGE(start, old_python, SCENARIO_ANY, 7)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@threads.py"});
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"}, .env = {"EVPROF_LOG=info"});
	json_t *info;

	expect_same(bare, outcome);
	expect(outcome, stderr_evprof_lines(outcome) > 0, "at EVPROF_LOG=info a line is said");
	if (outcome->traces == 0)
		return;
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "call") > 1000 && info_events(info, "malloc") > 1000,
	       "calls and memory are recorded");
	json_decref(info);
}

static bool installed(const char *program)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"sh", "-c", "command -v \"$0\"", program});

	return outcome->status == 0;
}

SCENARIO(start, blender, SCENARIO_ONCE)
{
	struct outcome *outcome;
	json_t *report;

	(void)python;
	if (!installed("blender"))
		cr_skip_test("blender is not installed");
	if (built_with_asan())
		cr_skip_test("blender does not start with an empty library of the address sanitizer either");
	outcome = run(.args = {"blender", "--background", "--python", "@known.py"}, .timeout_s = 120);
	json_decref(expect_trace(outcome, 1));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "the script is recorded");
	json_decref(report);
}

SCENARIO(start, uwsgi, SCENARIO_ONCE)
{
	struct outcome *outcome;

	(void)python;
	if (!installed("uwsgi"))
		cr_skip_test("uwsgi is not installed");
	outcome = run(.how = JOB_BARE, .args = {"uwsgi", "--need-plugin", "python3", "--version"});
	if (outcome->status != 0)
		cr_skip_test("uwsgi has no plugin for Python 3");
	/* The application is loaded by the worker, whose parent is the master that it ends. */
	outcome = run(.args = {"uwsgi", "--need-plugin", "python3", "--socket", "wsgi.sock", "--wsgi-file", "@wsgi.py",
			       "--master", "--lazy-apps", "--enable-threads"},
		      .timeout_s = 60);
	json_decref(expect_trace(outcome, 0));
}

/* An embedder that was built by this machine's compiler: Python is loaded by dlopen, without a name known before. */
SCENARIO(start, embedder_by_dlopen, SUPPORTED)
{
	static const char *const probe = "import sys; lines = open('/proc/self/maps').read().split('\\n')\n"
					 "print([l.split()[-1] for l in lines if 'libpython' in l][0])";
	static const char *const ways[][2] = {
	    {"global", NULL}, {"local", NULL}, {"local", "PYTHONMALLOC=debug"}, {"fork", NULL}};
	struct outcome *outcome, *where;
	json_t *report;

	python_needs(python, "shared");
	where = run(.python = python, .how = JOB_BARE, .args = {"-c", probe});
	where->out[strcspn(where->out, "\n")] = '\0';
	outcome = run(.how = JOB_BARE, .directory = where->directory,
		      .args = {"cc", "-o", "embedder", "@embedder.c", "-ldl"});
	expect(outcome, outcome->status == 0, "the embedder is built");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		outcome = run(.args = {"./embedder", where->out, ways[i][0]}, .directory = where->directory,
			      .env = {text("PYTHONHOME=%s", python_home(python)), ways[i][1]});
		expect(outcome, outcome->status == 0 && strstr(outcome->out, "embedded"),
		       "the embedder runs Python code");
		expect(outcome, !strstr(outcome->out, "dlerror"), "%s: nothing is left for dlerror()", ways[i][0]);
		json_decref(expect_trace(outcome, 1));
		report = trace_report(outcome->trace, NULL);
		expect(outcome, report_calls(report, "", "leaf") == 33, "%s: leaf was called 33 times, not %ld",
		       ways[i][0], report_calls(report, "", "leaf"));
		expect_balanced(outcome, report);
		json_decref(report);
		cr_assert_eq(remove(outcome->trace), 0);
	}
}

/* The same bare and inherited by a program that is not Python, which finds its libraries by their callers. */
SCENARIO(start, dlopen_is_the_callers, SCENARIO_ONCE)
{
	static const char build[] =
	    "set -e; mkdir -p in/deps\n"
	    "cc -shared -fPIC -DLOADED=dep -o in/deps/dep.so \"$0\"\n"
	    "cc -shared -fPIC -DLOADED=needs -o in/needs.so \"$0\" -Lin/deps -l:dep.so\n"
	    "for name in loaded origin loaded2; do cc -shared -fPIC -DLOADED=$name -o in/$name.so \"$0\"; done\n"
	    "cc -shared -fPIC -DCALLER -o in/runpath.so \"$0\" -Wl,--enable-new-dtags,-rpath,'$ORIGIN'\n"
	    "cc -shared -fPIC -DCALLER -o in/rpath.so \"$0\" -Wl,--disable-new-dtags,-rpath,'$ORIGIN:$ORIGIN/deps'\n"
	    "cc -o loads \"$0\" -ldl -lpthread\n";
	struct outcome *built = run(.how = JOB_BARE, .args = {"sh", "-c", build, "@loads.c"}), *bare, *outcome;

	(void)python;
	expect(built, built->status == 0, "the program is built");
	bare = run(.how = JOB_BARE, .directory = built->directory, .args = {"./loads"});
	outcome = run(.directory = built->directory, .args = {"./loads"});
	expect(bare, bare->status == 0 && strstr(bare->out, "$ORIGIN/origin.so: there"), "$ORIGIN is the caller's");
	expect_same(bare, outcome);
}

/* How often lives.py calls each of its functions in a run. */
static const struct {
	const char *name;
	long calls;
} of_a_life[] = {{"work", 2}, {"leaf", 200}, {"raises", 20}, {"numbers", 6}, {"method", 1}};

static struct outcome *run_lives(const struct python *python, const char *directory, bool bare, const char *variable)
{
	const char *lives = compile("lives.c", "lives.so", COMPILE_PLAIN);
	char *libraries =
	    bare ? text("LD_PRELOAD=%s", lives) : text("LD_PRELOAD=%s %s", build_path("libevprof.so"), lives);

	return run(.python = python, .how = JOB_BARE, .directory = directory, .args = {"@lives.py", "3"},
		   .env = {libraries, variable});
}

/* Python is begun and ended three times, with a sub-interpreter each time: all that ran is in the trace. */
SCENARIO(start, several_lives, SUPPORTED)
{
	static const char *const variables[] = {"EVPROF_EVENTS=call,c_call,exception,mem", "PYTHONMALLOC=debug",
						"EVPROF_EVENTS=call"};
	struct outcome *bare = run_lives(python, NULL, true, NULL), *outcome;
	const char *directory = bare->directory;

	expect(bare, bare->status == 0 && strstr(bare->out, "lived"), "it lives without evprof");
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		json_t *report, *info;

		outcome = run_lives(python, directory, false, variables[i]);
		expect_same(bare, outcome);
		info = expect_trace(outcome, 1);
		expect(outcome, (info_events(info, "malloc") > 0) == (i < 2),
		       "blocks are recorded where they are asked for");
		json_decref(info);
		report = trace_report(outcome->trace, NULL);
		for (size_t k = 0; k < sizeof(of_a_life) / sizeof(*of_a_life); k++) {
			long calls = report_calls(report, "", of_a_life[k].name);

			expect(outcome, calls == 6 * of_a_life[k].calls, "%s was called %ld times, not %ld",
			       of_a_life[k].name, 6 * of_a_life[k].calls, calls);
		}
		expect_balanced(outcome, report);
		json_decref(report);
		cr_assert_eq(remove(outcome->trace), 0);
	}
}
