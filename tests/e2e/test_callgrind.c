/*
 * test_callgrind.c - evprof export --format callgrind, read by callgrind_annotate, and its zip, read by Python's
 * zipfile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* callgrind_annotate, of Debian's package valgrind, is the judge. */
static void need_annotate(void)
{
	if (system("command -v callgrind_annotate >/dev/null 2>&1") != 0)
		cr_skip_test("callgrind_annotate (package valgrind) is not installed");
}

static char *exported(const struct outcome *outcome, const char *name, const char *option)
{
	char *path = text("%s/%s", outcome->directory, name);
	struct outcome *export = tool("export", "--format", "callgrind", outcome->trace, "-o", path, option);

	expect(export, export->status == 0, "the export ends with 0");
	return path;
}

static void judge(const struct outcome *outcome)
{
	char *path = exported(outcome, "callgrind.out.test", NULL);
	char *report = text("%s/report.json", outcome->directory);
	struct outcome *result = tool("report", "--json", outcome->trace), *judged;

	file_write(report, result->out, result->out_bytes);
	judged = run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_callgrind.py", report, path});
	expect(judged, judged->status == 0, "callgrind_annotate reads what evprof report says");
}

SCENARIO(callgrind, totals, SUPPORTED)
{
	need_annotate();
	judge(run(.python = python, .args = {"@known.py"}));
}

SCENARIO(callgrind, generators, SUPPORTED)
{
	need_annotate();
	judge(run(.python = python, .args = {"@generators.py"}));
}

/* Recursion of one and of two functions, in two threads and in a child. */
SCENARIO(callgrind, recursion_threads_forks, SUPPORTED)
{
	static const char *const code = "import os, threading\n"
					"def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
					"def even(n): return n == 0 or odd(n - 1)\n"
					"def odd(n): return n != 0 and even(n - 1)\n"
					"def work(): fib(12); even(40)\n"
					"thread = threading.Thread(target=work)\n"
					"thread.start(); work(); thread.join()\n"
					"child = os.fork()\n"
					"if not child: work(); os._exit(0)\n"
					"os.waitpid(child, 0)\n";
	struct outcome *outcome;

	need_annotate();
	outcome = run(.python = python, .args = {"-c", code});
	json_decref(expect_trace(outcome, 2));
	judge(outcome);
}

/* Line events share the time out among lines, and change no sum. */
SCENARIO(callgrind, lines, SUPPORTED)
{
	struct outcome *outcome;

	need_annotate();
	outcome = run(.python = python, .args = {"@lines.py"}, .env = {"EVPROF_EVENTS=call,c_call,line"});
	judge(outcome);
}

/* Strange names stay on their lines. */
SCENARIO(callgrind, names, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@names.py"});
	char *costs = file_read(exported(outcome, "callgrind.out.test", NULL), NULL);

	expect(outcome, strstr(costs, "quo\"te:") && strstr(costs, "new\\nline:"), "names are escaped");
	for (const char *at = costs; *at; at++)
		expect(outcome, (unsigned char)*at >= ' ' || *at == '\n', "no control character is in it");
}

SCENARIO(callgrind, zip, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}), *judged;
	char *path = exported(outcome, "callgrind.zip", "--zip");

	judged = run(.python = python_any(), .how = JOB_BARE,
		     .args = {"@judge_zip.py", path, text("%s", program_path("known.py"))});
	expect(judged, judged->status == 0, "zipfile reads it, and the source is in it");
}

/* Without the source there is a zip, and a line that names it. */
SCENARIO(callgrind, zip_without_a_source, SUPPORTED)
{
	struct outcome *outcome, *export, *listed;
	char *directory = text("%s", run(.how = JOB_BARE, .args = {"true"})->directory);

	file_write(text("%s/gone.py", directory), "def f(): pass\nf()\n", 18);
	outcome = run(.python = python, .directory = directory, .args = {"gone.py"});
	unlink(text("%s/gone.py", directory));
	export = tool("export", "--format", "callgrind", "--zip", outcome->trace, "-o", text("%s/z.zip", directory));
	expect(export, export->status == 0, "the export ends with 0");
	expect(export, strstr(export->err, "gone.py is not in the zip"), "the missing source is named");
	listed =
	    run(.python = python_any(), .how = JOB_BARE, .args = {"-m", "zipfile", "-l", text("%s/z.zip", directory)});
	expect(listed, listed->status == 0 && strstr(listed->out, "callgrind.out.evprof"), "it is a zip");
	expect(listed, !strstr(listed->out, "gone.py"), "without the source");
}
