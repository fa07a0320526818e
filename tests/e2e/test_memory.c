/*
 * test_memory.c - evprof memory on recorded programs: by line as tracemalloc has it in another run, the resident size
 * as the kernel has it, the peak as memray has it; leaks, marks, tasks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "harness.h"

#define LINES "EVPROF_EVENTS=call,c_call,mem,line"

static void keep(const struct outcome *outcome, const char *name, const struct outcome *printed)
{
	expect(printed, printed->status == 0, "%s is made", name);
	file_write(text("%s/%s", outcome->directory, name), printed->out, printed->out_bytes);
}

/* The processes of evprof memory --json; a new reference. */
static json_t *memory_of(const struct outcome *outcome)
{
	struct outcome *result = tool("memory", "--json", outcome->trace);
	json_t *root = json_loads(result->out, 0, NULL), *processes = json_object_get(root, "processes");

	expect(result, result->status == 0 && json_array_size(processes), "it is JSON with processes");
	json_incref(processes);
	json_decref(root);
	return processes;
}

static long long member(const json_t *processes, const char *name)
{
	return json_integer_value(json_object_get(json_array_get(processes, 0), name));
}

/* The value of a column, from 1, in the row of evprof memory that begins so behind the pid; -1: there is none. */
static long long cell(const struct outcome *result, const char *begins, unsigned column)
{
	char *copy = strdup(result->out), *rest = copy, *line;
	long long value = -1;

	while ((line = strsep(&rest, "\n"))) {
		const char *at = strchr(line, ',');

		if (!at || strncmp(at + 1, begins, strlen(begins)) != 0)
			continue;
		at += strlen(begins);
		for (unsigned i = 0; i < column && at; i++)
			at = strchr(at + 1, ',');
		value = at ? atoll(at + 1) : -1;
		break;
	}
	free(copy);
	return value;
}

static void expect_lines(const struct python *python, const char *events)
{
	struct outcome *oracle = run(.python = python, .how = JOB_BARE, .args = {"@by_line.py", "tracemalloc"});
	struct outcome *outcome =
	    run(.python = python, .args = {"@by_line.py"}, .env = {events, "EVPROF_MEMORY_LINES=1"});
	struct outcome *judged;

	keep(outcome, "oracle.json", oracle);
	keep(outcome, "memory.json", tool("memory", "--json", outcome->trace));
	judged = run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_by_line.py", outcome->directory});
	expect(judged, judged->status == 0 && atoi(judged->out) == 14, "seven lines at the peak and at the end");
}

SCENARIO(memory, lines_as_tracemalloc_has_them, SUPPORTED)
{
	expect_lines(python, LINES);
}

SCENARIO(memory, lines_with_calls, SUPPORTED)
{
	expect_lines(python, "EVPROF_EVENTS=call,c_call,mem");
}

SCENARIO_SOME(memory, lines_with_calls_and_malloc, SUPPORTED)
{
	needs_own_malloc();
	expect_lines(python, "EVPROF_EVENTS=call,c_call,mem,malloc");
}

/* The rows of diff, the samples of pprof and folded stacks: each has what tracemalloc says of that line. */
static void expect_line(const struct outcome *outcome, const char *line, json_int_t bytes)
{
	const char *at = strstr(outcome->out, text("by_line.py\",%s,both,", line));
	long long before, after, changed, end;

	expect(outcome, at, "line %s is in the difference", line);
	at += strlen(text("by_line.py\",%s,both,", line));
	expect(outcome,
	       sscanf(at, "%lld,%lld,%lld,%lld", &before, &after, &changed, &end) == 4 && before == after && !changed &&
		   end == bytes,
	       "line %s holds %lld at the end", line, (long long)bytes);
}

static void expect_folded(const struct outcome *outcome, const char *line, json_int_t bytes)
{
	const char *name = text("(by_line.py:%s)", line);
	char *copy = strdup(outcome->out), *rest = copy, *stack;
	long long sum = 0;

	while ((stack = strsep(&rest, "\n"))) {
		const char *at = strstr(stack, name);

		if (at && !strstr(at + 1, "(by_line.py:")) /* the innermost line of the program */
			sum += atoll(strrchr(stack, ' ') + 1);
	}
	free(copy);
	expect(outcome, sum == bytes, "line %s holds %lld in the stacks, not %lld", line, (long long)bytes, sum);
}

static json_t *pprof_lines(const struct outcome *outcome)
{
	char *path = text("%s/lines.pb.gz", outcome->directory);
	struct outcome *said;

	tool("export", "-f", "pprof", outcome->trace, "-o", path);
	said = run(.python = python_any(), .how = JOB_BARE,
		   .args = {"@pprof_lines.py", path, "by_line.py", "inuse_space"});
	expect(said, said->status == 0, "it is a profile");
	return json_loads(said->out, 0, NULL);
}

/* A limit that fails names the line of which tracemalloc has most at the peak. */
static void expect_check(const struct outcome *outcome, const json_t *lines)
{
	struct outcome *said = tool("check", "--max-heap", "1M", outcome->trace);
	const char *line, *most = NULL;
	json_int_t most_bytes = 0;
	json_t *bytes;

	json_object_foreach((json_t *)lines, line, bytes)
	{
		if (json_integer_value(bytes) <= most_bytes)
			continue;
		most = line;
		most_bytes = json_integer_value(bytes);
	}
	expect(said,
	       said->status == 1 && strstr(said->out, text("by_line.py:%s): %lld\n", most, (long long)most_bytes)),
	       "line %s has %lld bytes", most, (long long)most_bytes);
}

SCENARIO_SOME(memory, lines_of_other_outputs, SUPPORTED)
{
	struct outcome *oracle = run(.python = python, .how = JOB_BARE, .args = {"@by_line.py", "tracemalloc"});
	struct outcome *outcome = run(.python = python, .how = JOB_RUN, .args = {"@by_line.py"},
				      .options = {"--events", "call,c_call,mem", "--memory-lines"});
	struct outcome *diff = tool("diff", "--memory", "--all", "--csv", outcome->trace, outcome->trace);
	struct outcome *folded = tool("export", "-f", "folded", "--weight", "live", outcome->trace, "-o", "-");
	json_t *root = json_loads(oracle->out, 0, NULL), *pprof = pprof_lines(outcome), *bytes;
	const char *line;
	unsigned lines = 0;

	json_object_foreach(json_object_get(json_object_get(root, "looks"), "end_bytes"), line, bytes)
	{
		if (!json_integer_value(bytes))
			continue;
		expect_line(diff, line, json_integer_value(bytes));
		expect_folded(folded, line, json_integer_value(bytes));
		cr_expect_eq(json_integer_value(json_object_get(pprof, line)), json_integer_value(bytes), "pprof, %s",
			     line);
		lines++;
	}
	cr_expect_eq(lines, 5);
	expect_check(outcome, json_object_get(json_object_get(root, "looks"), "peak_bytes"));
	json_decref(pprof);
	json_decref(root);
}

/* At its own end the process reads what the kernel has of it; the library adds little after that. */
SCENARIO(memory, resident_size_as_the_kernel_has_it, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@by_line.py", "rss"}), *result;
	json_t *processes = memory_of(outcome);
	long long own = atoll(outcome->out) * 1024, found = member(processes, "peak_rss_bytes");

	json_decref(processes);
	expect(outcome, own > 9000000 && found >= own && found < own + (8 << 20), "%lld and %lld bytes", own, found);
	result = tool("check", "--max-rss", text("%lld", found), "--max-alloc", "1G", "--max-allocations", "100000000",
		      outcome->trace);
	expect(result, result->status == 0, "the limits hold");
	result = tool("check", "--max-rss", text("%lld", found - 1), outcome->trace);
	expect(result, result->status == 1, "one byte less does not");
	result = tool("check", "--max-heap", "1G", outcome->trace);
	expect(result, result->status == 2 && strstr(result->out, "ERROR  --max-heap 1G: memory that libraries take"),
	       "malloc was not recorded");
}

/*
 * Of a killed process the trace has what the collector saw last. That may not be its peak: a limit that it keeps
 * is an error, one that it breaks is broken.
 */
SCENARIO_SOME(memory, resident_size_of_the_killed, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"-c", "import os, re, time; b = b'x' * 50000000; time.sleep(1.5)\n"
						 "c = [str(i) for i in range(1000)]\ntime.sleep(1)\n"
						 "text = open('/proc/self/status').read()\n"
						 "print(re.search(r'VmHWM:\\s*(\\d+)', text).group(1), flush=True)\n"
						 "os.kill(os.getpid(), 9)"});
	struct outcome *kept = tool("check", "--max-rss", "100G", outcome->trace);
	struct outcome *broken = tool("check", "--max-rss", "50M", outcome->trace);
	json_t *processes = memory_of(outcome);
	long long own = atoll(outcome->out) * 1024, found = member(processes, "peak_rss_bytes");

	expect(kept, kept->status == 2 && strstr(kept->out, "ERROR  --max-rss 100G: the resident size"), "it is said");
	expect(broken, broken->status == 1, "it had more");
	expect(outcome, own > 50000000 && found <= own + (1 << 20) && found > own - (4 << 20), "%lld and %lld bytes",
	       own, found);
	expect(outcome, member(processes, "end_bytes") > 50000000, "the block is alive");
	json_decref(processes);
}

/* The program reads its mappings just before it ends. */
static void expect_parts(const struct outcome *outcome)
{
	json_t *processes = memory_of(outcome), *end = json_object_get(json_array_get(processes, 0), "resident_at_end");
	long long all = 0, files = 0, found = json_integer_value(json_object_get(end, "bytes")), sum = 0;
	long long found_files = json_integer_value(json_object_get(end, "files_bytes"));
	const char *name;
	json_t *value;

	expect(outcome, sscanf(outcome->out, "%lld %lld", &all, &files) == 2 && end, "both know");
	json_object_foreach(end, name, value) sum +=
	    strcmp(name, "bytes") && strcmp(name, "time_ns") ? json_integer_value(value) : 0;
	expect(outcome, sum == found, "the parts are %lld bytes, all %lld", sum, found);
	expect(outcome, llabs(found - all * 1024) < 4 << 20, "%lld bytes, by its own reading %lld", found, all * 1024);
	expect(outcome, llabs(found_files - files * 1024) < 1 << 20, "%lld of files, %lld", found_files, files * 1024);
	expect(outcome, json_integer_value(json_object_get(end, "python_bytes")) > 30000000, "the blocks are alive");
	expect(outcome, json_integer_value(json_object_get(end, "mapped_bytes")) >= 20 << 20, "the mapping, too");
	expect(outcome, json_integer_value(json_object_get(end, "rest_bytes")) > -(4 << 20), "each counts once");
	json_decref(processes);
}

SCENARIO_SOME(memory, parts_of_the_resident_size, SUPPORTED)
{
	needs_own_malloc();
	expect_parts(run(.python = python, .args = {"@mappings.py"}, .env = {"EVPROF_EVENTS=mem,malloc"}));
}

/* There the program does not wait for its trace. */
SCENARIO_SOME(memory, parts_of_the_resident_size_in_run, SUPPORTED)
{
	needs_own_malloc();
	expect_parts(run(.python = python, .how = JOB_RUN, .options = {"--memory"}, .args = {"@mappings.py"}));
}

/* glibc says what is free of its heap; heads and rounding of the live blocks are slack, too: 16 bytes of 1000. */
SCENARIO_SOME(memory, slack_of_malloc, SUPPORTED)
{
	struct outcome *outcome;
	json_t *processes, *end;
	long long own, found;

	needs_own_malloc();
	outcome = run(.python = python, .args = {"@fragmented.py"}, .env = {"EVPROF_EVENTS=mem,malloc"});
	processes = memory_of(outcome);
	end = json_object_get(json_array_get(processes, 0), "resident_at_end");
	own = atoll(outcome->out);
	found = json_integer_value(json_object_get(end, "malloc_slack_bytes"));
	if (own)
		expect(outcome, own > 25000000 && llabs(found - own) < 4 << 20, "%lld bytes, by glibc %lld", found,
		       own);
	json_decref(processes);
}

SCENARIO(memory, leaks_and_imports, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@leaking.py"}, .env = {LINES}), *result;
	long long kept;

	expect(outcome, outcome->status == 0, "it runs");
	result = tool("memory", "--leaks", "--by", "function", "--format", "csv", outcome->trace);
	kept = cell(result, "\"keep\"", 4);
	expect(result, kept >= 1840000 && kept < 1850000, "the program keeps %lld bytes", kept);
	expect(result, !strstr(result->out, "imported_here"), "an import is no leak");
	result = tool("memory", "--leaks=all", "--by", "module", "--format", "csv", outcome->trace);
	kept = cell(result, text("\"%s/imported_here.py\"", outcome->directory), 2);
	expect(result, kept >= 2000000 && kept < 2010000, "the import keeps %lld bytes", kept);
	result = tool("memory", "--between", "begin,end", "--by", "function", "--format", "csv", outcome->trace);
	kept = cell(result, "\"keep\"", 4);
	expect(result, kept >= 40033 && kept < 42000, "between the marks %lld bytes", kept);
	result = tool("memory", "--by", "task", "--format", "csv", outcome->trace);
	expect(result, strstr(result->out, "task work #") && strstr(result->out, ",\"(no task)\","), "tasks have rows");
}

SCENARIO(memory, threads, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@by_line.py"});
	struct outcome *result = tool("memory", "--by", "thread", "--format", "csv", outcome->trace);
	long long bytes = cell(result, "\"second (", 2);

	expect(result, bytes >= 70034 && bytes < 80000, "the second thread holds %lld bytes", bytes);
	result = tool("memory", outcome->trace);
	expect(result, result->status == 0 && strstr(result->out, "keep") && strstr(result->out, "by_line.py:?\n"),
	       "without lines they are not known");
}

/* The heap of Python's allocators; memray counts what the interpreter has from malloc, too. */
SCENARIO(memory, peak_as_memray_has_it, SUPPORTED)
{
	static const char *const program = "def spike():\n"
					   "    return len([bytes(100000) for _ in range(2000)])\n"
					   "spike()\n";
	struct outcome *outcome, *result;
	json_t *processes, *stats;
	double theirs, ours;

	if (run(.python = python, .how = JOB_BARE, .args = {"-c", "import memray"})->status != 0)
		cr_skip_test("memray is not installed");
	outcome = run(.python = python, .args = {"-c", program});
	processes = memory_of(outcome);
	ours = (double)member(processes, "peak_bytes");
	json_decref(processes);
	result =
	    run(.python = python, .how = JOB_BARE, .timeout_s = 300, .directory = outcome->directory,
		.args = {"-m", "memray", "run", "-q", "-f", "--trace-python-allocators", "-o", "m.bin", "-c", program});
	expect(result, result->status == 0, "memray records");
	result = run(.python = python, .how = JOB_BARE, .timeout_s = 300, .directory = outcome->directory,
		     .args = {"-m", "memray", "stats", "--json", "-f", "-o", "m.json", "m.bin"});
	expect(result, result->status == 0, "memray has statistics");
	stats = json_load_file(text("%s/m.json", outcome->directory), 0, NULL);
	theirs = json_number_value(json_object_get(json_object_get(stats, "metadata"), "peak_memory"));
	json_decref(stats);
	expect(result, ours > 200000000 && theirs > ours * 0.95 && theirs < ours * 1.05, "%f and %f bytes", ours,
	       theirs);
}
