/*
 * perfetto.c - Perfetto's own format: perfetto.protos.Trace, for ui.perfetto.dev and the trace processor.
 *
 *   processes and threads          TrackDescriptor, each with what it runs and its name
 *   calls of Python and C          slices on the thread's track; the category is the kind of the event that began them
 *   calls in a greenlet            slices on the greenlet's track, below its thread's; greenlet 0 uses the thread's
 *   steps of a task                slices with the category task on the task's track, and again on the thread's
 *   exceptions, marks, lost events, fork, exec, exit, pause        instants on the thread's track
 *   bytes of Python's heap         a counter track of the process, at most one value each 100 us
 *   lost events                    a counter track of the thread, their sum
 *   a fork                         a flow from its instant to the first instant of the child
 *
 * Times are CLOCK_MONOTONIC, which is the primary clock of the output. So two traces of one host, or a trace and a
 * Perfetto system trace, align in time. CLOCK_REALTIME is included.
 *
 * Each thread is a packet sequence. Its names, categories and source locations are written once (interned) and its
 * times are differences, so the start of a slice takes about 20 bytes and its end 14. The repeated part of a start is
 * made once for each function and thread; packets of calls are written directly to the output's buffer.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/heap_curve.h"
#include "analysis/process_births.h"
#include "export/perfetto_writer.h"
#include "replay/call_walk.h"
#include "trace/labels.h"

#define HEAP_SAMPLE_NS 100000

/* Interned in every thread's sequence before anything else. The iid is the position in the list, from 1. */
enum category {
	CATEGORY_CALL = 1,
	CATEGORY_RESUME,
	CATEGORY_THROW,
	CATEGORY_C_CALL,
	CATEGORY_RUNNING,
	CATEGORY_EXCEPTION,
	CATEGORY_MARK,
	CATEGORY_LOST,
	CATEGORY_PROCESS,
	CATEGORY_TASK,
	CATEGORIES
};
static const char *const categories[] = {NULL,	      "call", "resume", "throw",   "c_call", "running",
					 "exception", "mark", "lost",	"process", "task"};

enum name {
	NAME_LOST = 1,
	NAME_START,
	NAME_FORK,
	NAME_EXEC,
	NAME_EXEC_FAILED,
	NAME_EXIT,
	NAME_STOPS,
	NAME_STARTS,
	NAMES
};
static const char *const names[] = {NULL,   "events lost",     "process_start",	  "fork", "exec", "exec_failed",
				    "exit", "recording stops", "recording starts"};

enum annotation {
	ANNOTATION_END = 1,
	ANNOTATION_CHILD,
	ANNOTATION_ERRNO,
	ANNOTATION_STATUS,
	ANNOTATION_EVENTS,
	ANNOTATIONS
};
static const char *const annotations[] = {NULL, "end", "child", "errno", "status", "events"};

enum end { END_YIELD = 1, END_UNWIND, END_EXCEPTION, ENDS };
static const char *const ends[] = {NULL, "yield", "unwind", "exception"};

/* The part shared by all slice starts of a function in one thread: the fields name_iid and source_location_iid. */
struct function {
	uint32_t sequence; /* sequence that interned it last; 0: none */
	uint8_t length;
	uint8_t bytes[15];
};

/* An interned name of an exception's type or of a mark. */
struct interned {
	uint32_t sequence;
	uint32_t iid;
};

/* A set of numbers from 0. */
struct numbers {
	uint8_t *bits;
	size_t bytes;
};

struct perfetto {
	struct perfetto_writer writer;
	const struct trace *trace;
	struct process_births births;
	const struct trace_process *process;
	const struct trace_thread *thread;
	struct perfetto_sequence sequence;
	struct perfetto_sequence heap; /* of the process's heap counter */
	struct function *functions;    /* by key */
	struct interned *types;	       /* by id */
	struct interned *marks;
	struct numbers greenlets; /* greenlets of the thread that have a track */
	struct numbers tasks;	  /* tasks of the thread that have a track */
	uint64_t lost;		  /* events of the thread, so far */
	bool memory;		  /* the process has memory events */
};

/* Returns 1 if the number is new in the set, 0, or -ENOMEM. */
static int add_number(struct numbers *numbers, uint32_t number)
{
	size_t byte = number / 8, bytes = numbers->bytes ? numbers->bytes : 64;
	uint8_t bit = (uint8_t)(1u << number % 8);

	while (bytes <= byte)
		bytes *= 2;
	if (bytes > numbers->bytes) {
		uint8_t *grown = realloc(numbers->bits, bytes);

		if (!grown)
			return -ENOMEM;
		memset(grown + numbers->bytes, 0, bytes - numbers->bytes);
		*numbers = (struct numbers){grown, bytes};
	}
	if (numbers->bits[byte] & bit)
		return 0;
	numbers->bits[byte] |= bit;
	return 1;
}

static void free_numbers(struct numbers *numbers)
{
	free(numbers->bits);
	*numbers = (struct numbers){0};
}

/* --- interning --- */

/* Interns the name in the thread's sequence. Returns 0 or -ENOMEM. */
static int intern_name(struct perfetto *perfetto, struct text text, uint32_t *iid)
{
	*iid = perfetto->sequence.iids++;
	perfetto_begin_packet(&perfetto->writer, perfetto->sequence.id, FLAG_NEEDS_STATE);
	protobuf_begin(&perfetto->writer.packet, PACKET_INTERNED);
	perfetto_put_entry(&perfetto->writer.packet, INTERNED_NAME, *iid, text);
	protobuf_end(&perfetto->writer.packet);
	return perfetto_end_packet(&perfetto->writer);
}

/* A source location has the same iid as its function's name. */
static int intern_source(struct perfetto *perfetto, const struct wire_definition *code, uint32_t iid)
{
	struct protobuf *packet = &perfetto->writer.packet;

	perfetto_begin_packet(&perfetto->writer, perfetto->sequence.id, FLAG_NEEDS_STATE);
	protobuf_begin(packet, PACKET_INTERNED);
	protobuf_begin(packet, INTERNED_SOURCE);
	protobuf_number(packet, ENTRY_IID, iid);
	protobuf_text(packet, ENTRY_TEXT, trace_string(code, 0));
	protobuf_number(packet, ENTRY_LINE, code->number);
	protobuf_end(packet);
	protobuf_end(packet);
	return perfetto_end_packet(&perfetto->writer);
}

static int intern_function(struct perfetto *perfetto, struct function *function,
			   const struct wire_definition *definition, uint32_t key)
{
	char *name = label_display(definition, key & 1, key / 2);
	uint8_t *at = function->bytes;
	int error = -ENOMEM;
	uint32_t iid;

	if (name)
		error = intern_name(perfetto, text_of(name), &iid);
	free(name);
	if (error)
		return error;
	at = protobuf_put_number(at, EVENT_NAME_IID, iid);
	if (definition && !(key & 1)) {
		error = intern_source(perfetto, definition, iid);
		at = protobuf_put_number(at, EVENT_SOURCE_IID, iid);
	}
	function->length = (uint8_t)(at - function->bytes);
	function->sequence = perfetto->sequence.id;
	return error;
}

/* --- calls --- */

static int describe_within(struct perfetto *perfetto, uint64_t uuid, const char *name)
{
	uint64_t parent = perfetto_uuid(&perfetto->writer, KIND_THREAD, perfetto->thread->number);

	return perfetto_describe_within(&perfetto->writer, perfetto->sequence.id, uuid, parent, name);
}

/* The track of the running greenlet; 0: the thread's. */
static uint64_t running_track(struct perfetto *perfetto, struct call_walk *walk)
{
	uint32_t number = walk_greenlet(walk);
	uint64_t uuid = number ? perfetto_uuid_within(&perfetto->writer, perfetto->thread->number, false, number) : 0;
	char name[32];
	int added = number ? add_number(&perfetto->greenlets, number) : 0;

	if (added > 0) {
		snprintf(name, sizeof(name), "greenlet %u", number);
		added = describe_within(perfetto, uuid, name);
	}
	if (added < 0)
		walk_fail(walk, added);
	return uuid;
}

static uint64_t task_track(struct perfetto *perfetto, struct call_walk *walk, const struct walk_frame *frame)
{
	uint64_t uuid = perfetto_uuid_within(&perfetto->writer, perfetto->thread->number, true, frame->task);
	int added = add_number(&perfetto->tasks, frame->task);
	char *name;

	if (added > 0) {
		name = walk_task_name(walk, frame);
		added = name ? describe_within(perfetto, uuid, name) : -ENOMEM;
		free(name);
	}
	if (added < 0)
		walk_fail(walk, added);
	return uuid;
}

static void put_begin(struct perfetto *perfetto, const struct call_walk *walk, const struct function *function,
		      enum category category, uint64_t track)
{
	uint8_t event[EVENT_MAX_BYTES], *at = event + 4 + function->length;

	event[0] = EVENT_TYPE << 3;
	event[1] = TYPE_BEGIN;
	event[2] = EVENT_CATEGORY_IID << 3;
	event[3] = (uint8_t)category;
	memcpy(event + 4, function->bytes, sizeof(function->bytes));
	if (track)
		at = protobuf_put_number(at, EVENT_TRACK, track);
	perfetto_put_event(&perfetto->writer, &perfetto->sequence, perfetto->trace->start_ns + walk->now_ns, event,
			   (size_t)(at - event));
}

static void perfetto_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	static const uint8_t category[WIRE_KINDS] = {
	    [WIRE_CALL] = CATEGORY_CALL,     [WIRE_RESUME] = CATEGORY_RESUME, [WIRE_THROW] = CATEGORY_THROW,
	    [WIRE_C_CALL] = CATEGORY_C_CALL, [WIRE_FRAME] = CATEGORY_RUNNING,
	};
	struct perfetto *perfetto = owner;
	struct function *function = &perfetto->functions[frame->key];

	if (function->sequence != perfetto->sequence.id) {
		int error = intern_function(perfetto, function, walk_definition(walk, frame->key), frame->key);

		if (error)
			walk_fail(walk, error);
	}
	put_begin(perfetto, walk, function, category[frame->kind], running_track(perfetto, walk));
	if (frame->task)
		put_begin(perfetto, walk, function, CATEGORY_TASK, task_track(perfetto, walk, frame));
	if (perfetto->writer.output->error)
		walk_fail(walk, perfetto->writer.output->error);
}

/* Writes the end of a call, with the annotation "end" if it is not a plain return. */
static void put_end(struct perfetto *perfetto, const struct call_walk *walk, unsigned how, uint64_t track)
{
	static const uint8_t said[WIRE_KINDS] = {
	    [WIRE_YIELD] = END_YIELD, [WIRE_UNWIND] = END_UNWIND, [WIRE_C_EXCEPTION] = END_EXCEPTION};
	uint8_t event[EVENT_MAX_BYTES];
	uint8_t *at = event + 2;

	event[0] = EVENT_TYPE << 3;
	event[1] = TYPE_END;
	if (said[how]) {
		uint8_t *annotation = at + 2;

		annotation = protobuf_put_number(annotation, ANNOTATION_NAME_IID, ANNOTATION_END);
		annotation = protobuf_put_number(annotation, ANNOTATION_STRING_IID, said[how]);
		at[0] = EVENT_ANNOTATION << 3 | PROTOBUF_LENGTH;
		at[1] = (uint8_t)(annotation - at - 2);
		at = annotation;
	}
	if (track)
		at = protobuf_put_number(at, EVENT_TRACK, track);
	perfetto_put_event(&perfetto->writer, &perfetto->sequence, perfetto->trace->start_ns + walk->now_ns, event,
			   (size_t)(at - event));
}

static void perfetto_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct perfetto *perfetto = owner;

	if (frame->task)
		put_end(perfetto, walk, how, task_track(perfetto, walk, frame));
	put_end(perfetto, walk, how, running_track(perfetto, walk));
}

/* --- instants --- */

struct instant {
	enum category category;
	uint32_t name_iid;
	enum annotation annotation; /* 0: none */
	uint64_t number;
	uint64_t flow; /* 0: none */
};

static void put_instant(struct perfetto *perfetto, int64_t ns, const struct instant *instant)
{
	uint8_t event[EVENT_MAX_BYTES], *at = event;

	at = protobuf_put_number(at, EVENT_TYPE, TYPE_INSTANT);
	at = protobuf_put_number(at, EVENT_CATEGORY_IID, instant->category);
	at = protobuf_put_number(at, EVENT_NAME_IID, instant->name_iid);
	if (instant->annotation) {
		uint8_t *annotation = at + 2;

		annotation = protobuf_put_number(annotation, ANNOTATION_NAME_IID, instant->annotation);
		annotation = protobuf_put_number(annotation, ANNOTATION_NUMBER, instant->number);
		at[0] = EVENT_ANNOTATION << 3 | PROTOBUF_LENGTH;
		at[1] = (uint8_t)(annotation - at - 2);
		at = annotation;
	}
	if (instant->flow) {
		at = protobuf_put_varint(at, EVENT_FLOW << 3 | PROTOBUF_FIXED64);
		memcpy(at, &instant->flow, sizeof(instant->flow));
		at += sizeof(instant->flow);
	}
	perfetto_put_event(&perfetto->writer, &perfetto->sequence, ns, event, (size_t)(at - event));
}

/* Writes an instant with the name of a type or a mark. */
static int named_instant(struct perfetto *perfetto, int64_t ns, enum category category, struct interned *interned,
			 const struct trace_names *list, uint32_t id)
{
	struct text text = text_of(categories[category]);
	int error = 0;

	id = id < list->count ? id : 0;
	if (list->count && list->at[id])
		text = trace_string(list->at[id], 1);
	if (interned[id].sequence != perfetto->sequence.id) {
		error = intern_name(perfetto, text, &interned[id].iid);
		interned[id].sequence = perfetto->sequence.id;
	}
	if (!error)
		put_instant(perfetto, ns, &(struct instant){.category = category, .name_iid = interned[id].iid});
	return error;
}

static int lost_events(struct perfetto *perfetto, int64_t ns, uint64_t missing)
{
	uint64_t uuid = perfetto_uuid(&perfetto->writer, KIND_LOST, perfetto->thread->number);
	uint8_t event[EVENT_MAX_BYTES], *at = event;
	int error = 0;

	put_instant(perfetto, ns, &(struct instant){CATEGORY_LOST, NAME_LOST, ANNOTATION_EVENTS, missing, 0});
	if (!perfetto->lost)
		error = perfetto_describe_counter(
		    &perfetto->writer, perfetto->sequence.id, uuid,
		    perfetto_uuid(&perfetto->writer, KIND_THREAD, perfetto->thread->number), "events lost", UNIT_COUNT);
	perfetto->lost += missing;
	at = protobuf_put_number(at, EVENT_TYPE, TYPE_COUNTER);
	at = protobuf_put_number(at, EVENT_TRACK, uuid);
	at = protobuf_put_number(at, EVENT_COUNTER_VALUE, perfetto->lost);
	perfetto_put_event(&perfetto->writer, &perfetto->sequence, ns, event, (size_t)(at - event));
	return error;
}

/* --- forks: the flow has the number of the child's process --- */

static uint64_t flow_of(const struct perfetto *perfetto, uint32_t process)
{
	return perfetto_session_bits(&perfetto->writer) | ((uint64_t)process + 1);
}

static int64_t began_ns(const struct trace_process *process)
{
	return trace_ns(process, process->start_ticks);
}

/* The child may start before the parent records its fork. The fork's time is then that of the child's start. */
static void fork_instant(struct perfetto *perfetto, int64_t ns, uint32_t pid)
{
	const struct trace_process *child =
	    pid ? process_births_child(&perfetto->births, perfetto->process->pid, pid, ns) : NULL;
	struct instant instant = {CATEGORY_PROCESS, NAME_FORK, ANNOTATION_CHILD, pid, 0};

	if (child) {
		instant.flow = flow_of(perfetto, child->number);
		if (began_ns(child) < ns)
			ns = began_ns(child) > perfetto->sequence.now_ns ? began_ns(child) : perfetto->sequence.now_ns;
	}
	put_instant(perfetto, ns, &instant);
}

static void process_instant(struct perfetto *perfetto, int64_t ns, unsigned kind, uint32_t argument)
{
	struct instant instant = {.category = CATEGORY_PROCESS};

	if (kind == WIRE_PROCESS_START) {
		instant.name_iid = NAME_START;
		instant.flow = flow_of(perfetto, perfetto->process->number);
	} else if (kind == WIRE_EXEC) {
		instant.name_iid = NAME_EXEC;
	} else if (kind == WIRE_EXEC_FAILED) {
		instant = (struct instant){CATEGORY_PROCESS, NAME_EXEC_FAILED, ANNOTATION_ERRNO, argument, 0};
	} else if (kind == WIRE_EXIT) {
		instant = (struct instant){CATEGORY_PROCESS, NAME_EXIT, ANNOTATION_STATUS, argument & 0xff, 0};
		if (!(argument & WIRE_EXIT_KNOWN))
			instant.annotation = 0;
	} else if (kind == WIRE_PAUSE) {
		instant.name_iid = argument ? NAME_STOPS : NAME_STARTS;
	}
	if (instant.name_iid)
		put_instant(perfetto, ns, &instant);
}

static void perfetto_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct perfetto *perfetto = owner;
	int64_t ns = perfetto->trace->start_ns + walk->now_ns;
	uint32_t argument = wire_argument(head, extra);
	unsigned kind = wire_head_kind(head);
	int error = 0;

	if (wire_is_memory(kind))
		perfetto->memory = true;
	else if (kind == WIRE_EXCEPTION)
		error = named_instant(perfetto, ns, CATEGORY_EXCEPTION, perfetto->types, &perfetto->process->types,
				      argument);
	else if (kind == WIRE_MARK)
		error =
		    named_instant(perfetto, ns, CATEGORY_MARK, perfetto->marks, &perfetto->process->marks, argument);
	else if (kind == WIRE_GAP)
		error = lost_events(perfetto, ns, *extra);
	else if (kind == WIRE_FORK)
		fork_instant(perfetto, ns, argument);
	else
		process_instant(perfetto, ns, kind, argument);
	if (error)
		walk_fail(walk, error);
}

/* --- threads --- */

/* Sequence ids: 1 is the trace's, then come the threads, then the processes. */
static uint32_t sequence_of_thread(const struct trace_thread *thread)
{
	return thread->number + 2;
}

static uint32_t sequence_of_process(const struct perfetto *perfetto)
{
	return perfetto->trace->thread_count + perfetto->process->number + 2;
}

/* The later of that time and the start of the time range. */
static int64_t shown_from(const struct call_walk *walk, const struct trace_process *process, uint64_t ticks)
{
	int64_t from = walk->trace->start_ns + filter_from(walk->filter);
	int64_t ns = ticks ? trace_ns(process, ticks) : from;

	return ns > from ? ns : from;
}

static int perfetto_thread(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;
	struct protobuf *packet = &perfetto->writer.packet;
	int64_t ns = shown_from(walk, walk->process, walk->thread->start_ticks);
	int error;

	perfetto->thread = walk->thread;
	perfetto->lost = 0;
	free_numbers(&perfetto->greenlets);
	free_numbers(&perfetto->tasks);
	perfetto_begin_sequence(&perfetto->writer, &perfetto->sequence, sequence_of_thread(walk->thread), NAMES, ns,
				perfetto_uuid(&perfetto->writer, KIND_THREAD, walk->thread->number));
	protobuf_begin(packet, PACKET_INTERNED);
	perfetto_put_entries(packet, INTERNED_CATEGORY, categories, CATEGORIES);
	perfetto_put_entries(packet, INTERNED_NAME, names, NAMES);
	perfetto_put_entries(packet, INTERNED_ANNOTATION, annotations, ANNOTATIONS);
	perfetto_put_entries(packet, INTERNED_STRING, ends, ENDS);
	protobuf_end(packet);
	error = perfetto_end_packet(&perfetto->writer);
	return error ? error
		     : perfetto_describe_thread(&perfetto->writer, perfetto->sequence.id, ns, perfetto->process->pid,
						walk->thread);
}

/* --- processes --- */

static void free_names(struct perfetto *perfetto)
{
	free(perfetto->functions);
	free(perfetto->types);
	free(perfetto->marks);
	perfetto->functions = NULL;
	perfetto->types = perfetto->marks = NULL;
}

static int perfetto_process(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;
	int64_t ns = shown_from(walk, walk->process, walk->process->start_ticks);
	int error;

	perfetto->process = walk->process;
	perfetto->memory = false;
	perfetto->functions = calloc(walk_keys(walk), sizeof(*perfetto->functions));
	perfetto->types = calloc((size_t)walk->process->types.count + 1, sizeof(*perfetto->types));
	perfetto->marks = calloc((size_t)walk->process->marks.count + 1, sizeof(*perfetto->marks));
	if (!perfetto->functions || !perfetto->types || !perfetto->marks)
		return -ENOMEM;
	perfetto_begin_sequence(&perfetto->writer, &perfetto->heap, sequence_of_process(perfetto), NAMES, ns,
				perfetto_uuid(&perfetto->writer, KIND_HEAP, walk->process->number));
	error = perfetto_end_packet(&perfetto->writer);
	return error ? error : perfetto_describe_process(&perfetto->writer, perfetto->heap.id, ns, walk->process);
}

static void sample_heap(void *owner, int64_t ns, uint64_t bytes)
{
	struct perfetto *perfetto = owner;
	uint8_t event[EVENT_MAX_BYTES], *at = event;

	at = protobuf_put_number(at, EVENT_TYPE, TYPE_COUNTER);
	at = protobuf_put_number(at, EVENT_COUNTER_VALUE, bytes);
	perfetto_put_event(&perfetto->writer, &perfetto->heap, perfetto->trace->start_ns + ns, event,
			   (size_t)(at - event));
}

static int perfetto_process_end(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;
	uint32_t number = walk->process->number;
	int error;

	free_names(perfetto);
	if (!perfetto->memory)
		return 0;
	error = perfetto_describe_counter(
	    &perfetto->writer, perfetto->heap.id, perfetto_uuid(&perfetto->writer, KIND_HEAP, number),
	    perfetto_uuid(&perfetto->writer, KIND_PROCESS, number), "Python heap", UNIT_BYTES);
	if (error)
		return error;
	return heap_curve(walk->trace, walk->process, walk->filter, HEAP_SAMPLE_NS, sample_heap, perfetto);
}

int export_perfetto(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct call_visitor visitor = {.process = perfetto_process,
						    .process_end = perfetto_process_end,
						    .thread = perfetto_thread,
						    .push = perfetto_push,
						    .pop = perfetto_pop,
						    .other = perfetto_other};
	struct perfetto perfetto = {.writer = {.output = output, .trace = export->trace}, .trace = export->trace};
	int error = process_births_find(&perfetto.births, export->trace);

	if (!error)
		error = perfetto_describe_clocks(&perfetto.writer);
	if (!error)
		error = walk_trace(export->trace, export->filter, progress, &visitor, &perfetto);
	free(perfetto.births.at);
	free_names(&perfetto);
	free_numbers(&perfetto.greenlets);
	free_numbers(&perfetto.tasks);
	protobuf_done(&perfetto.writer.packet);
	return error;
}
