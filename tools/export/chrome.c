/*
 * chrome.c - Chrome trace JSON: {"traceEvents": [...]}, for Perfetto's and Chrome's viewers.
 *
 *   calls of Python and C         B and E, nested; open calls end at the last time of their thread
 *   steps of tasks                b and e, in addition to B and E, with an id for each task
 *   exceptions, marks, lost events, fork, exec, exit, pause      i
 *   names of processes and threads                               M
 *   bytes of Python's heap, where memory was recorded            C, at most one each 100 us
 *
 * Threads are written one after the other; viewers sort by time. Text is escaped by output_json(), so the file is
 * strict JSON for any names.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/heap_curve.h"
#include "replay/call_walk.h"
#include "trace/labels.h"

#define HEAP_SAMPLE_NS 100000

/* The JSON text shared by all B events of a function, made once; it starts with the category of most of them. */
struct fragment {
	char *bytes;
	size_t length;
	size_t category_length;
};

#define FRAGMENT_SHORT 1024 /* most fragments are shorter, and need no check for room */

/*
 * The text that all B or all E events of a thread in one millisecond share, up to the last common digit. So each call
 * needs two copies, instead of a division for each digit.
 */
struct stamp {
	char begin[96];
	char end[96];
	size_t length;	  /* of begin and end */
	int64_t start_ns; /* of the millisecond; INT64_MAX: none yet */
};

#define STAMP_NS 1000000

struct chrome {
	struct output *output;
	const struct trace_process *process;
	struct fragment *functions; /* by key: name and args */
	uint32_t keys;
	char place[64]; /* ,"pid":1,"tid":2,"ts": for the thread */
	size_t place_length;
	struct stamp stamp;
	char threes[1000][4]; /* the digits of numbers below 1000 */
	int64_t now_ns;
	bool any;    /* the next event needs a comma before it */
	bool memory; /* the process has memory events */
};

static void begin_event(struct chrome *chrome)
{
	output_put(chrome->output, ",\n", chrome->any ? 2 : 0);
	chrome->any = true;
}

static void put_time(struct chrome *chrome)
{
	output_put(chrome->output, chrome->place, chrome->place_length);
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
	fragment->bytes = piece.error ? NULL : malloc(piece.used + 1);
	if (fragment->bytes) {
		memcpy(fragment->bytes, piece.buffer, piece.used);
		fragment->length = piece.used;
	}
	output_abandon(&piece);
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

/*
 * Makes the stamp for the millisecond of now_ns. Not for the first millisecond of the trace, where times have fewer
 * digits.
 */
static void make_stamp(struct chrome *chrome)
{
	struct stamp *stamp = &chrome->stamp;
	long long milliseconds = chrome->now_ns / STAMP_NS;
	int length;

	stamp->start_ns = milliseconds * STAMP_NS;
	length = snprintf(stamp->begin, sizeof(stamp->begin), ",\n{\"ph\":\"B\"%s%lld", chrome->place, milliseconds);
	snprintf(stamp->end, sizeof(stamp->end), ",\n{\"ph\":\"E\"%s%lld", chrome->place, milliseconds);
	stamp->length = (size_t)length;
}

static void make_threes(struct chrome *chrome)
{
	for (unsigned i = 0; i < 1000; i++)
		snprintf(chrome->threes[i], sizeof(chrome->threes[i]), "%03u", i);
}

/* Writes the B or E event of a call, up to its time. Returns room for FRAGMENT_SHORT bytes after it. */
static inline char *begin_call(struct chrome *chrome, bool begins)
{
	struct stamp *stamp = &chrome->stamp;
	uint32_t rest;
	char *at;

	if (chrome->now_ns < STAMP_NS || !chrome->any) {
		begin_event(chrome);
		output_string(chrome->output, begins ? "{\"ph\":\"B\"" : "{\"ph\":\"E\"");
		put_time(chrome);
		return output_room(chrome->output, FRAGMENT_SHORT);
	}
	if ((uint64_t)chrome->now_ns - (uint64_t)stamp->start_ns >= STAMP_NS)
		make_stamp(chrome);
	rest = (uint32_t)(chrome->now_ns - stamp->start_ns);
	at = output_room(chrome->output, sizeof(stamp->begin) + 8 + FRAGMENT_SHORT);
	memcpy(at, begins ? stamp->begin : stamp->end, sizeof(stamp->begin));
	at += stamp->length;
	memcpy(at, chrome->threes[rest / 1000], 4);
	at[3] = '.';
	memcpy(at + 4, chrome->threes[rest % 1000], 4);
	output_take(chrome->output, stamp->length + 7);
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

static void begin_instant(struct chrome *chrome, const char *scope, const char *category)
{
	begin_event(chrome);
	output_string(chrome->output, "{\"ph\":\"i\"");
	put_time(chrome);
	output_format(chrome->output, ",\"s\":\"%s\",\"cat\":\"%s\",\"name\":\"", scope, category);
}

static void plain_instant(struct chrome *chrome, const char *scope, const char *name)
{
	begin_instant(chrome, scope, name);
	output_format(chrome->output, "%s\"}", name);
}

static void number_instant(struct chrome *chrome, const char *name, const char *argument, uint64_t number)
{
	begin_instant(chrome, "p", name);
	output_format(chrome->output, "%s\",\"args\":{\"%s\":%llu}}", name, argument, (unsigned long long)number);
}

static void exception_instant(struct chrome *chrome, uint32_t id)
{
	const struct wire_definition *type = trace_name(&chrome->process->types, id);

	begin_instant(chrome, "t", "exception");
	output_json(chrome->output, type ? trace_string(type, 1) : text_of("exception"));
	output_string(chrome->output, "\"}");
}

static void mark_instant(struct chrome *chrome, uint32_t id)
{
	const struct wire_definition *mark = trace_name(&chrome->process->marks, id);

	begin_instant(chrome, "p", "mark");
	output_json(chrome->output, mark ? trace_string(mark, 1) : text_of("mark"));
	output_string(chrome->output, "\"}");
}

static void gap_instant(struct chrome *chrome, uint64_t missing)
{
	begin_instant(chrome, "t", "lost");
	output_format(chrome->output, "%llu events lost\",\"args\":{\"events\":%llu}}", (unsigned long long)missing,
		      (unsigned long long)missing);
}

static void chrome_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct chrome *chrome = owner;
	unsigned kind = wire_head_kind(head);
	uint32_t argument = wire_argument(head, extra);

	chrome->now_ns = walk->now_ns;
	if (wire_is_memory(kind))
		chrome->memory = true;
	else if (kind == WIRE_GAP)
		gap_instant(chrome, *extra);
	else if (kind == WIRE_EXCEPTION)
		exception_instant(chrome, argument);
	else if (kind == WIRE_MARK)
		mark_instant(chrome, argument);
	else if (kind == WIRE_FORK)
		number_instant(chrome, "fork", "child", argument);
	else if (kind == WIRE_EXEC)
		plain_instant(chrome, "p", "exec");
	else if (kind == WIRE_EXEC_FAILED)
		number_instant(chrome, "exec_failed", "errno", argument);
	else if (kind == WIRE_EXIT)
		number_instant(chrome, "exit", "status", argument & 0xff);
	else if (kind == WIRE_PAUSE)
		plain_instant(chrome, "p", argument ? "recording stops" : "recording starts");
}

/* --- names --- */

static void begin_metadata(struct chrome *chrome, const char *name, int64_t pid, uint32_t tid)
{
	begin_event(chrome);
	output_format(chrome->output, "{\"ph\":\"M\",\"pid\":%lld,\"tid\":%u,\"name\":\"%s\",\"args\":{",
		      (long long)pid, tid, name);
}

static void put_arguments(struct output *output, const struct trace_process *process)
{
	const json_t *arguments = json_object_get(process->meta, "argv");
	const json_t *argument;
	size_t i;

	json_array_foreach((json_t *)arguments, i, argument)
	{
		const char *text = json_string_value(argument);

		output_string(output, i ? " " : "");
		output_json(output, text_of(text ? text : ""));
	}
}

static void put_sampling(struct output *output, const struct trace_process *process)
{
	char text[TRACE_SAMPLING_BYTES];

	if (trace_process_sample_rate(process))
		output_format(output, " (%s)", trace_sampling_text(trace_process_sample_rate(process), text));
}

static void name_process(struct chrome *chrome)
{
	const struct trace_process *process = chrome->process;
	const char *program = trace_process_name(process);

	begin_metadata(chrome, "process_name", process->pid, (uint32_t)process->pid);
	output_string(chrome->output, "\"name\":\"");
	output_json(chrome->output, text_of(program[0] ? program : "python"));
	output_string(chrome->output, "\"}}");
	begin_metadata(chrome, "process_labels", process->pid, (uint32_t)process->pid);
	output_string(chrome->output, "\"labels\":\"");
	put_arguments(chrome->output, process);
	put_sampling(chrome->output, process);
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

/* --- the heap --- */

static void sample_heap(void *owner, int64_t ns, uint64_t bytes)
{
	struct chrome *chrome = owner;

	begin_event(chrome);
	output_format(chrome->output,
		      "{\"ph\":\"C\",\"pid\":%lld,\"tid\":%lld,\"ts\":", (long long)chrome->process->pid,
		      (long long)chrome->process->pid);
	output_micros(chrome->output, ns);
	output_string(chrome->output, ",\"name\":\"Python heap\",\"args\":{\"bytes\":");
	output_u64(chrome->output, bytes);
	output_string(chrome->output, "}}");
}

/* --- all --- */

static int chrome_thread(void *owner, struct call_walk *walk)
{
	struct chrome *chrome = owner;

	name_thread(chrome, walk->thread);
	chrome->place_length =
	    (size_t)snprintf(chrome->place, sizeof(chrome->place),
			     ",\"pid\":%lld,\"tid\":%u,\"ts\":", (long long)chrome->process->pid, walk->thread->tid);
	chrome->stamp.start_ns = INT64_MAX;
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
	return 0;
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
	if (!chrome->memory)
		return 0;
	return heap_curve(walk->trace, walk->process, walk->filter, HEAP_SAMPLE_NS, sample_heap, chrome);
}

int export_chrome(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct call_visitor visitor = {.process = chrome_process,
						    .process_end = chrome_process_end,
						    .thread = chrome_thread,
						    .push = chrome_push,
						    .pop = chrome_pop,
						    .other = chrome_other};
	struct chrome chrome = {.output = output};
	int error;

	make_threes(&chrome);
	output_string(output,
		      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"evprof\"},\"traceEvents\":[\n");
	error = walk_trace(export->trace, export->filter, progress, &visitor, &chrome);
	free_functions(&chrome);
	output_string(output, "\n]}\n");
	return error;
}
