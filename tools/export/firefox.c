/*
 * firefox.c - the Firefox Profiler's processed profile format, version 57, for profiler.firefox.com.
 *
 *   samples    each period in which the stack of a thread does not change is a sample, with its length as its weight
 *              ("tracing-ms"); a period without calls has no stack and no weight
 *   markers    exceptions (with the stack that raised them), lost events, marks, fork, exec, exit, pause; and the steps
 *              of each task as intervals, which the viewer's marker chart shows as a row with the task's name
 *
 * The profiler upgrades older versions of its format. Version 57 is the last in which each thread has its own table of
 * stacks, so that a thread can be written when it ends.
 *
 * The format is columns: all stacks of the samples, then all times, then all weights. The first column goes straight to
 * the output. The lengths of the samples, from which the other two are made, wait in an unnamed file next to it, and so
 * do the columns of the markers. A second thread writes both. So memory is that of analysis/stacks.h and the names of
 * functions. The viewer holds everything in memory: filter the trace (--from, --min-duration, --include) above some
 * millions of calls.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stacks.h"
#include "export/firefox_spool.h"
#include "export/firefox_tables.h"
#include "replay/spans.h"
#include "trace/arguments.h"
#include "util/batches.h"
#include "util/digits.h"

enum {
	SPOOL_LENGTHS,
	SPOOL_MARKER_NAMES,
	SPOOL_MARKER_TIMES,
	SPOOL_MARKER_ENDS,
	SPOOL_MARKER_PHASES,
	SPOOL_MARKER_DATA,
	SPOOLS
};

/* Phases of markers, with the viewer's numbers. */
#define PHASE_INSTANT "0"
#define PHASE_INTERVAL "1"

struct firefox {
	struct output *output;
	struct batches samples; /* struct sample, queued for the output and SPOOL_LENGTHS */
	struct firefox_tables tables;
	struct stacks stacks;
	struct spool spools[SPOOLS];
	char pid[48];
	struct u64_map pids; /* pids in use: pid | 1 << 63 */
	const char *program;
	bool sampled;
	struct output text;	    /* of the marker that is being made */
	struct spans spans;	    /* of the process; their texts are their arguments */
	struct arguments arguments; /* of the thread's next span or mark */
	/* Of the current thread. */
	uint64_t sample_count;
	uint64_t written; /* of the samples, by the second thread */
	int64_t first_ns; /* begin of the first sample */
	uint64_t markers;
	uint32_t stack; /* the running stack; 0: none */
	int64_t since_ns;
	bool any_thread;
};

/* --- samples --- */

static void put_stack(struct firefox *firefox, uint64_t stack)
{
	char *room = output_room(firefox->output, DIGITS_MAX + 8);
	char *at = room;

	*at = ',';
	at += firefox->written++ > 0;
	if (stack)
		at = digits_put(at, stack - 1);
	else
		at = (char *)memcpy(at, "null", 4) + 4;
	output_take(firefox->output, (size_t)(at - room));
}

/* Runs in the second thread. */
static int write_samples(void *owner, const char *bytes, size_t used)
{
	const struct sample *sample = (const struct sample *)bytes, *end = sample + used / sizeof(*sample);
	struct firefox *firefox = owner;
	struct spool *lengths = &firefox->spools[SPOOL_LENGTHS];

	for (; sample < end; sample++) {
		put_stack(firefox, sample->stack);
		spool_length(lengths, sample);
	}
	return firefox->output->error ? firefox->output->error : lengths->column.error;
}

static void put_sample(struct firefox *firefox, uint64_t length_ns)
{
	struct sample *sample = batches_room(&firefox->samples, sizeof(*sample));

	if (sample)
		*sample = (struct sample){length_ns, firefox->stack};
	if (!firefox->sample_count++)
		firefox->first_ns = firefox->since_ns;
}

/* Makes `stack` the running one, and writes the sample of the previous one. */
static void change_stack(struct firefox *firefox, struct call_walk *walk, uint32_t stack)
{
	uint64_t length = (uint64_t)(walk->now_ns - firefox->since_ns);

	if (length && (firefox->stack || firefox->sample_count))
		put_sample(firefox, length);
	firefox->stack = stack;
	firefox->since_ns = walk->now_ns;
	if (__builtin_expect(firefox->samples.error != 0, 0))
		walk_fail(walk, firefox->samples.error);
}

static void firefox_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct firefox *firefox = owner;

	change_stack(firefox, walk, stacks_push(&firefox->stacks, walk, frame, frame->key));
}

/* Moves the function on top of the stack to the line of a sample. */
static void put_line(struct firefox *firefox, struct call_walk *walk, uint32_t line)
{
	struct walk_frame *frame;
	uint32_t function;

	if (!firefox->sampled || !line || !walk_top_runs(walk))
		return;
	frame = &walk->frames[walk->shown - 1];
	function = firefox_function_at_line(&firefox->tables, walk, frame->key, line);
	if (function)
		change_stack(firefox, walk, stacks_push(&firefox->stacks, walk, frame, function));
	else
		walk_fail(walk, -ENOMEM);
}

/* --- markers --- */

/* Writes a marker. since_ns is its start; below 0: it is an instant. */
static void put_marker_since(struct firefox *firefox, struct call_walk *walk, struct text kind, struct text text,
			     int64_t since_ns)
{
	uint32_t name = firefox->text.error ? UINT32_MAX : firefox_string_number(&firefox->tables, kind);
	struct spool *spools = firefox->spools;
	bool lasts = since_ns >= 0;
	struct output *data;

	if (name == UINT32_MAX) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	output_u64(spool_begin(&spools[SPOOL_MARKER_NAMES]), name);
	output_ms(spool_begin(&spools[SPOOL_MARKER_TIMES]), (uint64_t)(lasts ? since_ns : walk->now_ns));
	if (lasts)
		output_ms(spool_begin(&spools[SPOOL_MARKER_ENDS]), (uint64_t)walk->now_ns);
	else
		output_string(spool_begin(&spools[SPOOL_MARKER_ENDS]), "null");
	output_string(spool_begin(&spools[SPOOL_MARKER_PHASES]), lasts ? PHASE_INTERVAL : PHASE_INSTANT);
	data = spool_begin(&spools[SPOOL_MARKER_DATA]);
	output_string(data, "{\"type\":\"evprof\",\"text\":\"");
	output_json(data, text);
	output_char(data, '"');
	if (firefox->stack)
		output_format(data, ",\"cause\":{\"stack\":%u}", firefox->stack - 1);
	output_char(data, '}');
	firefox->markers++;
}

static void put_marker(struct firefox *firefox, struct call_walk *walk, const char *kind, struct text text)
{
	put_marker_since(firefox, walk, text_of(kind), text, -1);
}

/* The text of the marker that is being made: up to three pieces. It is valid until the next one is made. */
static struct text make_text(struct firefox *firefox, struct text first, const char *between, struct text last)
{
	struct output *text = &firefox->text;

	text->used = 0;
	output_put(text, first.at, first.length);
	output_string(text, between);
	output_put(text, last.at, last.length);
	return (struct text){text->buffer, text->used};
}

static void exception_marker(struct firefox *firefox, struct call_walk *walk, uint32_t id)
{
	const struct wire_definition *type = trace_name(&walk->process->types, id);
	struct text module = type ? trace_string(type, 3) : text_of("");
	struct text name = type ? trace_string(type, trace_string(type, 2).length ? 2 : 1) : text_of("?");

	put_marker(firefox, walk, "exception", make_text(firefox, module, module.length ? "." : "", name));
}

static void task_marker(struct firefox *firefox, struct call_walk *walk, const struct walk_frame *frame)
{
	char *name = walk_task_name(walk, frame);

	if (name)
		put_marker_since(firefox, walk, text_of(name), text_of(""), frame->start_ns);
	else
		walk_fail(walk, -ENOMEM);
	free(name);
}

/* A span is a marker at its end, in the thread in which it began; a row for each name. */
static void span_marker(struct firefox *firefox, struct call_walk *walk, uint64_t number)
{
	struct span span = spans_end(&firefox->spans, walk, number);
	struct text kind = make_text(firefox, text_of("span"), " ", span_name(walk->process, span.name));

	if (span.number)
		put_marker_since(firefox, walk, kind, text_of(span.text ? span.text : ""), span.start_ns);
	free(span.text);
}

/* The arguments of a span or mark, which the caller frees; NULL: none. Without memory it fails the walk. */
static char *take_arguments(struct firefox *firefox, struct call_walk *walk)
{
	char *text = arguments_shown(walk->process, &firefox->arguments, SIZE_MAX);

	if (firefox->arguments.count && !text)
		walk_fail(walk, -ENOMEM);
	arguments_forget(&firefox->arguments);
	return text;
}

static void begin_span(struct firefox *firefox, struct call_walk *walk, const uint64_t *extra)
{
	struct span *span = spans_begin(&firefox->spans, walk, extra);
	char *text = take_arguments(firefox, walk);
	int64_t now_ns = walk->now_ns;
	uint32_t stack = firefox->stack;

	if (!span) {
		free(text);
		return;
	}
	span->text = text;
	if (span->end_ns < 0)
		return;
	/* Another thread ends it: its stack is in the tables of that thread. */
	walk->now_ns = span->end_ns;
	firefox->stack = 0;
	span_marker(firefox, walk, extra[1]);
	firefox->stack = stack;
	walk->now_ns = now_ns;
}

/* The name of the mark, and its arguments. */
static void mark_marker(struct firefox *firefox, struct call_walk *walk, uint32_t id)
{
	const struct wire_definition *mark = trace_name(&walk->process->marks, id);
	struct text name = mark ? trace_string(mark, 1) : text_of("?");
	char *arguments = take_arguments(firefox, walk);

	put_marker(firefox, walk, "mark",
		   make_text(firefox, name, arguments ? ": " : "", text_of(arguments ? arguments : "")));
	free(arguments);
}

static void counter_marker(struct firefox *firefox, struct call_walk *walk, const uint64_t *extra)
{
	struct text kind = make_text(firefox, text_of("counter"), " ", span_name(walk->process, *extra));
	char value[32];

	snprintf(value, sizeof(value), "%.17g", wire_double(extra[1]));
	put_marker_since(firefox, walk, kind, text_of(value), -1);
}

static void firefox_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	(void)how;
	if (frame->task)
		task_marker(owner, walk, frame);
	change_stack(owner, walk, frame > walk->frames ? (uint32_t)frame[-1].user : 0);
}

static void firefox_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	uint32_t argument = wire_argument(head, extra);
	struct firefox *firefox = owner;
	unsigned kind = wire_head_kind(head);
	const struct export_instant *instant = &export_instants[kind];
	char text[64];

	switch (kind) {
	case WIRE_EXCEPTION:
		exception_marker(firefox, walk, argument);
		break;
	case WIRE_GAP:
		arguments_forget(&firefox->arguments);
		snprintf(text, sizeof(text), "%llu events lost", (unsigned long long)*extra);
		put_marker(firefox, walk, "lost events", text_of(text));
		break;
	case WIRE_MARK:
		mark_marker(firefox, walk, argument);
		break;
	case WIRE_ARGUMENT:
		if (arguments_take(&firefox->arguments, head, extra) < 0)
			walk_fail(walk, -ENOMEM);
		break;
	case WIRE_SPAN_BEGIN:
		begin_span(firefox, walk, extra);
		break;
	case WIRE_SPAN_END:
		span_marker(firefox, walk, wire_number(head, extra));
		break;
	case WIRE_COUNTER:
		counter_marker(firefox, walk, extra);
		break;
	case WIRE_LINE:
		put_line(firefox, walk, argument);
		break;
	case WIRE_PAUSE:
		put_marker(firefox, walk, "pause", text_of(argument ? "recording stops" : "recording starts"));
		break;
	default:
		text[0] = 0;
		if (instant->argument)
			snprintf(text, sizeof(text), "%s %u", instant->argument, export_instant_number(kind, argument));
		if (instant->name)
			put_marker(firefox, walk, instant->name, text_of(text));
	}
}

static void firefox_thinned(void *owner, struct call_walk *walk, const struct walk_thinned *thinned)
{
	char *names = walk_thinned_text(walk, thinned);

	if (names)
		put_marker_since(owner, walk, text_of(EXPORT_THINNED), text_of(names), thinned->since_ns);
	else
		walk_fail(walk, -ENOMEM);
	free(names);
}

static int put_markers(struct firefox *firefox)
{
	static const char *const columns[SPOOLS] = {[SPOOL_MARKER_NAMES] = "name",
						    [SPOOL_MARKER_TIMES] = "startTime",
						    [SPOOL_MARKER_ENDS] = "endTime",
						    [SPOOL_MARKER_PHASES] = "phase",
						    [SPOOL_MARKER_DATA] = "data"};
	struct output *output = firefox->output;
	int error = 0;

	output_format(output, ",\n\"markers\":{\"length\":%llu", (unsigned long long)firefox->markers);
	for (unsigned i = SPOOL_MARKER_NAMES; i < SPOOLS && !error; i++) {
		output_format(output, ",\"%s\":[", columns[i]);
		error = spool_copy(&firefox->spools[i], output);
		output_char(output, ']');
	}
	firefox_put_constant(output, "category", "2", firefox->markers); /* FIREFOX_CATEGORY_OTHER */
	output_char(output, '}');
	return error;
}

/* --- threads and processes --- */

/* Writes the ms from the start of the trace to that time, not below 0. */
static void put_start(struct firefox *firefox, const struct call_walk *walk, const char *name, uint64_t ticks)
{
	int64_t ns = trace_ns(walk->process, ticks) - walk->trace->start_ns;

	output_string(firefox->output, name);
	output_ms(firefox->output, ns > 0 ? (uint64_t)ns : 0);
}

static int firefox_thread(void *owner, struct call_walk *walk)
{
	struct firefox *firefox = owner;
	const struct trace_thread *thread = walk->thread;

	output_string(firefox->output, firefox->any_thread ? ",\n{\"name\":\"" : "\n{\"name\":\"");
	firefox->any_thread = true;
	output_json(firefox->output, text_of(thread->name && thread->name[0] ? thread->name : "thread"));
	output_format(firefox->output, "\",\"isMainThread\":%s,\"pid\":\"%s\",\"tid\":%u,\"processName\":\"",
		      thread->tid == walk->process->pid ? "true" : "false", firefox->pid, thread->tid);
	output_json(firefox->output, text_of(firefox->program));
	output_string(firefox->output, "\",\"processType\":\"default\",\"pausedRanges\":[]");
	put_start(firefox, walk, ",\"processStartupTime\":", walk->process->start_ticks);
	put_start(firefox, walk, ",\"processShutdownTime\":null,\"registerTime\":", thread->start_ticks);
	output_string(firefox->output, ",\"unregisterTime\":null,\n\"samples\":{\"stack\":[");
	firefox->sample_count = firefox->written = firefox->markers = 0;
	firefox->stack = 0;
	firefox->since_ns = walk->now_ns;
	arguments_forget(&firefox->arguments);
	return 0;
}

static int put_samples(struct firefox *firefox)
{
	int error;

	/* A sample without a stack ends the last one. */
	firefox->stack = 0;
	put_sample(firefox, 0);
	/* From here on this thread writes the output. */
	error = batches_wait(&firefox->samples);
	output_string(firefox->output, "],\n\"time\":[");
	if (!error)
		error = spool_times(&firefox->spools[SPOOL_LENGTHS], firefox->first_ns, firefox->output);
	output_string(firefox->output, "],\n\"weight\":[");
	if (!error)
		error = spool_weights(&firefox->spools[SPOOL_LENGTHS], firefox->output);
	if (!error)
		error = spool_empty(&firefox->spools[SPOOL_LENGTHS]);
	output_format(firefox->output, "],\"weightType\":\"tracing-ms\",\"length\":%llu}",
		      (unsigned long long)firefox->sample_count);
	return error;
}

/* What is still open when its thread has been read has no end: those of other threads were known at its begin. */
static void end_open_spans(struct firefox *firefox, struct call_walk *walk)
{
	int64_t now_ns = walk->now_ns;
	const struct span *span;

	for (size_t left = SIZE_MAX; (span = spans_next_unfinished(&firefox->spans, walk, &left));)
		span_marker(firefox, walk, span->number);
	walk->now_ns = now_ns;
}

static int firefox_thread_end(void *owner, struct call_walk *walk)
{
	struct firefox *firefox = owner;
	int error = put_samples(firefox);

	end_open_spans(firefox, walk);
	if (!error)
		error = walk->error;
	if (!error)
		error = firefox_put_tables(&firefox->tables, walk);
	if (!error)
		error = put_markers(firefox);
	output_string(
	    firefox->output,
	    ",\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
	    "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]}}");
	stacks_clear(&firefox->stacks);
	return error;
}

/* The viewer identifies a process by its pid, but an exec makes a second process with the same pid. */
static int name_pid(struct firefox *firefox, const struct call_walk *walk)
{
	const struct trace_process *process = walk->process;
	uint64_t *named = u64_map_make(&firefox->pids, (uint64_t)process->pid | UINT64_C(1) << 63);
	int length = snprintf(firefox->pid, sizeof(firefox->pid), "%lld", (long long)process->pid);

	if (!named)
		return -ENOMEM;
	if (*named)
		snprintf(firefox->pid + length, sizeof(firefox->pid) - (size_t)length, ".%u", process->number);
	*named = 1;
	return 0;
}

static int firefox_process(void *owner, struct call_walk *walk)
{
	struct firefox *firefox = owner;
	int error;

	firefox->program = export_program(walk->process);
	firefox->sampled = trace_process_sample_rate(walk->process) > 0;
	spans_done(&firefox->spans);
	error = spans_begin_process(&firefox->spans, walk);
	if (!error)
		error = firefox_tables_process(&firefox->tables, walk);
	return error ? error : name_pid(firefox, walk);
}

/* --- all --- */

static void put_meta(struct firefox *firefox, const struct trace *trace)
{
	uint64_t start_ns = trace->clock_count ? (uint64_t)(trace_realtime_offset(trace) + trace->start_ns) : 0;

	output_string(firefox->output, "{\"meta\":{\"preprocessedProfileVersion\":57,\"version\":30,\"product\":\"");
	output_json(firefox->output, text_of(trace->path));
	export_put_sampling(firefox->output, trace_sample_rate(trace));
	output_string(firefox->output, "\",\"importedFrom\":\"evprof\",\"startTime\":");
	output_ms(firefox->output, start_ns);
	output_string(
	    firefox->output,
	    ",\"interval\":0.001,\"processType\":0,\"stackwalk\":0,\"symbolicated\":true,"
	    "\"symbolicationNotSupported\":true,\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,\n"
	    "\"categories\":[{\"name\":\"Python\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
	    "{\"name\":\"C function\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
	    "{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],\n"
	    "\"markerSchema\":[{\"name\":\"evprof\",\"display\":[\"marker-chart\",\"marker-table\"],"
	    "\"tooltipLabel\":\"{marker.name} {marker.data.text}\",\"tableLabel\":\"{marker.data.text}\","
	    "\"chartLabel\":\"{marker.data.text}\",\"fields\":[{\"key\":\"text\",\"label\":\"What\","
	    "\"format\":\"string\"}]}]},\n\"libs\":[],\"threads\":[");
}

int export_firefox(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct call_visitor visitor = {.process = firefox_process,
						    .thread = firefox_thread,
						    .thread_end = firefox_thread_end,
						    .push = firefox_push,
						    .pop = firefox_pop,
						    .other = firefox_other,
						    .thinned = firefox_thinned,
						    .timed = true};
	struct firefox firefox = {.output = output,
				  .spans = {.in_turn = true, .ends_first = true},
				  .tables = {.output = output, .stacks = &firefox.stacks}};
	int error = output_open_memory(&firefox.text);

	for (size_t i = 0; !error && i < SPOOLS; i++)
		error = spool_open(&firefox.spools[i], output);
	if (!error) {
		put_meta(&firefox, export->trace);
		batches_begin(&firefox.samples, write_samples, &firefox);
		error = walk_trace(export->trace, export->filter, progress, &visitor, &firefox);
		batches_end(&firefox.samples);
		firefox_put_strings(&firefox.tables);
	}
	output_abandon(&firefox.text);
	for (size_t i = 0; i < SPOOLS; i++)
		spool_close(&firefox.spools[i]);
	stacks_done(&firefox.stacks);
	firefox_tables_done(&firefox.tables);
	u64_map_done(&firefox.pids);
	spans_done(&firefox.spans);
	arguments_done(&firefox.arguments);
	return error;
}
