/*
 * export_chrome.c - Chrome trace JSON: {"traceEvents": [...]}, for Perfetto's and Chrome's viewers.
 *
 *   calls of Python and C         B and E, nested; what is open at the end of a thread is closed at its last time
 *   exceptions, marks, lost events, fork, exec, exit, pause      i
 *   names of processes and threads                               M
 *   bytes of Python's heap, where memory was recorded            C, at most one each 100 us
 *
 * Threads are written one after the other; viewers sort by time. Text is escaped by output_json(), so that the file is
 * strict JSON whatever the names are.
 */
#include "export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "pairs.h"
#include "replay.h"

#define HEAP_SAMPLE_NS 100000

/* A piece of JSON made once. */
struct fragment {
	char *bytes;
	size_t length;
};

struct chrome {
	struct trace *trace;
	struct output *output;
	struct replay replay;
	const struct trace_process *process;
	struct fragment *functions; /* by key: name and args */
	char place[64];		    /* ,"pid":1,"tid":2,"ts": of the thread */
	size_t place_length;
	int64_t last_ns; /* time never goes back in a thread */
	bool any;	 /* an event was written: a comma comes before the next */
	bool memory;	 /* the process has memory events */
	bool out_of_memory;
};

static void begin_event(struct chrome *chrome)
{
	output_put(chrome->output, ",\n", chrome->any ? 2 : 0);
	chrome->any = true;
}

static void put_time(struct chrome *chrome, uint64_t ticks)
{
	int64_t ns = trace_ns(chrome->process, ticks) - chrome->trace->start_ns;

	if (ns < chrome->last_ns)
		ns = chrome->last_ns;
	chrome->last_ns = ns;
	output_put(chrome->output, chrome->place, chrome->place_length);
	output_micros(chrome->output, ns);
}

/* --- calls --- */

static void put_code(struct output *output, const struct wire_definition *code, uint32_t id)
{
	output_string(output, ",\"name\":\"");
	if (code) {
		output_json(output, trace_string(code, 2).length ? trace_string(code, 2) : trace_string(code, 1));
		output_string(output, "\",\"args\":{\"file\":\"");
		output_json(output, trace_string(code, 0));
		output_format(output, "\",\"line\":%u}", code->number);
	} else {
		output_format(output, "<unknown function %u>\"", id);
	}
}

static void put_native(struct output *output, const struct wire_definition *function, uint32_t id)
{
	struct text owner;

	output_string(output, ",\"name\":\"");
	if (!function) {
		output_format(output, "<unknown C function %u>\"", id);
		return;
	}
	owner = trace_string(function, 0).length ? trace_string(function, 0) : trace_string(function, 3);
	output_json(output, owner);
	output_string(output, owner.length ? "." : "");
	output_json(output, trace_string(function, 1));
	output_char(output, '"');
}

/* What a function's begins have in common, made at the first of them. */
static const struct fragment *function_fragment(struct chrome *chrome, uint32_t key)
{
	struct fragment *fragment = &chrome->functions[key];
	struct output piece;

	if (fragment->bytes)
		return fragment;
	if (output_open_nowhere(&piece) < 0) {
		chrome->out_of_memory = true;
		return NULL;
	}
	if (key & 1)
		put_native(&piece, trace_name(&chrome->process->functions, key / 2), key / 2);
	else
		put_code(&piece, trace_name(&chrome->process->codes, key / 2), key / 2);
	fragment->bytes = malloc(piece.used + 1);
	if (fragment->bytes) {
		memcpy(fragment->bytes, piece.buffer, piece.used);
		fragment->length = piece.used;
	} else {
		chrome->out_of_memory = true;
	}
	output_abandon(&piece);
	return fragment->bytes ? fragment : NULL;
}

static void chrome_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	static const char *const categories[WIRE_KIND_SLOTS] = {
	    [WIRE_CALL] = ",\"cat\":\"call\"",	   [WIRE_RESUME] = ",\"cat\":\"resume\"",
	    [WIRE_THROW] = ",\"cat\":\"throw\"",   [WIRE_C_CALL] = ",\"cat\":\"c_call\"",
	    [WIRE_FRAME] = ",\"cat\":\"running\"",
	};
	struct chrome *chrome = owner;
	const struct fragment *fragment = function_fragment(chrome, frame->key);

	begin_event(chrome);
	output_string(chrome->output, "{\"ph\":\"B\"");
	put_time(chrome, replay->now);
	output_string(chrome->output, categories[frame->kind]);
	if (fragment)
		output_put(chrome->output, fragment->bytes, fragment->length);
	output_char(chrome->output, '}');
}

static void chrome_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	static const char *const ends[WIRE_KIND_SLOTS] = {
	    [WIRE_YIELD] = ",\"args\":{\"end\":\"yield\"}",
	    [WIRE_UNWIND] = ",\"args\":{\"end\":\"unwind\"}",
	    [WIRE_C_EXCEPTION] = ",\"args\":{\"end\":\"exception\"}",
	};
	struct chrome *chrome = owner;

	(void)frame;
	begin_event(chrome);
	output_string(chrome->output, "{\"ph\":\"E\"");
	put_time(chrome, replay->now);
	if (ends[how])
		output_string(chrome->output, ends[how]);
	output_char(chrome->output, '}');
}

/* --- instants --- */

static void begin_instant(struct chrome *chrome, const char *scope, const char *category)
{
	begin_event(chrome);
	output_string(chrome->output, "{\"ph\":\"i\"");
	put_time(chrome, chrome->replay.now);
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

static int chrome_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct chrome *chrome = owner;
	unsigned kind = wire_head_kind(head);
	uint32_t argument = wire_head_arg(head);

	(void)replay;
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
	return 0;
}

static const struct replay_sink chrome_sink = {chrome_push, chrome_pop, chrome_other};

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

static void name_process(struct chrome *chrome)
{
	const struct trace_process *process = chrome->process;
	const char *program = trace_process_text(process, "program");

	begin_metadata(chrome, "process_name", process->pid, (uint32_t)process->pid);
	output_string(chrome->output, "\"name\":\"");
	output_json(chrome->output, text_of(program[0] ? program : "python"));
	output_string(chrome->output, "\"}}");
	begin_metadata(chrome, "process_labels", process->pid, (uint32_t)process->pid);
	output_string(chrome->output, "\"labels\":\"");
	put_arguments(chrome->output, process);
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

struct heap {
	struct pairs sizes; /* address: size + 1 */
	uint64_t bytes;
	int64_t sampled_ns;
	bool changed;
};

static bool of_process(void *owner, const struct trace_process *process, const struct trace_thread *thread)
{
	(void)thread;
	return process == owner;
}

/*
 * A block that one domain gets from another is seen twice with one address; it counts once, with the last size, and is
 * gone with the first free.
 */
static void heap_free(struct heap *heap, uint64_t address)
{
	uint64_t size;

	if (address && pairs_take(&heap->sizes, address, &size))
		heap->bytes -= size - 1;
}

static int heap_made(struct heap *heap, uint64_t address, uint64_t size)
{
	uint64_t *value;

	heap_free(heap, address);
	value = pairs_make(&heap->sizes, address);
	if (!value)
		return -ENOMEM;
	*value = size + 1;
	heap->bytes += size;
	return 0;
}

static int heap_event(struct heap *heap, uint32_t head, const uint64_t *extra)
{
	uint64_t address = wire_memory_address(extra[0]);
	unsigned kind = wire_head_kind(head);

	heap->changed = true;
	if (kind == WIRE_FREE) {
		heap_free(heap, address);
		return 0;
	}
	if (!address)
		return 0;
	if (kind == WIRE_REALLOC)
		heap_free(heap, wire_memory_address(extra[1]));
	return heap_made(heap, address, wire_memory_size(head, extra[0]));
}

static void sample_heap(struct chrome *chrome, struct heap *heap, int64_t ns)
{
	begin_event(chrome);
	output_format(chrome->output,
		      "{\"ph\":\"C\",\"pid\":%lld,\"tid\":%lld,\"ts\":", (long long)chrome->process->pid,
		      (long long)chrome->process->pid);
	output_micros(chrome->output, ns - chrome->trace->start_ns);
	output_string(chrome->output, ",\"name\":\"Python heap\",\"args\":{\"bytes\":");
	output_u64(chrome->output, heap->bytes);
	output_string(chrome->output, "}}");
	heap->sampled_ns = ns;
	heap->changed = false;
}

/* A second pass over the process: sizes are known only when all its threads are seen in order of time. */
static int write_heap(struct chrome *chrome)
{
	struct heap heap = {.sampled_ns = INT64_MIN / 2};
	struct merge_event event = {0};
	struct merge merge;
	int error = merge_open(&merge, chrome->trace, of_process, (void *)chrome->process);

	if (error)
		return error;
	while (!error && merge_next(&merge, &event)) {
		if (!wire_is_memory(wire_head_kind(event.head)))
			continue;
		error = heap_event(&heap, event.head, event.extra);
		if (event.ns - heap.sampled_ns >= HEAP_SAMPLE_NS)
			sample_heap(chrome, &heap, event.ns);
	}
	if (!error && heap.changed)
		sample_heap(chrome, &heap, event.ns);
	pairs_done(&heap.sizes);
	merge_close(&merge);
	return error;
}

/* --- all --- */

static void write_thread(struct chrome *chrome, const struct trace_thread *thread, struct progress *progress)
{
	struct trace_stream stream;
	struct trace_events events;

	name_thread(chrome, thread);
	chrome->place_length =
	    (size_t)snprintf(chrome->place, sizeof(chrome->place),
			     ",\"pid\":%lld,\"tid\":%u,\"ts\":", (long long)chrome->process->pid, thread->tid);
	chrome->last_ns = 0;
	replay_begin_thread(&chrome->replay);
	trace_stream_open(&stream, chrome->trace, thread);
	while (!chrome->output->error && trace_stream_next(&stream, &events)) {
		struct replay_cursor cursor = replay_begin_chunk(&chrome->replay, &events, &chrome_sink, chrome);

		replay_run(&chrome->replay, &cursor, UINT64_MAX, &chrome_sink, chrome);
		progress_add(progress, events.count);
	}
	trace_stream_close(&stream);
	replay_end_thread(&chrome->replay, &chrome_sink, chrome);
}

static void free_fragments(struct chrome *chrome)
{
	uint32_t key;

	for (key = 0; chrome->functions && key < chrome->replay.keys; key++)
		free(chrome->functions[key].bytes);
	free(chrome->functions);
	chrome->functions = NULL;
}

static int write_process(struct chrome *chrome, const struct trace_process *process, struct progress *progress)
{
	int error = replay_init(&chrome->replay, process);
	size_t i;

	if (error)
		return error;
	chrome->process = process;
	chrome->memory = false;
	chrome->functions = calloc(chrome->replay.keys, sizeof(*chrome->functions));
	if (!chrome->functions) {
		replay_done(&chrome->replay);
		return -ENOMEM;
	}
	name_process(chrome);
	for (i = 0; i < process->thread_count; i++)
		write_thread(chrome, chrome->trace->threads[process->threads[i]], progress);
	if (chrome->memory)
		error = write_heap(chrome);
	if (chrome->out_of_memory || chrome->replay.out_of_memory)
		error = -ENOMEM;
	free_fragments(chrome);
	replay_done(&chrome->replay);
	return error;
}

int export_chrome(struct trace *trace, struct output *output, struct progress *progress)
{
	struct chrome chrome = {.trace = trace, .output = output};
	int error = 0;
	uint32_t i;

	output_string(output,
		      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"evprof\"},\"traceEvents\":[\n");
	for (i = 0; i < trace->process_count && !error && !output->error; i++)
		if (trace->processes[i])
			error = write_process(&chrome, trace->processes[i], progress);
	output_string(output, "\n]}\n");
	return error;
}
