/*
 * perfetto.c - Perfetto's own format: perfetto.protos.Trace, for ui.perfetto.dev and the trace processor.
 *
 *   processes and threads          TrackDescriptor, each with what it runs and its name
 *   calls of Python and C          slices on the thread's track; the category is the kind of the event that began them
 *   calls in a greenlet            slices on the greenlet's track, below its thread's; greenlet 0 uses the thread's
 *   steps of a task                slices with the category task on the task's track, and again on the thread's
 *   spans                          slices with the category span, on tracks "spans" below that of the thread, greenlet
 *                                  or task; those that overlap have a track each, which viewers show as one
 *   counters                       a counter track of the process for each
 *   functions that are thinned     slices with the category thinned (EVPROF_BUDGET), on a track below the thread's
 *   exceptions, marks, lost events, fork, exec, exit, pause        instants on the thread's track
 *   bytes of the heap              a counter track of the process by allocator, at most one value each 100 us
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
#include "replay/spans.h"
#include "trace/arguments.h"
#include "trace/labels.h"
#include "util/grow.h"

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
	CATEGORY_SPAN,
	CATEGORY_THINNED,
	CATEGORIES
};
static const char *const categories[] = {NULL,	 "call", "resume",  "throw", "c_call", "running", "exception",
					 "mark", "lost", "process", "task",  "span",   "thinned"};

enum name {
	NAME_LOST = 1,
	NAME_START,
	NAME_FORK,
	NAME_EXEC,
	NAME_EXEC_FAILED,
	NAME_EXIT,
	NAME_STOPS,
	NAME_STARTS,
	NAME_THINNED,
	NAMES
};
static const char *const names[] = {NULL,   "events lost",     "process_start",	   "fork",	  "exec", "exec_failed",
				    "exit", "recording stops", "recording starts", EXPORT_THINNED};

enum annotation {
	ANNOTATION_END = 1,
	ANNOTATION_CHILD,
	ANNOTATION_ERRNO,
	ANNOTATION_STATUS,
	ANNOTATION_EVENTS,
	ANNOTATION_THINNED,
	ANNOTATIONS
};
static const char *const annotations[] = {NULL, "end", "child", "errno", "status", "events", "not recorded"};

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

/* A set of numbers from 0, one bit each. */
struct numbers {
	uint8_t *bits;
	uint32_t bytes;
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
	uint64_t heap_track;	  /* of the counter that is written; 0: that of the sequence */
	struct spans spans;
	int64_t last_ns; /* end of the thread of the process that ended last */
	/* Tracks of spans and counters that the process has, by uuid; of spans: the end of the last one + 1. */
	struct u64_map tracks;
	struct arguments arguments; /* of the thread's next span or mark */
};

/* Returns 1 if the number is new in the set, 0, or -ENOMEM. */
static int add_number(struct numbers *numbers, uint32_t number)
{
	uint32_t byte = number / 8;
	uint8_t bit = (uint8_t)(1u << number % 8);

	if (grow_for(&numbers->bits, &numbers->bytes, byte, 1) < 0)
		return -ENOMEM;
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

/* Interns a text in the thread's sequence. line: of INTERNED_SOURCE only. Returns 0 or -ENOMEM. */
static int intern_text(struct perfetto *perfetto, uint32_t field, uint32_t iid, struct text text, uint32_t line)
{
	perfetto_begin_packet(&perfetto->writer, perfetto->sequence.id, FLAG_NEEDS_STATE);
	protobuf_begin(&perfetto->writer.packet, PACKET_INTERNED);
	perfetto_put_entry(&perfetto->writer.packet, field, iid, text, line);
	return perfetto_end_packet(&perfetto->writer);
}

static int intern_function(struct perfetto *perfetto, struct function *function,
			   const struct wire_definition *definition, uint32_t key)
{
	char *name = label_display(definition, key & 1, key / 2);
	uint32_t iid = perfetto->sequence.iids++;
	uint8_t *at = protobuf_put_number(function->bytes, EVENT_NAME_IID, iid);
	int error = name ? intern_text(perfetto, INTERNED_NAME, iid, text_of(name), 0) : -ENOMEM;

	free(name);
	/* A source location has the same iid as its function's name. */
	if (!error && definition && !(key & 1)) {
		error = intern_text(perfetto, INTERNED_SOURCE, iid, trace_string(definition, 0), definition->number);
		at = protobuf_put_number(at, EVENT_SOURCE_IID, iid);
	}
	function->length = (uint8_t)(at - function->bytes);
	function->sequence = error ? 0 : perfetto->sequence.id;
	return error;
}

/* --- calls --- */

/* A track below the thread's. */
static int describe_child(struct perfetto *perfetto, uint64_t uuid, const char *name, enum perfetto_counter_unit unit)
{
	uint64_t parent = perfetto_uuid(&perfetto->writer, KIND_THREAD, perfetto->thread->number);

	return perfetto_describe_child(&perfetto->writer, perfetto->sequence.id, uuid, parent, name, unit);
}

/* The track of a task of the thread, or of a greenlet: task is NULL. Described at its first use. */
static uint64_t track_of(struct perfetto *perfetto, struct call_walk *walk, const struct walk_frame *task,
			 uint32_t number)
{
	uint64_t uuid = perfetto_uuid_within(&perfetto->writer, perfetto->thread->number, task, number);
	int added = add_number(task ? &perfetto->tasks : &perfetto->greenlets, number);
	char *name = NULL;

	if (added > 0) {
		if (task)
			name = walk_task_name(walk, task);
		else if (asprintf(&name, "greenlet %u", number) < 0)
			name = NULL;
		added = name ? describe_child(perfetto, uuid, name, UNIT_NONE) : -ENOMEM;
		free(name);
	}
	if (added < 0)
		walk_fail(walk, added);
	return uuid;
}

/* The track of the running greenlet; 0: the thread's. */
static uint64_t running_track(struct perfetto *perfetto, struct call_walk *walk)
{
	uint32_t number = walk_greenlet(walk);

	return number ? track_of(perfetto, walk, NULL, number) : 0;
}

/* Writes an event of the thread, which ends before `end`. */
static inline void put_event(struct perfetto *perfetto, int64_t ns, const uint8_t event[EVENT_MAX_BYTES],
			     const uint8_t *end)
{
	perfetto_put_event(&perfetto->writer, &perfetto->sequence, ns, event, (size_t)(end - event));
}

/* field: ANNOTATION_NUMBER or ANNOTATION_STRING_IID. */
static uint8_t *put_annotation(uint8_t *at, enum annotation name, uint32_t field, uint64_t value)
{
	uint8_t *end = protobuf_put_number(at + 2, ANNOTATION_NAME_IID, name);

	end = protobuf_put_number(end, field, value);
	at[0] = EVENT_ANNOTATION << 3 | PROTOBUF_LENGTH;
	at[1] = (uint8_t)(end - at - 2);
	return end;
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
	put_event(perfetto, perfetto->trace->start_ns + walk->now_ns, event, at);
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
		put_begin(perfetto, walk, function, CATEGORY_TASK, track_of(perfetto, walk, frame, frame->task));
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
	if (said[how])
		at = put_annotation(at, ANNOTATION_END, ANNOTATION_STRING_IID, said[how]);
	if (track)
		at = protobuf_put_number(at, EVENT_TRACK, track);
	put_event(perfetto, perfetto->trace->start_ns + walk->now_ns, event, at);
}

static void perfetto_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct perfetto *perfetto = owner;

	if (frame->task)
		put_end(perfetto, walk, how, track_of(perfetto, walk, frame, frame->task));
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
	if (instant->annotation)
		at = put_annotation(at, instant->annotation, ANNOTATION_NUMBER, instant->number);
	if (instant->flow) {
		at = protobuf_put_varint(at, EVENT_FLOW << 3 | PROTOBUF_FIXED64);
		memcpy(at, &instant->flow, sizeof(instant->flow));
		at += sizeof(instant->flow);
	}
	put_event(perfetto, ns, event, at);
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
		interned[id] = (struct interned){perfetto->sequence.id, perfetto->sequence.iids++};
		error = intern_text(perfetto, INTERNED_NAME, interned[id].iid, text, 0);
	}
	if (!error)
		put_instant(perfetto, ns, &(struct instant){.category = category, .name_iid = interned[id].iid});
	return error;
}

/* --- spans and counters --- */

/* Interns the name of a span. */
static int intern_mark(struct perfetto *perfetto, uint32_t id, uint32_t *iid)
{
	uint32_t known = id < perfetto->process->marks.count ? id : 0;
	struct interned *interned = &perfetto->marks[known];
	int error = 0;

	if (interned->sequence != perfetto->sequence.id) {
		*interned = (struct interned){perfetto->sequence.id, perfetto->sequence.iids++};
		error = intern_text(perfetto, INTERNED_NAME, interned->iid, span_name(perfetto->process, known), 0);
	}
	*iid = interned->iid;
	return error;
}

/* Whether a track must be described. -ENOMEM: no memory. */
static int is_new_track(struct perfetto *perfetto, uint64_t uuid)
{
	uint64_t *known = u64_map_make(&perfetto->tracks, uuid);

	return !known ? -ENOMEM : (*known)++ == 0;
}

/* The track of the innermost step of a task, of the greenlet, or of the thread. */
static uint64_t track_of_context(struct perfetto *perfetto, struct call_walk *walk)
{
	uint64_t track;

	for (uint32_t i = walk->shown; i-- > 0;)
		if (walk->frames[i].task)
			return track_of(perfetto, walk, &walk->frames[i], walk->frames[i].task);
	track = running_track(perfetto, walk);
	return track ? track : perfetto_uuid(&perfetto->writer, KIND_THREAD, perfetto->thread->number);
}

static uint64_t lane_track(const struct perfetto *perfetto, const struct span *span)
{
	return perfetto_uuid_hashed(&perfetto->writer, span->context, (uint64_t)span->lane + 1);
}

/* Gives the span the first lane of its context that is free from its begin on. */
static int begin_on_track(struct perfetto *perfetto, struct call_walk *walk, struct span *span, uint64_t *track)
{
	int64_t end_ns = span->end_ns < 0 ? INT64_MAX : span->end_ns;
	bool known;
	int taken;

	for (;; span->lane++) {
		*track = lane_track(perfetto, span);
		known = u64_map_value(&perfetto->tracks, *track) > 0;
		taken = spans_take_row(&perfetto->tracks, *track, span, end_ns);
		if (taken)
			break;
	}
	if (taken < 0 || known)
		return taken < 0 ? taken : 0;
	return perfetto_describe_child(&perfetto->writer, perfetto->sequence.id, *track,
				       track_of_context(perfetto, walk), "spans", UNIT_NONE);
}

static void put_argument(struct perfetto *perfetto, const struct argument *argument)
{
	struct protobuf *packet = &perfetto->writer.packet;

	protobuf_begin(packet, EVENT_ANNOTATION);
	protobuf_text(packet, ANNOTATION_NAME, span_name(perfetto->process, argument->key));
	if (argument->type == WIRE_ARGUMENT_TEXT)
		protobuf_text(packet, ANNOTATION_TEXT, argument_text(&perfetto->arguments, argument));
	else if (argument->type == WIRE_ARGUMENT_INT)
		protobuf_number(packet, ANNOTATION_INT, (uint64_t)wire_int(argument->word));
	else if (argument->type == WIRE_ARGUMENT_DOUBLE)
		protobuf_fixed64(packet, ANNOTATION_DOUBLE, argument->word);
	else
		protobuf_number(packet, ANNOTATION_BOOL, argument->word != 0);
	protobuf_end(packet);
}

/* Begins an event on a track of its own, at an absolute time: these are rare. */
static struct protobuf *begin_rare(struct perfetto *perfetto, int64_t ns, enum perfetto_event_type type, uint64_t track)
{
	struct protobuf *packet = &perfetto->writer.packet;

	perfetto_begin_packet(&perfetto->writer, perfetto->sequence.id, FLAG_NEEDS_STATE);
	protobuf_number(packet, PACKET_TIMESTAMP, (uint64_t)ns);
	protobuf_number(packet, PACKET_CLOCK, CLOCK_MONOTONIC_NS);
	protobuf_begin(packet, PACKET_EVENT);
	protobuf_number(packet, EVENT_TYPE, type);
	protobuf_number(packet, EVENT_TRACK, track);
	return packet;
}

static int end_rare(struct perfetto *perfetto)
{
	protobuf_end(&perfetto->writer.packet);
	return perfetto_end_packet(&perfetto->writer);
}

/* Ends with the thread's arguments. */
static int put_span_begin(struct perfetto *perfetto, int64_t ns, uint32_t name_iid, uint64_t track)
{
	struct protobuf *packet = begin_rare(perfetto, ns, TYPE_BEGIN, track);

	protobuf_number(packet, EVENT_CATEGORY_IID, CATEGORY_SPAN);
	protobuf_number(packet, EVENT_NAME_IID, name_iid);
	for (unsigned i = 0; i < perfetto->arguments.count; i++)
		put_argument(perfetto, &perfetto->arguments.at[i]);
	return end_rare(perfetto);
}

/* Perfetto adds the arguments of the end to those of the begin. */
static int put_span_end(struct perfetto *perfetto, int64_t ns, uint64_t track, bool unfinished)
{
	struct protobuf *packet = begin_rare(perfetto, ns, TYPE_END, track);

	if (unfinished) {
		protobuf_begin(packet, EVENT_ANNOTATION);
		protobuf_text(packet, ANNOTATION_NAME, text_of("unfinished"));
		protobuf_number(packet, ANNOTATION_BOOL, true);
		protobuf_end(packet);
	}
	return end_rare(perfetto);
}

static int begin_span(struct perfetto *perfetto, struct call_walk *walk, const uint64_t *extra)
{
	int64_t start_ns = perfetto->trace->start_ns, end_ns;
	struct span *span = spans_begin(&perfetto->spans, walk, extra);
	uint64_t track;
	uint32_t iid;
	int error = 0;

	if (span) {
		end_ns = span->end_ns;
		error = begin_on_track(perfetto, walk, span, &track);
		if (!error)
			error = intern_mark(perfetto, span->name, &iid);
		if (!error)
			error = put_span_begin(perfetto, start_ns + walk->now_ns, iid, track);
		if (!error && end_ns >= 0) {
			error = put_span_end(perfetto, start_ns + end_ns, track, false);
			spans_end(&perfetto->spans, walk, extra[1]);
		}
	}
	arguments_forget(&perfetto->arguments);
	return error;
}

static int end_span(struct perfetto *perfetto, struct call_walk *walk, uint64_t number)
{
	struct span span = spans_end(&perfetto->spans, walk, number);
	uint64_t track, *end;

	if (!span.number)
		return 0;
	track = lane_track(perfetto, &span);
	end = u64_map_make(&perfetto->tracks, track);
	if (!end)
		return -ENOMEM;
	*end = (uint64_t)walk->now_ns + 1;
	return put_span_end(perfetto, perfetto->trace->start_ns + walk->now_ns, track, false);
}

/* Spans without an end last until the end of the process, and say so. */
static int end_open_spans(struct perfetto *perfetto)
{
	int error = 0;

	for (size_t i = 0; i < perfetto->spans.count && !error; i++) {
		const struct span *span = &perfetto->spans.at[i];

		if (span->number)
			error = put_span_end(perfetto, perfetto->trace->start_ns + perfetto->last_ns,
					     lane_track(perfetto, span), true);
	}
	return error;
}

static int describe_counter(struct perfetto *perfetto, uint64_t uuid, uint64_t id)
{
	struct text text = span_name(perfetto->process, id);
	char *name = strndup(text.at, text.length);
	int error = -ENOMEM;

	if (name)
		error = perfetto_describe_child(
		    &perfetto->writer, perfetto->sequence.id, uuid,
		    perfetto_uuid(&perfetto->writer, KIND_PROCESS, perfetto->process->number), name, UNIT_COUNT);
	free(name);
	return error;
}

static int put_counter(struct perfetto *perfetto, int64_t ns, const uint64_t *extra)
{
	uint64_t uuid =
	    perfetto_uuid_hashed(&perfetto->writer, ((uint64_t)perfetto->process->number + 1) << 24, *extra);
	uint8_t event[EVENT_MAX_BYTES], *at = event;
	int error = is_new_track(perfetto, uuid);

	if (error > 0)
		error = describe_counter(perfetto, uuid, *extra);
	at = protobuf_put_number(at, EVENT_TYPE, TYPE_COUNTER);
	at = protobuf_put_number(at, EVENT_TRACK, uuid);
	at = protobuf_put_varint(at, EVENT_COUNTER_DOUBLE << 3 | PROTOBUF_FIXED64);
	memcpy(at, &extra[1], sizeof(extra[1]));
	at += sizeof(extra[1]);
	put_event(perfetto, ns, event, at);
	return error;
}

static int lost_events(struct perfetto *perfetto, int64_t ns, uint64_t missing)
{
	uint64_t uuid = perfetto_uuid(&perfetto->writer, KIND_LOST, perfetto->thread->number);
	uint8_t event[EVENT_MAX_BYTES], *at = event;
	int error = 0;

	put_instant(perfetto, ns, &(struct instant){CATEGORY_LOST, NAME_LOST, ANNOTATION_EVENTS, missing, 0});
	if (!perfetto->lost)
		error = describe_child(perfetto, uuid, "events lost", UNIT_COUNT);
	perfetto->lost += missing;
	at = protobuf_put_number(at, EVENT_TYPE, TYPE_COUNTER);
	at = protobuf_put_number(at, EVENT_TRACK, uuid);
	at = protobuf_put_number(at, EVENT_COUNTER_VALUE, perfetto->lost);
	put_event(perfetto, ns, event, at);
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
	static const struct instant instants[WIRE_KINDS] = {
	    [WIRE_PROCESS_START] = {.name_iid = NAME_START},
	    [WIRE_EXEC] = {.name_iid = NAME_EXEC},
	    [WIRE_EXEC_FAILED] = {.name_iid = NAME_EXEC_FAILED, .annotation = ANNOTATION_ERRNO},
	    [WIRE_EXIT] = {.name_iid = NAME_EXIT, .annotation = ANNOTATION_STATUS},
	    [WIRE_PAUSE] = {.name_iid = NAME_STARTS},
	};
	struct instant instant = instants[kind];

	if (!instant.name_iid)
		return;
	instant.category = CATEGORY_PROCESS;
	instant.number = export_instant_number(kind, argument);
	if (kind == WIRE_PROCESS_START)
		instant.flow = flow_of(perfetto, perfetto->process->number);
	else if (kind == WIRE_EXIT && !(argument & WIRE_EXIT_KNOWN))
		instant.annotation = 0;
	else if (kind == WIRE_PAUSE && argument)
		instant.name_iid = NAME_STOPS;
	put_instant(perfetto, ns, &instant);
}

static void perfetto_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct perfetto *perfetto = owner;
	int64_t ns = perfetto->trace->start_ns + walk->now_ns;
	uint32_t argument = wire_argument(head, extra);
	unsigned kind = wire_head_kind(head);
	int error = 0;

	if (kind == WIRE_GAP || kind == WIRE_MARK)
		arguments_forget(&perfetto->arguments);
	if (wire_is_memory(kind))
		perfetto->memory = true;
	else if (kind == WIRE_ARGUMENT)
		error = arguments_take(&perfetto->arguments, head, extra);
	else if (kind == WIRE_SPAN_BEGIN)
		error = begin_span(perfetto, walk, extra);
	else if (kind == WIRE_SPAN_END)
		error = end_span(perfetto, walk, wire_number(head, extra));
	else if (kind == WIRE_COUNTER)
		error = put_counter(perfetto, ns, extra);
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

/* A row of its own below the thread's: what was called then is in the slices of the callers, without slices. */
static int put_thinned(struct perfetto *perfetto, int64_t end_ns, int64_t since_ns, struct text functions)
{
	uint32_t thread = perfetto->thread->number;
	uint64_t track = perfetto_uuid_hashed(&perfetto->writer, ((uint64_t)thread + 1) << 40, UINT64_MAX);
	int error = is_new_track(perfetto, track);
	struct protobuf *packet;

	if (error > 0)
		error = perfetto_describe_child(&perfetto->writer, perfetto->sequence.id, track,
						perfetto_uuid(&perfetto->writer, KIND_THREAD, thread), "thinned",
						UNIT_NONE);
	if (error < 0)
		return error;
	packet = begin_rare(perfetto, perfetto->trace->start_ns + since_ns, TYPE_BEGIN, track);
	protobuf_number(packet, EVENT_CATEGORY_IID, CATEGORY_THINNED);
	protobuf_number(packet, EVENT_NAME_IID, NAME_THINNED);
	protobuf_begin(packet, EVENT_ANNOTATION);
	protobuf_number(packet, ANNOTATION_NAME_IID, ANNOTATION_THINNED);
	protobuf_text(packet, ANNOTATION_TEXT, functions);
	protobuf_end(packet);
	error = end_rare(perfetto);
	return error ? error : put_span_end(perfetto, perfetto->trace->start_ns + end_ns, track, false);
}

static void perfetto_thinned(void *owner, struct call_walk *walk, const struct walk_thinned *thinned)
{
	char *functions = walk_thinned_text(walk, thinned);
	int error = functions ? put_thinned(owner, walk->now_ns, thinned->since_ns, text_of(functions)) : -ENOMEM;

	if (error)
		walk_fail(walk, error);
	free(functions);
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

/* Interns a list, numbered from 1. */
static void put_entries(struct protobuf *packet, uint32_t field, const char *const *texts, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		perfetto_put_entry(packet, field, i, text_of(texts[i]), 0);
}

static int perfetto_thread(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;
	struct protobuf *packet = &perfetto->writer.packet;
	int64_t ns = shown_from(walk, walk->process, walk->thread->start_ticks);
	int error;

	perfetto->thread = walk->thread;
	perfetto->lost = 0;
	arguments_forget(&perfetto->arguments);
	free_numbers(&perfetto->greenlets);
	free_numbers(&perfetto->tasks);
	perfetto_begin_sequence(&perfetto->writer, &perfetto->sequence, sequence_of_thread(walk->thread), NAMES, ns,
				perfetto_uuid(&perfetto->writer, KIND_THREAD, walk->thread->number));
	protobuf_begin(packet, PACKET_INTERNED);
	put_entries(packet, INTERNED_CATEGORY, categories, CATEGORIES);
	put_entries(packet, INTERNED_NAME, names, NAMES);
	put_entries(packet, INTERNED_ANNOTATION, annotations, ANNOTATIONS);
	put_entries(packet, INTERNED_STRING, ends, ENDS);
	error = perfetto_end_packet(&perfetto->writer);
	return error ? error
		     : perfetto_describe_thread(&perfetto->writer, perfetto->sequence.id, ns, perfetto->process->pid,
						walk->thread);
}

static int perfetto_thread_end(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;

	if (walk->now_ns > perfetto->last_ns)
		perfetto->last_ns = walk->now_ns;
	return 0;
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

static void forget_spans(struct perfetto *perfetto)
{
	spans_done(&perfetto->spans);
	perfetto->last_ns = 0;
	u64_map_done(&perfetto->tracks);
	perfetto->tracks = (struct u64_map){0};
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
	error = spans_begin_process(&perfetto->spans, walk);
	if (error)
		return error;
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
	if (perfetto->heap_track)
		at = protobuf_put_number(at, EVENT_TRACK, perfetto->heap_track);
	at = protobuf_put_number(at, EVENT_COUNTER_VALUE, bytes);
	perfetto_put_event(&perfetto->writer, &perfetto->heap, perfetto->trace->start_ns + ns, event,
			   (size_t)(at - event));
}

static void sample_resident(void *owner, const struct rss_point *point)
{
	sample_heap(owner, point->ns, point->bytes);
}

/* The track of the process's counter of bytes with that number; 0 is the one that events have without a track. */
static int describe_bytes(struct perfetto *perfetto, unsigned counter, const char *name)
{
	uint32_t number = perfetto->process->number;
	uint64_t track = perfetto_uuid(&perfetto->writer, KIND_HEAP, number);

	if (counter) /* no counter of the program's has such a number */
		track = perfetto_uuid_hashed(&perfetto->writer, ((uint64_t)number + 1) << 24, UINT64_MAX - counter);
	perfetto->heap_track = counter ? track : 0;
	return perfetto_describe_child(&perfetto->writer, perfetto->heap.id, track,
				       perfetto_uuid(&perfetto->writer, KIND_PROCESS, number), name, UNIT_BYTES);
}

/* A counter for each of the allocators that were recorded. */
static int put_heaps(struct perfetto *perfetto, const struct call_walk *walk)
{
	static const char *const heap_names[BLOCK_SOURCES] = HEAP_NAMES;
	unsigned count = trace_process_records(walk->process, "malloc") ? BLOCK_SOURCES : 1;
	int error = 0;

	for (unsigned i = 0; !error && i < count; i++) {
		error = describe_bytes(perfetto, i, heap_names[i]);
		if (!error)
			error = heap_curve(walk->trace, walk->process, walk->filter, 1u << i, HEAP_SAMPLE_NS,
					   sample_heap, perfetto);
	}
	return error;
}

static int put_resident(struct perfetto *perfetto, const struct call_walk *walk)
{
	int error = walk->process->resident_count ? describe_bytes(perfetto, BLOCK_SOURCES, RSS_NAME) : 0;

	if (!error)
		rss_curve(walk->trace, walk->process, walk->filter, sample_resident, perfetto);
	return error;
}

static int perfetto_process_end(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;
	int error = end_open_spans(perfetto);

	free_names(perfetto);
	forget_spans(perfetto);
	if (!error)
		error = put_resident(perfetto, walk);
	return error || !perfetto->memory ? error : put_heaps(perfetto, walk);
}

int export_perfetto(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct call_visitor visitor = {.process = perfetto_process,
						    .process_end = perfetto_process_end,
						    .thread = perfetto_thread,
						    .thread_end = perfetto_thread_end,
						    .push = perfetto_push,
						    .pop = perfetto_pop,
						    .other = perfetto_other,
						    .thinned = perfetto_thinned,
						    .timed = true};
	struct perfetto perfetto = {
	    .writer = {.output = output, .trace = export->trace}, .trace = export->trace, .spans.in_turn = true};
	int error = process_births_find(&perfetto.births, export->trace);

	if (!error)
		error = perfetto_describe_clocks(&perfetto.writer);
	if (!error)
		error = walk_trace(export->trace, export->filter, progress, &visitor, &perfetto);
	free(perfetto.births.at);
	free_names(&perfetto);
	forget_spans(&perfetto);
	arguments_done(&perfetto.arguments);
	free_numbers(&perfetto.greenlets);
	free_numbers(&perfetto.tasks);
	protobuf_done(&perfetto.writer.packet);
	return error;
}
