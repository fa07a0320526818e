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
 * made once for each function and thread; packets of calls are written directly to the output's buffer. The field
 * numbers are those of Perfetto's protos/perfetto/trace/trace_packet.proto and of the files that it includes.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/heap_curve.h"
#include "export/protobuf.h"
#include "replay/call_walk.h"
#include "trace/labels.h"

#define HEAP_SAMPLE_NS 100000

enum trace_field { TRACE_PACKET = 1 };

enum packet_field {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_FIRST = 87,
};

enum packet_flags { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

enum defaults_field { DEFAULTS_EVENT = 11, DEFAULTS_CLOCK = 58 };

enum event_field {
	EVENT_CATEGORY_IID = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_SOURCE_IID = 34,
	EVENT_FLOW = 47,
};

enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

enum interned_field {
	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_ANNOTATION = 3,
	INTERNED_SOURCE = 4,
	INTERNED_STRING = 29,
};

enum entry_field { ENTRY_IID = 1, ENTRY_TEXT = 2, ENTRY_LINE = 4 };

enum annotation_field { ANNOTATION_NAME_IID = 1, ANNOTATION_NUMBER = 3, ANNOTATION_STRING_IID = 17 };

enum track_field {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
};

enum process_field { PROCESS_PID = 1, PROCESS_ARGUMENT = 2, PROCESS_NAME = 6, PROCESS_LABEL = 8 };

enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

enum counter_field { COUNTER_UNIT = 3 };

enum counter_unit { UNIT_COUNT = 2, UNIT_BYTES = 3 };

enum snapshot_field { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY = 2 };

enum clock_field { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, CLOCK_INCREMENTAL = 3 };

/* CLOCK_SEQUENCE is defined by evprof, one for each sequence. */
enum clock { CLOCK_REAL = 1, CLOCK_MONOTONIC_NS = 3, CLOCK_SEQUENCE = 64 };

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

/* Each length in a packet with an event is one byte. The whole room of an event is always copied, without a loop. */
#define EVENT_MAX_BYTES 48
#define PACKET_MAX_BYTES 128

_Static_assert(2 + 2 * (1 + PROTOBUF_VARINT_MAX_BYTES) + 3 + 6 + 2 + EVENT_MAX_BYTES < PACKET_MAX_BYTES,
	       "the longest packet fits");

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

struct sequence {
	uint32_t id;
	uint32_t iids;	/* iids of names given out */
	int64_t now_ns; /* CLOCK_MONOTONIC, of the last packet with a relative time */
};

/* A set of numbers from 0. */
struct numbers {
	uint8_t *bits;
	size_t bytes;
};

/* A process image and its start. */
struct birth {
	int64_t ppid;
	int64_t pid;
	int64_t ns;
	const struct trace_process *process;
};

struct perfetto {
	struct output *output;
	const struct trace *trace;
	struct birth *births; /* by parent, pid and time */
	uint32_t birth_count;
	const struct trace_process *process;
	const struct trace_thread *thread;
	struct protobuf packet; /* for all packets except calls */
	struct sequence sequence;
	struct sequence heap;	    /* of the process's heap counter */
	struct function *functions; /* by key */
	struct interned *types;	    /* by id */
	struct interned *marks;
	struct numbers greenlets; /* greenlets of the thread that have a track */
	struct numbers tasks;	  /* tasks of the thread that have a track */
	uint64_t lost;		  /* events of the thread, so far */
	bool memory;		  /* the process has memory events */
};

/* --- uuids of tracks, which include the session so that two traces differ --- */

enum track_kind { KIND_PROCESS, KIND_THREAD, KIND_HEAP, KIND_LOST };

static uint64_t session_bits(const struct perfetto *perfetto)
{
	uint64_t bits;

	memcpy(&bits, perfetto->trace->header.session, sizeof(bits));
	return bits & ~(uint64_t)UINT32_MAX;
}

/* The uuid of a process's or thread's track. Numbers are below 2^24. */
static uint64_t uuid_of(const struct perfetto *perfetto, enum track_kind kind, uint32_t number)
{
	return session_bits(perfetto) | ((uint64_t)number + 1) << 2 | kind;
}

/*
 * The uuid of a greenlet's or task's track: a hash, because their numbers, counted for each thread, would not fit
 * above.
 */
static uint64_t uuid_within(const struct perfetto *perfetto, bool is_task, uint32_t number)
{
	uint64_t uuid =
	    session_bits(perfetto) ^ ((uint64_t)perfetto->thread->number << 33 | (uint64_t)number << 1 | is_task);

	uuid = (uuid ^ uuid >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return (uuid ^ uuid >> 29) | 1; /* 0 means no track */
}

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

/* --- packets --- */

static void begin_packet(struct perfetto *perfetto, uint32_t sequence, unsigned flags)
{
	struct protobuf *packet = &perfetto->packet;

	protobuf_clear(packet);
	protobuf_begin(packet, TRACE_PACKET);
	protobuf_number(packet, PACKET_SEQUENCE, sequence);
	if (flags)
		protobuf_number(packet, PACKET_FLAGS, flags);
}

static int end_packet(struct perfetto *perfetto)
{
	struct protobuf *packet = &perfetto->packet;

	protobuf_end(packet);
	if (packet->error)
		return packet->error;
	output_put(perfetto->output, packet->bytes, packet->used);
	return 0;
}

static void put_clock(struct protobuf *packet, enum clock clock, int64_t ns)
{
	protobuf_begin(packet, SNAPSHOT_CLOCK);
	protobuf_number(packet, CLOCK_ID, clock);
	protobuf_number(packet, CLOCK_TIMESTAMP, (uint64_t)ns);
	if (clock == CLOCK_SEQUENCE)
		protobuf_number(packet, CLOCK_INCREMENTAL, 1);
	protobuf_end(packet);
}

/*
 * Writes a track event. If the time decreases (see replay/call_walk.h), the packet has the absolute time. Inline,
 * because this is all the work for a call.
 */
static inline __attribute__((always_inline)) void put_event(struct perfetto *perfetto, struct sequence *sequence,
							    int64_t ns, const uint8_t event[EVENT_MAX_BYTES],
							    size_t length)
{
	uint8_t *packet = (uint8_t *)output_room(perfetto->output, PACKET_MAX_BYTES);
	uint8_t *contents = packet + 2, *at = contents;

	if (__builtin_expect(ns >= sequence->now_ns, 1)) {
		at = protobuf_put_number(at, PACKET_TIMESTAMP, (uint64_t)(ns - sequence->now_ns));
		sequence->now_ns = ns;
	} else {
		at = protobuf_put_number(at, PACKET_TIMESTAMP, (uint64_t)ns);
		at = protobuf_put_number(at, PACKET_CLOCK, CLOCK_MONOTONIC_NS);
	}
	at = protobuf_put_number(at, PACKET_SEQUENCE, sequence->id);
	at = protobuf_put_number(at, PACKET_FLAGS, FLAG_NEEDS_STATE);
	*at++ = PACKET_EVENT << 3 | PROTOBUF_LENGTH;
	*at++ = (uint8_t)length;
	memcpy(at, event, EVENT_MAX_BYTES);
	at += length;
	packet[0] = TRACE_PACKET << 3 | PROTOBUF_LENGTH;
	packet[1] = (uint8_t)(at - contents);
	output_take(perfetto->output, (size_t)(at - packet));
}

/* --- interning --- */

static void put_entry(struct protobuf *packet, uint32_t field, uint64_t iid, struct text text)
{
	protobuf_begin(packet, field);
	protobuf_number(packet, ENTRY_IID, iid);
	protobuf_text(packet, ENTRY_TEXT, text);
	protobuf_end(packet);
}

static void put_entries(struct protobuf *packet, uint32_t field, const char *const *texts, unsigned count)
{
	unsigned i;

	for (i = 1; i < count; i++)
		put_entry(packet, field, i, text_of(texts[i]));
}

/* Interns the name in the thread's sequence. Returns 0 or -ENOMEM. */
static int intern_name(struct perfetto *perfetto, struct text text, uint32_t *iid)
{
	*iid = perfetto->sequence.iids++;
	begin_packet(perfetto, perfetto->sequence.id, FLAG_NEEDS_STATE);
	protobuf_begin(&perfetto->packet, PACKET_INTERNED);
	put_entry(&perfetto->packet, INTERNED_NAME, *iid, text);
	protobuf_end(&perfetto->packet);
	return end_packet(perfetto);
}

/* A source location has the same iid as its function's name. */
static int intern_source(struct perfetto *perfetto, const struct wire_definition *code, uint32_t iid)
{
	struct protobuf *packet = &perfetto->packet;

	begin_packet(perfetto, perfetto->sequence.id, FLAG_NEEDS_STATE);
	protobuf_begin(packet, PACKET_INTERNED);
	protobuf_begin(packet, INTERNED_SOURCE);
	protobuf_number(packet, ENTRY_IID, iid);
	protobuf_text(packet, ENTRY_TEXT, trace_string(code, 0));
	protobuf_number(packet, ENTRY_LINE, code->number);
	protobuf_end(packet);
	protobuf_end(packet);
	return end_packet(perfetto);
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

/* Describes the track of a greenlet or task, below its thread's track. */
static int describe_within(struct perfetto *perfetto, uint64_t uuid, const char *name)
{
	struct protobuf *packet = &perfetto->packet;

	begin_packet(perfetto, perfetto->sequence.id, 0);
	protobuf_begin(packet, PACKET_TRACK);
	protobuf_number(packet, TRACK_UUID, uuid);
	protobuf_number(packet, TRACK_PARENT, uuid_of(perfetto, KIND_THREAD, perfetto->thread->number));
	protobuf_string(packet, TRACK_NAME, name);
	protobuf_end(packet);
	return end_packet(perfetto);
}

/* The track of the running greenlet; 0: the thread's. */
static uint64_t running_track(struct perfetto *perfetto, struct call_walk *walk)
{
	uint32_t number = walk_greenlet(walk);
	uint64_t uuid = number ? uuid_within(perfetto, false, number) : 0;
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
	uint64_t uuid = uuid_within(perfetto, true, frame->task);
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
	put_event(perfetto, &perfetto->sequence, perfetto->trace->start_ns + walk->now_ns, event, (size_t)(at - event));
}

static void perfetto_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	static const uint8_t category[WIRE_KIND_SLOTS] = {
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
	if (perfetto->output->error)
		walk_fail(walk, perfetto->output->error);
}

/* Writes the end of a call, with the annotation "end" if it is not a plain return. */
static void put_end(struct perfetto *perfetto, const struct call_walk *walk, unsigned how, uint64_t track)
{
	static const uint8_t said[WIRE_KIND_SLOTS] = {
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
	put_event(perfetto, &perfetto->sequence, perfetto->trace->start_ns + walk->now_ns, event, (size_t)(at - event));
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
	put_event(perfetto, &perfetto->sequence, ns, event, (size_t)(at - event));
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

static int describe_counter(struct perfetto *perfetto, uint32_t sequence, uint64_t uuid, uint64_t parent,
			    const char *name, enum counter_unit unit)
{
	struct protobuf *packet = &perfetto->packet;

	begin_packet(perfetto, sequence, 0);
	protobuf_begin(packet, PACKET_TRACK);
	protobuf_number(packet, TRACK_UUID, uuid);
	protobuf_number(packet, TRACK_PARENT, parent);
	protobuf_string(packet, TRACK_NAME, name);
	protobuf_begin(packet, TRACK_COUNTER);
	protobuf_number(packet, COUNTER_UNIT, unit);
	protobuf_end(packet);
	protobuf_end(packet);
	return end_packet(perfetto);
}

static int lost_events(struct perfetto *perfetto, int64_t ns, uint64_t missing)
{
	uint64_t uuid = uuid_of(perfetto, KIND_LOST, perfetto->thread->number);
	uint8_t event[EVENT_MAX_BYTES], *at = event;
	int error = 0;

	put_instant(perfetto, ns, &(struct instant){CATEGORY_LOST, NAME_LOST, ANNOTATION_EVENTS, missing, 0});
	if (!perfetto->lost)
		error = describe_counter(perfetto, perfetto->sequence.id, uuid,
					 uuid_of(perfetto, KIND_THREAD, perfetto->thread->number), "events lost",
					 UNIT_COUNT);
	perfetto->lost += missing;
	at = protobuf_put_number(at, EVENT_TYPE, TYPE_COUNTER);
	at = protobuf_put_number(at, EVENT_TRACK, uuid);
	at = protobuf_put_number(at, EVENT_COUNTER_VALUE, perfetto->lost);
	put_event(perfetto, &perfetto->sequence, ns, event, (size_t)(at - event));
	return error;
}

/* --- forks: the flow has the number of the child's process --- */

static uint64_t flow_of(const struct perfetto *perfetto, uint32_t process)
{
	return session_bits(perfetto) | ((uint64_t)process + 1);
}

static int64_t began_ns(const struct trace_process *process)
{
	return trace_ns(process, process->start_ticks);
}

static int by_birth(const void *a, const void *b)
{
	const struct birth *left = a, *right = b;

	if (left->ppid != right->ppid)
		return left->ppid < right->ppid ? -1 : 1;
	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return (left->ns > right->ns) - (left->ns < right->ns);
}

static int find_births(struct perfetto *perfetto)
{
	const struct trace *trace = perfetto->trace;

	perfetto->births = calloc((size_t)trace->process_count + 1, sizeof(*perfetto->births));
	if (!perfetto->births)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && process->known)
			perfetto->births[perfetto->birth_count++] =
			    (struct birth){process->ppid, process->pid, began_ns(process), process};
	}
	qsort(perfetto->births, perfetto->birth_count, sizeof(*perfetto->births), by_birth);
	return 0;
}

static bool is_of(const struct birth *birth, const struct birth *fork)
{
	return birth->ppid == fork->ppid && birth->pid == fork->pid;
}

/*
 * The process that a fork at that time made. A pid may be used again, so it is the nearest in time. NULL if the child
 * was not recorded.
 */
static const struct trace_process *child_of(const struct perfetto *perfetto, uint32_t pid, int64_t ns)
{
	const struct birth fork = {perfetto->process->pid, pid, ns, NULL}, *births = perfetto->births;
	uint32_t low = 0, high = perfetto->birth_count;
	bool before, after;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (by_birth(&births[middle], &fork) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	before = low > 0 && is_of(&births[low - 1], &fork);
	after = low < perfetto->birth_count && is_of(&births[low], &fork);
	if (before && after)
		before = ns - births[low - 1].ns <= births[low].ns - ns;
	return before ? births[low - 1].process : after ? births[low].process : NULL;
}

/* The child may start before the parent records its fork. The fork's time is then that of the child's start. */
static void fork_instant(struct perfetto *perfetto, int64_t ns, uint32_t pid)
{
	const struct trace_process *child = pid ? child_of(perfetto, pid, ns) : NULL;
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
	uint32_t argument = wire_head_arg(head);
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

/* --- the beginning of a sequence --- */

/* Writes the defaults of the sequence: its clock, which counts differences from ns on, and the track of its events. */
static void begin_sequence(struct perfetto *perfetto, struct sequence *sequence, uint32_t id, int64_t ns, uint64_t uuid)
{
	struct protobuf *packet = &perfetto->packet;

	*sequence = (struct sequence){.id = id, .iids = NAMES, .now_ns = ns};
	begin_packet(perfetto, id, FLAG_CLEARED);
	protobuf_number(packet, PACKET_FIRST, 1);
	protobuf_begin(packet, PACKET_DEFAULTS);
	protobuf_number(packet, DEFAULTS_CLOCK, CLOCK_SEQUENCE);
	protobuf_begin(packet, DEFAULTS_EVENT);
	protobuf_number(packet, EVENT_TRACK, uuid);
	protobuf_end(packet);
	protobuf_end(packet);
	protobuf_begin(packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(packet, CLOCK_MONOTONIC_NS, ns);
	put_clock(packet, CLOCK_SEQUENCE, ns);
	protobuf_end(packet);
}

/* A track description is valid from its time on, which distinguishes two processes or threads with the same id. */
static void begin_track(struct perfetto *perfetto, uint32_t sequence, int64_t ns, uint64_t uuid)
{
	struct protobuf *packet = &perfetto->packet;

	begin_packet(perfetto, sequence, 0);
	protobuf_number(packet, PACKET_TIMESTAMP, (uint64_t)ns);
	protobuf_number(packet, PACKET_CLOCK, CLOCK_MONOTONIC_NS);
	protobuf_begin(packet, PACKET_TRACK);
	protobuf_number(packet, TRACK_UUID, uuid);
}

static int describe_process(struct perfetto *perfetto, uint32_t sequence, int64_t ns)
{
	const struct trace_process *process = perfetto->process;
	const char *program = trace_process_name(process);
	struct protobuf *packet = &perfetto->packet;
	const json_t *argument;
	char sampling[TRACE_SAMPLING_BYTES];
	char label[64];
	size_t i;

	begin_track(perfetto, sequence, ns, uuid_of(perfetto, KIND_PROCESS, process->number));
	protobuf_begin(packet, TRACK_PROCESS);
	protobuf_number(packet, PROCESS_PID, (uint64_t)process->pid);
	json_array_foreach(json_object_get(process->meta, "argv"), i, argument)
	{
		if (json_is_string(argument))
			protobuf_string(packet, PROCESS_ARGUMENT, json_string_value(argument));
	}
	protobuf_string(packet, PROCESS_NAME, program[0] ? program : "python");
	if (trace_process_text(process, "python")[0]) {
		snprintf(label, sizeof(label), "Python %.40s", trace_process_text(process, "python"));
		protobuf_string(packet, PROCESS_LABEL, label);
	}
	if (trace_process_sample_rate(process))
		protobuf_string(packet, PROCESS_LABEL,
				trace_sampling_text(trace_process_sample_rate(process), sampling));
	protobuf_end(packet);
	protobuf_end(packet);
	return end_packet(perfetto);
}

static int describe_thread(struct perfetto *perfetto, int64_t ns)
{
	const struct trace_thread *thread = perfetto->thread;
	struct protobuf *packet = &perfetto->packet;

	begin_track(perfetto, perfetto->sequence.id, ns, uuid_of(perfetto, KIND_THREAD, thread->number));
	protobuf_number(packet, TRACK_PARENT, uuid_of(perfetto, KIND_PROCESS, thread->process));
	protobuf_begin(packet, TRACK_THREAD);
	protobuf_number(packet, THREAD_PID, (uint64_t)perfetto->process->pid);
	protobuf_number(packet, THREAD_TID, thread->tid);
	if (thread->name && thread->name[0])
		protobuf_string(packet, THREAD_NAME, thread->name);
	protobuf_end(packet);
	protobuf_end(packet);
	return end_packet(perfetto);
}

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
	struct protobuf *packet = &perfetto->packet;
	int64_t ns = shown_from(walk, walk->process, walk->thread->start_ticks);
	int error;

	perfetto->thread = walk->thread;
	perfetto->lost = 0;
	free_numbers(&perfetto->greenlets);
	free_numbers(&perfetto->tasks);
	begin_sequence(perfetto, &perfetto->sequence, sequence_of_thread(walk->thread), ns,
		       uuid_of(perfetto, KIND_THREAD, walk->thread->number));
	protobuf_begin(packet, PACKET_INTERNED);
	put_entries(packet, INTERNED_CATEGORY, categories, CATEGORIES);
	put_entries(packet, INTERNED_NAME, names, NAMES);
	put_entries(packet, INTERNED_ANNOTATION, annotations, ANNOTATIONS);
	put_entries(packet, INTERNED_STRING, ends, ENDS);
	protobuf_end(packet);
	error = end_packet(perfetto);
	return error ? error : describe_thread(perfetto, ns);
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
	begin_sequence(perfetto, &perfetto->heap, sequence_of_process(perfetto), ns,
		       uuid_of(perfetto, KIND_HEAP, walk->process->number));
	error = end_packet(perfetto);
	return error ? error : describe_process(perfetto, perfetto->heap.id, ns);
}

static void sample_heap(void *owner, int64_t ns, uint64_t bytes)
{
	struct perfetto *perfetto = owner;
	uint8_t event[EVENT_MAX_BYTES], *at = event;

	at = protobuf_put_number(at, EVENT_TYPE, TYPE_COUNTER);
	at = protobuf_put_number(at, EVENT_COUNTER_VALUE, bytes);
	put_event(perfetto, &perfetto->heap, perfetto->trace->start_ns + ns, event, (size_t)(at - event));
}

static int perfetto_process_end(void *owner, struct call_walk *walk)
{
	struct perfetto *perfetto = owner;
	uint32_t number = walk->process->number;
	int error;

	free_names(perfetto);
	if (!perfetto->memory)
		return 0;
	error = describe_counter(perfetto, perfetto->heap.id, uuid_of(perfetto, KIND_HEAP, number),
				 uuid_of(perfetto, KIND_PROCESS, number), "Python heap", UNIT_BYTES);
	if (error)
		return error;
	return heap_curve(walk->trace, walk->process, walk->filter, HEAP_SAMPLE_NS, sample_heap, perfetto);
}

/* --- all --- */

/* The same moment by each clock of the trace. */
static int describe_clocks(struct perfetto *perfetto)
{
	const struct trace *trace = perfetto->trace;
	struct protobuf *packet = &perfetto->packet;

	begin_packet(perfetto, 1, FLAG_CLEARED);
	protobuf_number(packet, PACKET_FIRST, 1);
	protobuf_begin(packet, PACKET_CLOCK_SNAPSHOT);
	if (trace->clock_count) {
		put_clock(packet, CLOCK_MONOTONIC_NS, (int64_t)trace->clocks[0].monotonic_ns);
		put_clock(packet, CLOCK_REAL, (int64_t)trace->clocks[0].realtime_ns);
	} else {
		put_clock(packet, CLOCK_MONOTONIC_NS, trace->start_ns);
	}
	protobuf_number(packet, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_NS);
	protobuf_end(packet);
	return end_packet(perfetto);
}

int export_perfetto(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct call_visitor visitor = {.process = perfetto_process,
						    .process_end = perfetto_process_end,
						    .thread = perfetto_thread,
						    .push = perfetto_push,
						    .pop = perfetto_pop,
						    .other = perfetto_other};
	struct perfetto perfetto = {.output = output, .trace = export->trace};
	int error = find_births(&perfetto);

	if (!error)
		error = describe_clocks(&perfetto);
	if (!error)
		error = walk_trace(export->trace, export->filter, progress, &visitor, &perfetto);
	free(perfetto.births);
	free_names(&perfetto);
	free_numbers(&perfetto.greenlets);
	free_numbers(&perfetto.tasks);
	protobuf_done(&perfetto.packet);
	return error;
}
