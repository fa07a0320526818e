/*
 * chrome.c - Chrome trace JSON: {"traceEvents": [...]}, for Perfetto's and Chrome's viewers.
 *
 *   calls of Python and C         B and E, nested; open calls end at the last time of their thread
 *   steps of tasks                b and e, in addition to B and E, with an id for each task
 *   spans                         b and e, with an id for each; arguments of spans and marks as args
 *   counters                      C
 *   exceptions, marks, lost events, fork, exec, exit, pause      i
 *   stretches in which functions were thinned (EVPROF_BUDGET)    b and e, with an id for each thread
 *   names of processes and threads                               M
 *   bytes of the heap by allocator, where they were recorded     C, at most one each 100 us
 *
 * Threads are written one after the other; viewers sort by time. Text is escaped by output_json(), so the file is
 * strict JSON for any names.
 */
#include "export/export.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/heap_curve.h"
#include "replay/call_walk.h"
#include "replay/spans.h"
#include "trace/arguments.h"
#include "trace/labels.h"
#include "util/digits.h"

#define HEAP_SAMPLE_NS 100000

/* The JSON text shared by all B events of a function, made once; it starts with the category of most of them. */
struct fragment {
	char *bytes;
	size_t length;
	size_t category_length;
};

#define FRAGMENT_SHORT 1024 /* most fragments are shorter, and need no check for room */

struct chrome {
	struct output *output;
	const struct trace_process *process;
	struct fragment *functions; /* by key: name and args */
	uint32_t keys;
	/* The text up to the time that all B and all E events of the thread share, and its length. */
	char begin[96];
	char end[96];
	size_t begin_length;
	const char *place; /* in begin: ,"pid":1,"tid":2,"ts": */
	struct digits_near near;
	int64_t now_ns;
	bool any;	  /* the next event needs a comma before it */
	bool memory;	  /* the process has memory events */
	const char *heap; /* the counter that is written */
	struct spans spans;
	struct arguments arguments; /* of the thread's next span or mark */
};

static void begin_event(struct chrome *chrome)
{
	output_put(chrome->output, ",\n", chrome->any ? 2 : 0);
	chrome->any = true;
}

static void put_time(struct chrome *chrome)
{
	output_string(chrome->output, chrome->place);
	output_micros(chrome->output, chrome->now_ns);
}

/* --- calls --- */

static const char *const categories[WIRE_KINDS] = {
    [WIRE_CALL] = ",\"cat\":\"call\"",	   [WIRE_RESUME] = ",\"cat\":\"resume\"", [WIRE_THROW] = ",\"cat\":\"throw\"",
    [WIRE_C_CALL] = ",\"cat\":\"c_call\"", [WIRE_FRAME] = ",\"cat\":\"running\"",
};

/* The kind of most calls of a function. */
static inline unsigned usual_kind(uint32_t key)
{
	return key & 1 ? WIRE_C_CALL : WIRE_CALL;
}

static void put_function(struct output *output, struct text name, const struct wire_definition *definition,
			 bool c_function)
{
	output_string(output, ",\"name\":\"");
	output_json(output, name);
	if (c_function || !definition) {
		output_string(output, "\"}");
		return;
	}
	output_string(output, "\",\"args\":{\"file\":\"");
	output_json(output, trace_string(definition, 0));
	output_format(output, "\",\"line\":%u}}", definition->number);
}

/* Makes the fragment of a function, at its first call. */
static int make_fragment(struct fragment *fragment, const struct wire_definition *definition, uint32_t key)
{
	char *name = label_display(definition, key & 1, key / 2);
	struct output piece;

	if (!name || output_open_memory(&piece) < 0) {
		free(name);
		return -ENOMEM;
	}
	output_string(&piece, categories[usual_kind(key)]);
	fragment->category_length = piece.used;
	put_function(&piece, text_of(name), definition, key & 1);
	fragment->bytes = output_close_memory(&piece, &fragment->length);
	free(name);
	return fragment->bytes ? 0 : -ENOMEM;
}

/* Begins or ends a step in the task's row: viewers make a row for each id, or for each name. */
static void put_step(struct chrome *chrome, struct call_walk *walk, const struct walk_frame *frame, char phase)
{
	char *name = walk_task_name(walk, frame);

	if (!name) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	begin_event(chrome);
	output_format(chrome->output, "{\"ph\":\"%c\"", phase);
	put_time(chrome);
	output_format(chrome->output, ",\"cat\":\"task\",\"id\":\"%u.%u\",\"name\":\"", walk->thread->number,
		      frame->task);
	output_json(chrome->output, text_of(name));
	output_string(chrome->output, "\"}");
	free(name);
}

/* Writes the B or E event of a call, up to its time. Returns room for FRAGMENT_SHORT bytes after it. */
static inline char *begin_call(struct chrome *chrome, bool begins)
{
	char *at = output_room(chrome->output, sizeof(chrome->begin) + 2 * DIGITS_MAX + FRAGMENT_SHORT), *start = at;
	char six[6];

	/* Times of the first millisecond have fewer digits. */
	if (__builtin_expect(chrome->now_ns < 1000000 || !chrome->any, 0)) {
		begin_event(chrome);
		output_string(chrome->output, begins ? "{\"ph\":\"B\"" : "{\"ph\":\"E\"");
		put_time(chrome);
		return output_room(chrome->output, FRAGMENT_SHORT);
	}
	memcpy(at, begins ? chrome->begin : chrome->end, sizeof(chrome->begin));
	at += chrome->begin_length;
	digits_six(six, digits_near(&chrome->near, (uint64_t)chrome->now_ns));
	memcpy(at, chrome->near.text, DIGITS_MAX);
	at += chrome->near.length;
	memcpy(at, six, 3);
	at[3] = '.';
	memcpy(at + 4, six + 3, 3);
	output_take(chrome->output, (size_t)(at + 7 - start));
	return at + 7;
}

static void chrome_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct chrome *chrome = owner;
	struct fragment *fragment = &chrome->functions[frame->key];
	char *room;

	if (!fragment->bytes && make_fragment(fragment, walk_definition(walk, frame->key), frame->key) < 0) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	chrome->now_ns = walk->now_ns;
	room = begin_call(chrome, true);
	if (frame->kind == usual_kind(frame->key) && fragment->length <= FRAGMENT_SHORT) {
		memcpy(room, fragment->bytes, fragment->length);
		output_take(chrome->output, fragment->length);
	} else {
		output_string(chrome->output, categories[frame->kind]);
		output_put(chrome->output, fragment->bytes + fragment->category_length,
			   fragment->length - fragment->category_length);
	}
	if (frame->task)
		put_step(chrome, walk, frame, 'b');
	if (chrome->output->error)
		walk_fail(walk, chrome->output->error);
}

static void chrome_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	static const char *const ends[WIRE_KINDS] = {
	    [WIRE_YIELD] = ",\"args\":{\"end\":\"yield\"}",
	    [WIRE_UNWIND] = ",\"args\":{\"end\":\"unwind\"}",
	    [WIRE_C_EXCEPTION] = ",\"args\":{\"end\":\"exception\"}",
	};
	struct chrome *chrome = owner;
	char *room;

	chrome->now_ns = walk->now_ns;
	if (frame->task)
		put_step(chrome, walk, frame, 'e');
	room = begin_call(chrome, false);
	if (ends[how]) {
		output_string(chrome->output, ends[how]);
		output_char(chrome->output, '}');
		return;
	}
	*room = '}';
	output_take(chrome->output, 1);
}

/* --- instants --- */

/* Writes the args of a span or mark, if it has any, and forgets them. */
static void put_event_arguments(struct chrome *chrome)
{
	if (chrome->arguments.count) {
		output_string(chrome->output, ",\"args\":{");
		arguments_json(chrome->output, chrome->process, &chrome->arguments);
		output_char(chrome->output, '}');
	}
	arguments_forget(&chrome->arguments);
}

static void put_instant(struct chrome *chrome, unsigned kind, const char *category, struct text name, uint64_t number)
{
	const char *argument = export_instants[kind].argument;

	begin_event(chrome);
	output_string(chrome->output, "{\"ph\":\"i\"");
	put_time(chrome);
	output_format(chrome->output, ",\"s\":\"%s\",\"cat\":\"%s\",\"name\":\"",
		      kind == WIRE_EXCEPTION || kind == WIRE_GAP ? "t" : "p", category);
	if (kind == WIRE_GAP)
		output_format(chrome->output, "%llu events lost", (unsigned long long)number);
	else
		output_json(chrome->output, name);
	output_char(chrome->output, '"');
	if (argument)
		output_format(chrome->output, ",\"args\":{\"%s\":%llu}", argument, (unsigned long long)number);
	if (kind == WIRE_MARK)
		put_event_arguments(chrome);
	output_char(chrome->output, '}');
}

/* --- spans and counters --- */

static void put_span(struct chrome *chrome, uint64_t number, uint32_t name, char phase)
{
	begin_event(chrome);
	output_format(chrome->output, "{\"ph\":\"%c\"", phase);
	put_time(chrome);
	output_format(chrome->output, ",\"cat\":\"span\",\"id\":\"span %u.%llu\",\"name\":\"", chrome->process->number,
		      (unsigned long long)number);
	output_json(chrome->output, span_name(chrome->process, name));
	output_string(chrome->output, "\"");
	if (phase == 'b')
		put_event_arguments(chrome);
	output_char(chrome->output, '}');
}

static void begin_span(struct chrome *chrome, struct call_walk *walk, const uint64_t *extra)
{
	struct span *span = spans_begin(&chrome->spans, walk, extra);
	int64_t end_ns = span ? span->end_ns : -1;

	if (!span)
		return;
	put_span(chrome, span->number, span->name, 'b');
	if (end_ns < 0)
		return;
	chrome->now_ns = end_ns;
	put_span(chrome, span->number, span->name, 'e');
	spans_end(&chrome->spans, walk, extra[1]);
}

static void end_span(struct chrome *chrome, struct call_walk *walk, uint64_t number)
{
	struct span span = spans_end(&chrome->spans, walk, number);

	if (span.number)
		put_span(chrome, span.number, span.name, 'e');
}

/* JSON has no number for what is not finite. */
static void put_counter(struct chrome *chrome, const uint64_t *extra)
{
	if (!isfinite(wire_double(extra[1])))
		return;
	begin_event(chrome);
	output_string(chrome->output, "{\"ph\":\"C\"");
	put_time(chrome);
	output_string(chrome->output, ",\"cat\":\"counter\",\"name\":\"");
	output_json(chrome->output, span_name(chrome->process, *extra));
	output_format(chrome->output, "\",\"args\":{\"value\":%.17g}}", wire_double(extra[1]));
}

static void chrome_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct chrome *chrome = owner;
	unsigned kind = wire_head_kind(head);
	uint32_t argument = wire_argument(head, extra);
	const char *name = export_instants[kind].name;
	const struct wire_definition *definition = NULL;

	chrome->now_ns = walk->now_ns;
	chrome->memory |= wire_is_memory(kind);
	if (kind == WIRE_GAP)
		arguments_forget(&chrome->arguments);
	if (kind == WIRE_ARGUMENT && arguments_take(&chrome->arguments, head, extra) < 0)
		walk_fail(walk, -ENOMEM);
	else if (kind == WIRE_SPAN_BEGIN)
		begin_span(chrome, walk, extra);
	else if (kind == WIRE_SPAN_END)
		end_span(chrome, walk, wire_number(head, extra));
	else if (kind == WIRE_COUNTER)
		put_counter(chrome, extra);
	if (kind == WIRE_PAUSE)
		name = argument ? "recording stops" : "recording starts";
	if (kind == WIRE_EXCEPTION || kind == WIRE_MARK)
		definition = trace_name(kind == WIRE_MARK ? &walk->process->marks : &walk->process->types, argument);
	if (name)
		put_instant(chrome, kind, name, definition ? trace_string(definition, 1) : text_of(name),
			    kind == WIRE_GAP ? *extra : export_instant_number(kind, argument));
}

/* A row of its own: what was called then is in the slices of the callers, without slices of its own. */
static void chrome_thinned(void *owner, struct call_walk *walk, const struct walk_thinned *thinned)
{
	struct chrome *chrome = owner;
	char *names = walk_thinned_text(walk, thinned);
	const int64_t times[] = {thinned->since_ns, walk->now_ns};

	if (!names)
		walk_fail(walk, -ENOMEM);
	for (int i = 0; names && i < 2; i++) {
		begin_event(chrome);
		output_string(chrome->output, i ? "{\"ph\":\"e\"" : "{\"ph\":\"b\"");
		chrome->now_ns = times[i];
		put_time(chrome);
		output_format(chrome->output,
			      ",\"cat\":\"thinned\",\"id\":\"thinned %u\",\"name\":\"" EXPORT_THINNED "\"",
			      walk->thread->number);
		if (!i) {
			output_format(chrome->output, ",\"args\":{\"functions\":%u,\"not recorded\":\"",
				      thinned->count);
			output_json(chrome->output, text_of(names));
			output_string(chrome->output, "\"}");
		}
		output_char(chrome->output, '}');
	}
	free(names);
}

/* --- names --- */

static void begin_metadata(struct chrome *chrome, const char *name, int64_t pid, uint32_t tid)
{
	begin_event(chrome);
	output_format(chrome->output, "{\"ph\":\"M\",\"pid\":%lld,\"tid\":%u,\"name\":\"%s\",\"args\":{",
		      (long long)pid, tid, name);
}

static void name_process(struct chrome *chrome)
{
	const struct trace_process *process = chrome->process;
	const char *argument;

	begin_metadata(chrome, "process_name", process->pid, (uint32_t)process->pid);
	output_string(chrome->output, "\"name\":\"");
	output_json(chrome->output, text_of(export_program(process)));
	output_string(chrome->output, "\"}}");
	begin_metadata(chrome, "process_labels", process->pid, (uint32_t)process->pid);
	output_string(chrome->output, "\"labels\":\"");
	for (size_t i = 0; (argument = export_argument(process, i)); i++) {
		output_string(chrome->output, i ? " " : "");
		output_json(chrome->output, text_of(argument));
	}
	export_put_sampling(chrome->output, trace_process_sample_rate(process));
	output_string(chrome->output, "\"}}");
	begin_metadata(chrome, "process_sort_index", process->pid, (uint32_t)process->pid);
	output_format(chrome->output, "\"sort_index\":%u}}", process->number);
}

static void name_thread(struct chrome *chrome, const struct trace_thread *thread)
{
	begin_metadata(chrome, "thread_name", chrome->process->pid, thread->tid);
	output_string(chrome->output, "\"name\":\"");
	if (thread->name && thread->name[0])
		output_json(chrome->output, text_of(thread->name));
	else
		output_format(chrome->output, "thread %u", thread->tid);
	output_string(chrome->output, "\"}}");
	begin_metadata(chrome, "thread_sort_index", chrome->process->pid, thread->tid);
	output_format(chrome->output, "\"sort_index\":%u}}", thread->number);
}

/* --- the heap, and the resident size --- */

static void put_bytes_at(struct chrome *chrome, int64_t ns, const char *name, uint64_t bytes)
{
	begin_event(chrome);
	output_format(chrome->output,
		      "{\"ph\":\"C\",\"pid\":%lld,\"tid\":%lld,\"ts\":", (long long)chrome->process->pid,
		      (long long)chrome->process->pid);
	output_micros(chrome->output, ns);
	output_format(chrome->output, ",\"name\":\"%s\",\"args\":{\"bytes\":", name);
	output_u64(chrome->output, bytes);
	output_string(chrome->output, "}}");
}

static void sample_heap(void *owner, int64_t ns, uint64_t bytes)
{
	struct chrome *chrome = owner;

	put_bytes_at(chrome, ns, chrome->heap, bytes);
}

/* A counter for each of the allocators that were recorded. */
static int put_heaps(struct chrome *chrome, const struct call_walk *walk)
{
	static const char *const names[BLOCK_SOURCES] = HEAP_NAMES;
	unsigned count = trace_process_records(walk->process, "malloc") ? BLOCK_SOURCES : 1;
	int error = 0;

	for (unsigned i = 0; !error && i < count; i++) {
		chrome->heap = names[i];
		error =
		    heap_curve(walk->trace, walk->process, walk->filter, 1u << i, HEAP_SAMPLE_NS, sample_heap, chrome);
	}
	return error;
}

static void sample_resident(void *owner, const struct rss_point *point)
{
	put_bytes_at(owner, point->ns, RSS_NAME, point->bytes);
}

/* --- all --- */

static int chrome_thread(void *owner, struct call_walk *walk)
{
	struct chrome *chrome = owner;

	name_thread(chrome, walk->thread);
	arguments_forget(&chrome->arguments);
	chrome->begin_length = (size_t)snprintf(
	    chrome->begin, sizeof(chrome->begin),
	    ",\n{\"ph\":\"B\",\"pid\":%lld,\"tid\":%u,\"ts\":", (long long)chrome->process->pid, walk->thread->tid);
	chrome->place = strchr(chrome->begin + 2, ',');
	memcpy(chrome->end, chrome->begin, sizeof(chrome->end));
	*strchr(chrome->end, 'B') = 'E';
	return 0;
}

static int chrome_process(void *owner, struct call_walk *walk)
{
	struct chrome *chrome = owner;

	chrome->process = walk->process;
	chrome->memory = false;
	chrome->keys = walk_keys(walk);
	chrome->functions = calloc(chrome->keys, sizeof(*chrome->functions));
	if (!chrome->functions)
		return -ENOMEM;
	name_process(chrome);
	return spans_begin_process(&chrome->spans, walk);
}

static void free_functions(struct chrome *chrome)
{
	uint32_t key;

	for (key = 0; chrome->functions && key < chrome->keys; key++)
		free(chrome->functions[key].bytes);
	free(chrome->functions);
	chrome->functions = NULL;
}

static int chrome_process_end(void *owner, struct call_walk *walk)
{
	struct chrome *chrome = owner;

	free_functions(chrome);
	spans_done(&chrome->spans);
	rss_curve(walk->trace, walk->process, walk->filter, sample_resident, chrome);
	if (!chrome->memory)
		return 0;
	return put_heaps(chrome, walk);
}

int export_chrome(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct call_visitor visitor = {.process = chrome_process,
						    .process_end = chrome_process_end,
						    .thread = chrome_thread,
						    .push = chrome_push,
						    .pop = chrome_pop,
						    .other = chrome_other,
						    .thinned = chrome_thinned,
						    .timed = true};
	struct chrome chrome = {.output = output, .spans.in_turn = true};
	int error;

	output_string(output,
		      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"evprof\"},\"traceEvents\":[\n");
	error = walk_trace(export->trace, export->filter, progress, &visitor, &chrome);
	free_functions(&chrome);
	spans_done(&chrome.spans);
	arguments_done(&chrome.arguments);
	output_string(output, "\n]}\n");
	return error;
}
