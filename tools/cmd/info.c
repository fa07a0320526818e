/*
 * info.c - evprof info: the contents of a trace, as text and as JSON.
 *
 * Reads and checks the whole file, so it reports damage anywhere in it.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "evprof/json_memory.h"
#include "cmd/verbs.h"
#include "report/account.h"
#include "trace/native_stack.h"
#include "trace/process_end.h"
#include "trace/reader.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"
#include "util/terminal.h"

static const char help_text[] =
    "usage: evprof info [options] TRACE...\n"
    "\n"
    "Shows the contents of a trace: processes, threads, events by kind, losses. Checks the whole file.\n"
    "\n"
    "      --json    for programs: one object a trace; an array of them for several traces\n"
    "      --quick   do not read the events of a complete trace to check them\n"
    "\n"
    "Exit status: 0; 1 if a trace is incomplete; 2 if one cannot be read; 3 if one is still being written.\n";

struct request {
	bool json;
	bool quick;
};

/* Whether native stacks are counted, which reads all events. */
static bool counts_native_stacks(const struct trace_process *process, bool quick)
{
	return !quick && trace_process_has_native_stacks(process);
}

/* --- JSON --- */

/* Kinds are shown in the order that they had in version 1. */
static unsigned kind_in_order(unsigned i)
{
	const unsigned first = 19, last = 27, further = WIRE_THREAD_START - first;

	if (i >= first && i <= last)
		return i + further;
	return i >= first + further && i <= last + further ? i - further : i;
}

static json_t *json_counts(const struct trace *trace, const uint64_t *counts)
{
	json_t *object = json_object();
	unsigned i;

	for (i = 1; i < WIRE_KINDS; i++)
		if (counts[kind_in_order(i)])
			json_object_set_new(object, trace->kind_names[kind_in_order(i)],
					    json_integer((json_int_t)counts[kind_in_order(i)]));
	if (counts[WIRE_NONE])
		json_object_set_new(object, "unknown", json_integer((json_int_t)counts[WIRE_NONE]));
	return object;
}

/* A JSON string of the text; invalid UTF-8 becomes U+FFFD. */
static json_t *json_any(const char *text)
{
	struct output clean;
	json_t *value = json_string(text);

	if (value || output_open_memory(&clean) < 0)
		return value;
	output_char(&clean, '"');
	output_json(&clean, text_of(text));
	output_char(&clean, '"');
	value = clean.error ? NULL : json_loadb(clean.buffer, clean.used, JSON_DECODE_ANY, NULL);
	output_abandon(&clean);
	return value ? value : json_null();
}

static json_t *json_thread(const struct trace *trace, const struct trace_thread *thread)
{
	json_t *object = json_object();

	json_object_set_new(object, "tid", json_integer((json_int_t)thread->tid));
	json_object_set_new(object, "name", thread->name ? json_any(thread->name) : json_null());
	json_object_set_new(object, "events", json_counts(trace, thread->events));
	json_object_set_new(object, "lost", json_counts(trace, thread->lost));
	return object;
}

static void copy_member(json_t *to, const json_t *from, const char *member)
{
	json_t *value = from ? json_object_get(from, member) : NULL;

	if (value)
		json_object_set(to, member, value);
	else
		json_object_set_new(to, member, json_null());
}

static json_t *json_signal_name(const struct trace_process *process)
{
	const char *name = process_end_signal(process);

	return name ? json_string(name) : json_null();
}

/* From when on other events were recorded than at first. */
static json_t *json_changes(const struct trace *trace, const struct trace_process *process)
{
	json_t *changes = json_array();
	const json_t *change;
	size_t i;

	json_array_foreach(process->changes, i, change)
	{
		uint64_t ticks = (uint64_t)json_integer_value(json_object_get(change, "ticks"));

		json_array_append_new(changes, json_pack("{s:I, s:O}", "ns",
							 (json_int_t)(trace_ns(process, ticks) - trace->start_ns),
							 "events", json_object_get(change, "events")));
	}
	return changes;
}

static json_t *json_process(struct trace *trace, const struct trace_process *process, bool quick)
{
	static const char *const members[] = {
	    "python", "argv",	       "exe",	   "cwd",	   "host",  "program",	       "start", "sample_rate",
	    "native", "malloc_unseen", "filtered", "program_only", "title", "memory_interval", "budget"};
	static const char *const end_members[] = {"how",     "status",	"signal",	"waits",	  "waited_us",
						  "sampler", "samples", "samples_torn", "samples_dropped"};
	json_t *object = json_pack("{s:I, s:I}", "pid", (json_int_t)process->pid, "ppid", (json_int_t)process->ppid);
	json_t *threads = json_array(), *account = trace_process_account_json(process);

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		copy_member(object, process->meta, members[i]);
	for (size_t i = 0; i < sizeof(end_members) / sizeof(end_members[0]); i++)
		copy_member(object, process->end, end_members[i]);
	copy_member(object, process->meta, "events");
	json_object_set_new(object, "events_changes", json_changes(trace, process));
	json_object_update(object, account);
	json_decref(account);
	json_object_set_new(object, "signal_name", json_signal_name(process));
	if (counts_native_stacks(process, quick)) {
		struct native_stack_counts counts = {0};

		native_stack_count_process(&counts, trace, process);
		json_object_set_new(object, "native_stacks",
				    json_pack("{s:I, s:I}", "allocations", (json_int_t)counts.allocations, "without",
					      (json_int_t)counts.without));
	}
	json_object_set_new(object, "lost", json_counts(trace, process->lost));
	for (size_t i = 0; i < process->thread_count; i++)
		json_array_append_new(threads, json_thread(trace, trace->threads[process->threads[i]]));
	json_object_set_new(object, "threads", threads);
	return object;
}

static json_t *json_trace(struct trace *trace, const struct trace_totals *totals, bool quick)
{
	char missing[1024];
	int verdict = trace_verdict(trace, missing, sizeof(missing));
	json_t *object = json_object(), *processes = json_array();

	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i])
			json_array_append_new(processes, json_process(trace, trace->processes[i], quick));
	json_object_set_new(object, "trace", json_any(trace->path));
	json_object_set_new(object, "complete", json_boolean(trace->complete && !verdict));
	json_object_set_new(object, "missing", verdict ? json_string(missing) : json_null());
	json_object_set_new(object, "events", json_integer((json_int_t)totals->events));
	json_object_set_new(object, "lost", json_integer((json_int_t)totals->lost));
	json_object_set_new(object, "duration_ns", json_integer((json_int_t)(trace->end_ns - trace->start_ns)));
	json_object_set_new(object, "created_ns", json_integer((json_int_t)trace->header.created_ns));
	json_object_set_new(object, "size_bytes", json_integer((json_int_t)trace->size_bytes));
	json_object_set_new(object, "processes", processes);
	return object;
}

/* --- text --- */

/* Indent of the lines below the one that they belong to. */
#define COUNTS_INDENT 6
#define COUNTS_MOST_COLUMNS 100

static void print_counts(struct output *output, const struct trace *trace, const char *title, const uint64_t *counts)
{
	size_t column = COUNTS_INDENT + strlen(title);
	const char *separator = title;

	output_format(output, "%*s", COUNTS_INDENT, "");
	for (unsigned i = 0; i < WIRE_KINDS; i++) {
		unsigned kind = kind_in_order(i);
		char one[64];
		int length;

		if (!counts[kind])
			continue;
		length = snprintf(one, sizeof(one), "%s %" PRIu64,
				  kind == WIRE_NONE ? "unknown" : trace->kind_names[kind], counts[kind]);
		if (column + (size_t)length + 3 > COUNTS_MOST_COLUMNS) {
			output_format(output, ",\n%*s", COUNTS_INDENT, "");
			separator = "";
			column = COUNTS_INDENT;
		}
		output_format(output, "%s%s", separator, one);
		separator = ", ";
		column += (size_t)length + 2;
	}
	output_char(output, '\n');
}

static void print_text(struct output *output, const char *text)
{
	output_line(output, text_of(text));
}

static void print_thread(struct output *output, const struct trace *trace, const struct trace_thread *thread)
{
	output_format(output, "  thread %" PRIu32 " ", thread->tid);
	if (thread->name && thread->name[0]) {
		output_char(output, '"');
		print_text(output, thread->name);
		output_string(output, "\" ");
	}
	output_format(output, "%" PRIu64 " event%s\n", trace_sum(thread->events),
		      trace_sum(thread->events) == 1 ? "" : "s");
	if (trace_sum(thread->events))
		print_counts(output, trace, "", thread->events);
	if (trace_sum(thread->lost))
		print_counts(output, trace, "LOST: ", thread->lost);
}

static void print_end(struct output *output, const struct trace_process *process)
{
	if (!process->end) {
		output_string(output, ", its end is not in the trace");
		return;
	}
	output_string(output, ", ended: ");
	process_end_print(process, output);
	if (json_integer_value(json_object_get(process->end, "waits")) > 0)
		output_format(output, "; waited for the collector %lld times, %.3f s in all",
			      (long long)json_integer_value(json_object_get(process->end, "waits")),
			      (double)json_integer_value(json_object_get(process->end, "waited_us")) / 1e6);
}

static void print_sampling(struct output *output, const struct trace_process *process)
{
	long long samples = (long long)json_integer_value(json_object_get(process->end, "samples"));
	long long torn = (long long)json_integer_value(json_object_get(process->end, "samples_torn"));

	long long dropped = (long long)json_integer_value(json_object_get(process->end, "samples_dropped"));

	output_format(output, "; sampled %d times a second", trace_process_sample_rate(process));
	if (samples > 0)
		output_format(output, ", %.1f %% of %lld samples put together of several looks",
			      100 * (double)torn / (double)samples, samples);
	if (dropped > 0)
		output_format(output, ", %lld not recorded", dropped);
}

static void print_without_native_stack(struct output *output, struct trace *trace, const struct trace_process *process)
{
	struct native_stack_counts counts = {0};

	native_stack_count_process(&counts, trace, process);
	if (counts.without)
		output_format(output, ", which %" PRIu64 " of %" PRIu64 " allocations lack", counts.without,
			      counts.allocations);
}

static void print_events(struct output *output, const json_t *object)
{
	const json_t *event;
	size_t i;

	json_array_foreach(json_object_get(object, "events"), i, event)
	{
		const char *name = json_string_value(event);

		output_string(output, i ? ", " : "");
		print_text(output, name ? name : "?");
	}
	output_char(output, '\n');
}

static void print_changes(struct output *output, const struct trace *trace, const struct trace_process *process)
{
	const json_t *change;
	size_t i;

	if (!process->changes)
		return;
	output_string(output, "  recorded: ");
	print_events(output, process->meta);
	json_array_foreach(process->changes, i, change)
	{
		uint64_t ticks = (uint64_t)json_integer_value(json_object_get(change, "ticks"));

		output_format(output, "  from %.6f s on: ", (double)(trace_ns(process, ticks) - trace->start_ns) / 1e9);
		print_events(output, change);
	}
}

/* Prints what the settings of the recording leave out or add. */
static void print_budget(struct output *output, const struct trace_process *process)
{
	struct trace_account account;

	output_format(output, "; within a budget of %g%%", trace_process_budget(process));
	if (!trace_process_account(process, &account))
		return;
	output_format(output, ": recording cost %.1f%%", trace_account_percent(&account));
	account_put_left_out(&account, output);
}

static void print_settings(struct output *output, struct trace *trace, const struct trace_process *process, bool quick)
{
	if (trace_process_has_native_stacks(process))
		output_string(output, "; with native stacks");
	if (counts_native_stacks(process, quick))
		print_without_native_stack(output, trace, process);
	if (trace_process_misses_malloc(process))
		output_string(output, "; native allocations are not seen: the program has its own malloc()");
	if (trace_process_is_filtered(process))
		output_string(output, "; functions were left out");
	if (trace_process_is_program_only(process))
		output_string(output, "; of the program only");
	if (trace_process_sample_rate(process))
		print_sampling(output, process);
	if (trace_process_memory_interval(process))
		output_format(output, "; memory sampled every %llu bytes",
			      (unsigned long long)trace_process_memory_interval(process));
	if (trace_process_budget(process) > 0)
		print_budget(output, process);
	if (trace_process_is_alive_only(process))
		output_string(output, "; only what is alive was kept");
	if (json_object_get(process->end, "sampler"))
		output_string(output, " until its sampler was killed");
}

static void print_command(struct output *output, const struct trace_process *process)
{
	const json_t *arguments = json_object_get(process->meta, "argv");
	const json_t *argument;
	size_t i;

	output_string(output, "\n ");
	json_array_foreach((json_t *)arguments, i, argument)
	{
		output_char(output, ' ');
		output_argument(output, text_of(json_string_value(argument)));
	}
	output_char(output, '\n');
}

static void print_process(struct output *output, struct trace *trace, const struct trace_process *process, bool quick)
{
	output_format(output, "\nprocess %lld, child of %lld: Python ", (long long)process->pid,
		      (long long)process->ppid);
	print_text(output, trace_process_text(process, "python"));
	output_string(output, ", started by ");
	print_text(output, trace_process_text(process, "start"));
	print_end(output, process);
	print_settings(output, trace, process, quick);
	print_command(output, process);
	if (trace_process_text(process, "title")[0]) {
		output_string(output, "  title: ");
		print_text(output, trace_process_text(process, "title"));
		output_char(output, '\n');
	}
	print_changes(output, trace, process);
	for (size_t i = 0; i < process->thread_count; i++)
		print_thread(output, trace, trace->threads[process->threads[i]]);
	if (trace_sum(process->lost)) {
		output_string(output, "  threads that are not in the trace\n");
		print_counts(output, trace, "LOST: ", process->lost);
	}
}

static void print_created(struct output *output, const struct trace *trace)
{
	time_t seconds = (time_t)(trace->header.created_ns / UINT64_C(1000000000));
	struct tm parts;
	char text[64];

	if (localtime_r(&seconds, &parts) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &parts))
		output_format(output, "recorded  %s\n", text);
}

static void print_trace(struct output *output, struct trace *trace, const struct trace_totals *totals, bool quick)
{
	char missing[1024];
	int verdict = trace_verdict(trace, missing, sizeof(missing));

	output_string(output, "trace     ");
	print_text(output, trace->path);
	output_format(output, "\nstate     %s%s\n", verdict ? "incomplete: " : "complete", missing);
	print_created(output, trace);
	output_format(output, "duration  %.6f s\n", (double)(trace->end_ns - trace->start_ns) / 1e9);
	output_format(output, "events    %" PRIu64 ", %" PRIu64 " lost\n", totals->events, totals->lost);
	output_format(output, "size      %" PRIu64 " bytes", trace->size_bytes);
	if (totals->events)
		output_format(output, ", %.2f an event", (double)trace->size_bytes / (double)totals->events);
	output_char(output, '\n');
	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i])
			print_process(output, trace, trace->processes[i], quick);
}

/* --- all --- */

static void note_progress(void *owner, uint64_t bytes)
{
	struct progress *progress = owner;

	progress_add(progress, bytes - progress->done);
}

static int read_all(struct trace *trace, bool quick)
{
	struct progress progress;
	int error = 0;

	progress_begin(&progress, "checking", trace->size_bytes);
	if (!quick)
		trace_check(trace, note_progress, &progress);
	for (uint32_t i = 0; i < trace->thread_count && !error; i++)
		if (trace->threads[i])
			error = trace_count_events(trace, trace->threads[i]);
	progress_end(&progress);
	return error;
}

/* Returns 0 or -ENOMEM. */
static int list_trace(json_t *list, struct trace *trace, const struct trace_totals *totals, bool quick)
{
	json_t *object;

	json_memory_begin();
	object = json_trace(trace, totals, quick);
	if (json_memory_ran_out) /* the object is incomplete */
		json_decref(object);
	else
		json_array_append_new(list, object);
	return json_memory_ran_out ? -ENOMEM : 0;
}

/* Prints one trace, or adds it to list. Returns the exit status for it. */
static int show_trace(const char *path, bool quick, json_t *list, struct output *output)
{
	struct trace *trace = trace_open_with_message(path);
	struct trace_totals totals;
	int error;

	if (!trace)
		return CLI_FAILED;
	error = read_all(trace, quick);
	if (!error)
		error = trace_count_totals(trace, &totals);
	if (list && !error)
		error = list_trace(list, trace, &totals, quick);
	else if (!error)
		print_trace(output, trace, &totals, quick);
	if (error)
		output_message("evprof info: %s: %s", path, strerror(-error));
	return verb_close(trace, error);
}

/* Returns 0 or -ENOMEM. */
static int print_list(struct output *output, const json_t *list, bool several)
{
	char *text = NULL;

	json_memory_begin();
	if (json_array_size(list))
		text = json_dumps(several ? list : json_array_get(list, 0), JSON_INDENT(1));
	if (text && !json_memory_ran_out) {
		output_string(output, text);
		output_char(output, '\n');
	}
	free(text);
	return json_memory_ran_out ? -ENOMEM : 0;
}

static int show_traces(char *const *paths, int count, bool json, bool quick)
{
	json_t *list = json ? json_array() : NULL;
	struct output output;
	int status = CLI_FINE;
	int error = json && !list ? -ENOMEM : output_open(&output, "-");

	for (int i = 0; i < count && !error; i++) {
		int one;

		if (i && !json)
			output_char(&output, '\n');
		one = show_trace(paths[i], quick, list, &output);
		status = cli_status_worst(one, status);
	}
	if (!error) {
		int listed = list ? print_list(&output, list, count > 1) : 0;

		error = output_close(&output);
		error = listed ? listed : error;
	}
	json_decref(list);
	if (error)
		output_message("evprof info: cannot write: %s", strerror(-error));
	return error ? CLI_FAILED : status;
}

int cmd_info(int argc, char **argv)
{
	static const struct verb_option options_known[] = {VERB_FLAG("json", 0, request, json),
							   VERB_FLAG("quick", 0, request, quick), VERB_OPTIONS_END};
	static const struct verb_usage usage = {"info", options_known, {help_text}};
	struct request request = {0};
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	if (optind == argc) {
		cli_misused("info", "a trace is missing");
		return CLI_FAILED;
	}
	return show_traces(argv + optind, argc - optind, request.json, request.quick);
}
