/*
 * reading.c - reads traces by way of build/evprof, the same as a user's script would.
 *
 * Owns all knowledge of how info, report and dump look. Called by the test files through harness.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static json_t *tool_json(const struct outcome *outcome)
{
	json_error_t error;
	json_t *root = json_loads(outcome->out, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

	expect(outcome, root, "the tool writes JSON: %s at line %d", error.text, error.line);
	return root;
}

json_t *trace_info(const char *trace)
{
	cr_assert(*trace, "no trace was written");
	return tool_json(tool("info", "--json", trace));
}

json_t *trace_report(const char *trace, const char *between)
{
	cr_assert(*trace, "no trace was written");
	if (between)
		return tool_json(tool("report", "--json", "--between", between, trace));
	return tool_json(tool("report", "--json", trace));
}

json_t *trace_report_by(const char *trace, const char *clock)
{
	cr_assert(*trace, "no trace was written");
	return tool_json(tool("report", "--json", "--clock", clock, trace));
}

bool silent(const struct python *python, const struct outcome *outcome)
{
	if ((python->major == 3 && python->minor >= SUPPORTED) || outcome->traces > 0)
		return false;
	expect(outcome, stderr_evprof_lines(outcome) == 0, "where nothing is recorded, nothing is said");
	return true;
}

json_t *expect_trace(const struct outcome *outcome, unsigned processes)
{
	struct outcome *result;
	json_t *info;

	expect(outcome, outcome->traces == 1, "there is one trace, not %u", outcome->traces);
	result = tool("info", "--json", outcome->trace);
	expect(result, result->status == 0 && !*result->err,
	       "info of a whole trace ends with 0 and complains of nothing");
	info = tool_json(result);
	expect(outcome, json_is_true(json_object_get(info, "complete")), "the trace is complete");
	expect(outcome, json_integer_value(json_object_get(info, "lost")) == 0, "nothing is lost, not %lld",
	       (long long)json_integer_value(json_object_get(info, "lost")));
	expect(result, processes == 0 || info_pids(info) == processes, "%u processes are in it, not %zu", processes,
	       info_pids(info));
	return info;
}

/* ---- info ------------------------------------------------------------------------------------------------------ */

static long thread_count(const json_t *thread, const char *member, const char *kind)
{
	return (long)json_integer_value(json_object_get(json_object_get(thread, member), kind));
}

static long process_count(const json_t *process, const char *member, const char *kind)
{
	const json_t *thread;
	long sum = thread_count(process, member, kind); /* "lost": of threads that are not in the trace */
	size_t i;

	json_array_foreach(json_object_get(process, "threads"), i, thread) sum += thread_count(thread, member, kind);
	return sum;
}

static long info_count(const json_t *info, const char *member, const char *kind)
{
	const json_t *process;
	long sum = 0;
	size_t i;

	json_array_foreach(json_object_get(info, "processes"), i, process) sum += process_count(process, member, kind);
	return sum;
}

long info_events(const json_t *info, const char *kind)
{
	return info_count(info, "events", kind);
}

long info_lost(const json_t *info, const char *kind)
{
	return info_count(info, "lost", kind);
}

const json_t *info_process(const json_t *info, long pid)
{
	const json_t *process;
	size_t i;

	json_array_foreach(json_object_get(info, "processes"), i,
			   process) if (json_integer_value(json_object_get(process, "pid")) == pid) return process;
	return NULL;
}

long info_process_events(const json_t *info, long pid, const char *kind)
{
	const json_t *process = info_process(info, pid);

	return process ? process_count(process, "events", kind) : -1;
}

size_t info_pids(const json_t *info)
{
	const json_t *process;
	size_t i, count = 0;

	json_array_foreach(json_object_get(info, "processes"), i, process)
	{
		long pid = (long)json_integer_value(json_object_get(process, "pid"));

		count +=
		    info_process(info, pid) == process; /* the first with this pid: exec makes more than one image */
	}
	return count;
}

size_t info_threads(const json_t *info)
{
	const json_t *process;
	size_t i, count = 0;

	json_array_foreach(json_object_get(info, "processes"), i, process) count +=
	    json_array_size(json_object_get(process, "threads"));
	return count;
}

const json_t *info_thread_named(const json_t *info, const char *name)
{
	const json_t *process, *thread;
	size_t i, j;

	json_array_foreach(json_object_get(info, "processes"), i, process)
	    json_array_foreach(json_object_get(process, "threads"), j, thread)
	{
		const char *its = json_string_value(json_object_get(thread, "name"));

		if (its && strcmp(its, name) == 0)
			return thread;
	}
	return NULL;
}

/* ---- the closing line ------------------------------------------------------------------------------------------ */

void expect_closing_line(const struct outcome *outcome)
{
	unsigned lines = stderr_evprof_lines(outcome);
	char *line = stderr_evprof_line(outcome, 0);
	long long events = -1, processes = -1, lost = -1;
	json_t *info = trace_info(outcome->trace);
	long long in_trace = json_integer_value(json_object_get(info, "events")), calls, memory;
	bool growing;

	expect(outcome, lines == 1, "evprof says one line, not %u", lines);
	sscanf(line, "evprof: %lld events of %lld %*[a-z], %lld lost", &events, &processes, &lost);
	growing = strstr(line, "still run"); /* then it says what there was so far */
	expect(outcome, growing ? events > 0 && events <= in_trace : events == in_trace,
	       "the line says %lld events, the trace holds %lld", events, in_trace);
	expect(outcome, processes == (long long)json_array_size(json_object_get(info, "processes")),
	       "the line says %lld processes, the trace holds %zu", processes,
	       json_array_size(json_object_get(info, "processes")));
	expect(outcome, lost == json_integer_value(json_object_get(info, "lost")), "the line says what was lost");
	calls = info_events(info, "call") + info_events(info, "c_call") + info_events(info, "sample");
	memory = info_events(info, "malloc") + info_events(info, "native_malloc");
	expect(outcome, strstr(line, memory && !calls ? "evprof memory " : "evprof report "),
	       "the line names the command that shows what was recorded: %s", line);
	json_decref(info);
	free(line);
}

/* ---- report ---------------------------------------------------------------------------------------------------- */

size_t report_functions(const json_t *report)
{
	return json_array_size(json_object_get(report, "functions"));
}

struct function report_function(const json_t *report, size_t i)
{
	const json_t *row = json_array_get(json_object_get(report, "functions"), i);
	struct function function = {
	    .file = json_string_value(json_object_get(row, "file")),
	    .line = (long)json_integer_value(json_object_get(row, "line")),
	    .name = json_string_value(json_object_get(row, "function")),
	    .total = (long)json_integer_value(json_object_get(row, "ncalls")),
	    .primitive = (long)json_integer_value(json_object_get(row, "primitive_calls")),
	    .seconds = json_number_value(json_object_get(row, "cumtime")),
	};

	cr_assert(function.file && function.name, "row %zu of the report has a file and a function", i);
	return function;
}

/* file: the end of its name. */
static bool is_called(const struct function *function, const char *file, const char *name)
{
	size_t length = strlen(function->file), tail = strlen(file);

	return strcmp(function->name, name) == 0 && length >= tail && strcmp(function->file + length - tail, file) == 0;
}

static long report_sum(const json_t *report, const char *file, const char *name, bool primitive)
{
	size_t count = report_functions(report);
	long sum = 0;

	for (size_t i = 0; i < count; i++) {
		struct function function = report_function(report, i);

		if (is_called(&function, file, name))
			sum += primitive ? function.primitive : function.total;
	}
	return sum;
}

long report_calls(const json_t *report, const char *file, const char *function)
{
	return report_sum(report, file, function, false);
}

long report_primitive_calls(const json_t *report, const char *file, const char *function)
{
	return report_sum(report, file, function, true);
}

double report_seconds(const json_t *report, const char *file, const char *function)
{
	for (size_t i = 0; i < report_functions(report); i++) {
		struct function found = report_function(report, i);

		if (is_called(&found, file, function))
			return found.seconds;
	}
	return -1;
}

void expect_balanced(const struct outcome *outcome, const json_t *report)
{
	const json_t *unmatched = json_object_get(report, "unmatched");

	expect(outcome, json_is_integer(unmatched), "the report says how many calls and ends have no partner");
	expect(outcome, json_integer_value(unmatched) == 0, "%lld calls or ends have no partner",
	       (long long)json_integer_value(unmatched));
}

/* ---- dump ------------------------------------------------------------------------------------------------------ */

static void event_names(struct event *event, char **field, int fields)
{
	event->name = fields > 4 ? field[4] : "";
	event->place = fields > 5 ? field[5] : "";
}

static void event_memory(struct event *event, char **field, int fields)
{
	if (fields < 6)
		return;
	event->address = strtoull(field[4], NULL, 16);
	event->size = strtoull(field[5], NULL, 10);
	if (fields > 6) /* of a mapping: what it is of */
		snprintf(event->domain, sizeof(event->domain), "%.7s", field[6]);
	if (fields > 7)
		event->old_address = strtoull(field[7], NULL, 16);
}

static bool is_memory(const char *kind)
{
	return !strcmp(kind, "malloc") || !strcmp(kind, "calloc") || !strcmp(kind, "realloc") ||
	       !strcmp(kind, "free") || !strcmp(kind, "mmap") || !strcmp(kind, "munmap");
}

static void event_parse(struct event *event, char *line)
{
	char *field[9] = {NULL};
	int fields = 0;

	for (char *at = line; fields < 9 && (field[fields] = strsep(&at, "\t")); fields++)
		;
	cr_assert(fields >= 4, "a line of the dump is cut: %s", line);
	event->time_ns = strtoll(field[0], NULL, 10);
	event->pid = strtol(field[1], NULL, 10);
	event->tid = strtol(field[2], NULL, 10);
	snprintf(event->kind, sizeof(event->kind), "%s", field[3]);
	event->name = event->place = "";
	if (is_memory(event->kind))
		event_memory(event, field, fields);
	else
		event_names(event, field, fields);
}

struct event *trace_dump(const char *trace, size_t *count)
{
	struct outcome *dump;
	struct event *events;
	size_t lines = 0;

	cr_assert(*trace, "no trace was written");
	dump = tool("dump", trace);
	expect(dump, dump->status == 0, "dump of a whole trace ends with 0");
	for (const char *at = dump->out; *at; at++)
		lines += *at == '\n';
	events = calloc(lines + 1, sizeof(*events));
	*count = 0;
	for (char *at = dump->out, *line; (line = strsep(&at, "\n"));)
		if (*line)
			event_parse(&events[(*count)++], line);
	return events;
}
