/*
 * speedscope.c - speedscope's JSON (https://www.speedscope.app/file-format-schema.json), in two forms.
 *
 *   speedscope            "evented": every call of a thread with its start and end, in ns since the start of the trace.
 *                         It is written as it is read; memory grows with the number of functions only. The format
 *                         cannot express that greenlets of a thread alternate: each has its own profile, in its own
 *                         running time, and its events (16 bytes each) are in memory until the thread ends. Spans are
 *                         in profiles of their own (speedscope_spans.h); marks and counters have no place in the
 *                         format
 *   speedscope-sampled    "sampled": the different stacks of a thread, each with its own time in ns. Small for any
 *                         number of calls; see analysis/stacks.h for the memory
 *
 * Both have one profile for each thread with calls, and one table of functions for all profiles.
 */
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/stack_counts.h"
#include "analysis/stacks.h"
#include "export/speedscope_spans.h"
#include "util/batches.h"
#include "util/digits.h"
#include "util/grow.h"

struct event {
	uint64_t ns;
	uint32_t function;
	uint32_t type; /* 'O' or 'C' */
};

struct greenlet {
	struct event *events;
	size_t count, allocated;
	uint64_t ran_ns; /* running time before its current turn */
};

struct speedscope {
	struct output *output;
	struct stack_functions functions;
	struct trace *trace;
	char *process; /* label of the process */
	bool any;      /* the next profile needs a comma before it */
	bool sampled;  /* a process of the trace is */
	/* Evented only. */
	struct speedscope_spans spans;
	struct batches events;	 /* struct event, queued for the output */
	struct digits_near near; /* used by the writing thread */
	/* Of the current thread. */
	bool begun;
	int64_t last_ns;
	/* By number, if the current thread has greenlets. */
	bool by_greenlet;
	struct greenlet *greenlets;
	uint32_t greenlets_allocated;
	uint32_t running;
	int64_t since_ns; /* begin of the running greenlet's turn */
};

static void begin_profile(struct speedscope *speedscope, const char *type, const char *thread)
{
	output_string(speedscope->output, speedscope->any ? ",\n" : "\n");
	speedscope->any = true;
	output_format(speedscope->output, "{\"type\":\"%s\",\"unit\":\"nanoseconds\",\"name\":\"", type);
	output_json(speedscope->output, text_of(speedscope->process));
	output_string(speedscope->output, " ");
	output_json(speedscope->output, text_of(thread));
	output_char(speedscope->output, '"');
}

static int begin_thread(struct speedscope *speedscope, const struct call_walk *walk, const char *type)
{
	char *name = stack_thread_name(walk->thread);

	if (!name)
		return -ENOMEM;
	begin_profile(speedscope, type, name);
	free(name);
	return 0;
}

static int speedscope_process(void *owner, struct call_walk *walk)
{
	struct speedscope *speedscope = owner;

	free(speedscope->process);
	speedscope->process = stack_process_name(walk->process);
	return speedscope->process ? 0 : -ENOMEM;
}

static void put_frames(struct speedscope *speedscope)
{
	struct output *output = speedscope->output;

	output_string(output, "\n],\n\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < speedscope->functions.count; i++) {
		const struct stack_function *function = &speedscope->functions.at[i];

		output_string(output, i ? ",\n{\"name\":\"" : "\n{\"name\":\"");
		output_json(output, text_of(function->name));
		if (function->line) {
			output_string(output, "\",\"file\":\"");
			output_json(output, function->file);
			output_format(output, "\",\"line\":%u}", function->line);
		} else {
			output_string(output, "\"}");
		}
	}
	for (uint32_t i = 0; i < speedscope->spans.name_count; i++) {
		output_string(output, speedscope->functions.count + i ? ",\n{\"name\":\"span " : "\n{\"name\":\"span ");
		output_json(output, speedscope->spans.names[i].name);
		output_string(output, speedscope->spans.names[i].unfinished ? " (unfinished)\"}" : "\"}");
	}
	output_string(output, "\n]}}\n");
}

/* --- evented --- */

/* Writes the line of an event, after the comma that ends the line before it. first: there is none. */
static inline void put_line(struct speedscope *speedscope, const struct event *event, bool first)
{
	static const char begin[] = "\n{\"type\":\"", frame[] = "\",\"frame\":", time[] = ",\"at\":";
	char *room = output_room(speedscope->output, 48 + 2 * DIGITS_MAX), *at = room;

	*at = ',';
	at += !first;
	memcpy(at, begin, sizeof(begin) - 1);
	at += sizeof(begin) - 1;
	*at++ = (char)event->type;
	memcpy(at, frame, sizeof(frame) - 1);
	at = digits_put(at + sizeof(frame) - 1, event->function);
	memcpy(at, time, sizeof(time) - 1);
	at = digits_near_put(&speedscope->near, at + sizeof(time) - 1, event->ns);
	*at++ = '}';
	output_take(speedscope->output, (size_t)(at - room));
}

/* Runs in the second thread. */
static int write_events(void *owner, const char *bytes, size_t used)
{
	const struct event *event = (const struct event *)bytes, *end = event + used / sizeof(*event);
	struct speedscope *speedscope = owner;

	for (; event < end; event++)
		put_line(speedscope, event, false);
	return speedscope->output->error;
}

static uint64_t turn_ns(const struct speedscope *speedscope, int64_t now_ns)
{
	return now_ns > speedscope->since_ns ? (uint64_t)(now_ns - speedscope->since_ns) : 0;
}

/* The running greenlet, with its turn up to date; NULL if memory ran out. */
static struct greenlet *running_greenlet(struct speedscope *speedscope, const struct call_walk *walk)
{
	uint32_t number = walk_greenlet(walk);
	struct greenlet *greenlet;

	if (grow_for(&speedscope->greenlets, &speedscope->greenlets_allocated, number, sizeof(*speedscope->greenlets)) <
	    0)
		return NULL;
	if (number != speedscope->running) {
		speedscope->greenlets[speedscope->running].ran_ns += turn_ns(speedscope, walk->now_ns);
		speedscope->running = number;
		speedscope->since_ns = walk->now_ns;
	}
	greenlet = &speedscope->greenlets[number];
	return grow_by_one(&greenlet->events, &greenlet->allocated, greenlet->count, sizeof(*greenlet->events)) < 0
		   ? NULL
		   : greenlet;
}

/* Whether the O event continues a frame whose C event is the last one, at the same time of its greenlet. */
static bool goes_on(const struct greenlet *greenlet, const struct walk_frame *frame, const struct event *event)
{
	const struct event *last = greenlet->count ? &greenlet->events[greenlet->count - 1] : NULL;

	return event->type == 'O' && frame->kind == WIRE_FRAME && last && last->type == 'C' &&
	       last->function == event->function && last->ns == event->ns;
}

static void put_in_greenlet(struct speedscope *speedscope, struct call_walk *walk, const struct walk_frame *frame,
			    struct event event)
{
	struct greenlet *greenlet = running_greenlet(speedscope, walk);

	if (!greenlet) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	event.ns = greenlet->ran_ns + turn_ns(speedscope, walk->now_ns);
	if (goes_on(greenlet, frame, &event))
		greenlet->count--;
	else
		greenlet->events[greenlet->count++] = event;
}

static void put_event(struct speedscope *speedscope, struct call_walk *walk, const struct walk_frame *frame, char type)
{
	struct event event = {(uint64_t)walk->now_ns, (uint32_t)frame->user - 1, (uint32_t)type};
	struct event *room;

	if (!frame->user)
		event.function = stack_functions_find(&speedscope->functions, walk, frame->key);
	if (event.function == UINT32_MAX)
		walk_fail(walk, -ENOMEM);
	if (speedscope->by_greenlet) {
		put_in_greenlet(speedscope, walk, frame, event);
		return;
	}
	speedscope->last_ns = walk->now_ns;
	if (!speedscope->begun) {
		speedscope->begun = true;
		put_line(speedscope, &event, true);
		return;
	}
	room = batches_room(&speedscope->events, sizeof(*room));
	if (room)
		*room = event;
	if (__builtin_expect(speedscope->events.error != 0, 0))
		walk_fail(walk, speedscope->events.error);
}

static int evented_process(void *owner, struct call_walk *walk)
{
	struct speedscope *speedscope = owner;
	int error = speedscope_process(owner, walk);

	if (!error)
		error = spans_begin_process(&speedscope->spans.open, walk);
	return error ? error : stack_functions_process(&speedscope->functions, walk);
}

static int evented_process_end(void *owner, struct call_walk *walk)
{
	struct speedscope *speedscope = owner;

	speedscope_spans_process_end(&speedscope->spans, walk);
	return walk->error;
}

static int evented_thread(void *owner, struct call_walk *walk)
{
	struct speedscope *speedscope = owner;
	struct trace_thread *thread = walk->trace->threads[walk->thread->number];

	if (trace_count_events(walk->trace, thread) < 0)
		return -ENOMEM;
	speedscope->begun = false;
	speedscope->by_greenlet = thread->events[WIRE_SWITCH] > 0;
	speedscope->running = 0;
	speedscope->since_ns = walk->now_ns;
	return 0;
}

static void evented_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct speedscope *speedscope = owner;

	if (!speedscope->begun && !speedscope->by_greenlet) {
		if (begin_thread(speedscope, walk, "evented") < 0)
			walk_fail(walk, -ENOMEM);
		output_string(speedscope->output, ",\"startValue\":");
		output_i64(speedscope->output, walk->now_ns);
		output_string(speedscope->output, ",\"events\":[");
	}
	put_event(speedscope, walk, frame, 'O');
}

static void evented_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	(void)how;
	put_event(owner, walk, frame, 'C');
}

/* For a sample at another line of the same call: ends the top frame and opens it again at that line. */
static void evented_line(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct speedscope *speedscope = owner;
	uint32_t number = stack_functions_at_line(&speedscope->functions, walk, head);
	struct walk_frame *frame;

	(void)extra;
	if (number == UINT32_MAX)
		return;
	frame = &walk->frames[walk->shown - 1];
	if (frame->user == number + UINT64_C(1))
		return;
	put_event(speedscope, walk, frame, 'C');
	frame->user = number + UINT64_C(1);
	put_event(speedscope, walk, frame, 'O');
}

static void evented_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct speedscope *speedscope = owner;

	/* A greenlet without shown frames has its turn, too. */
	if (speedscope->by_greenlet && wire_head_kind(head) == WIRE_SWITCH && !running_greenlet(speedscope, walk))
		walk_fail(walk, -ENOMEM);
	if (speedscope->sampled)
		evented_line(owner, walk, head, extra);
	speedscope_spans_event(&speedscope->spans, walk, head, extra);
}

static int put_greenlet(struct speedscope *speedscope, const struct call_walk *walk, uint32_t number)
{
	const struct greenlet *greenlet = &speedscope->greenlets[number];
	char *thread = stack_thread_name(walk->thread), *name = NULL;

	if (!thread || asprintf(&name, number ? "%s greenlet %u" : "%s", thread, number) < 0) {
		free(thread);
		return -ENOMEM;
	}
	begin_profile(speedscope, "evented", name);
	free(name);
	free(thread);
	output_string(speedscope->output, ",\"startValue\":");
	output_u64(speedscope->output, greenlet->events[0].ns);
	output_string(speedscope->output, ",\"events\":[");
	for (size_t i = 0; i < greenlet->count; i++)
		put_line(speedscope, &greenlet->events[i], i == 0);
	output_string(speedscope->output, "\n],\"endValue\":");
	output_u64(speedscope->output, greenlet->events[greenlet->count - 1].ns);
	output_char(speedscope->output, '}');
	return 0;
}

static void forget_greenlets(struct speedscope *speedscope)
{
	for (uint32_t i = 0; i < speedscope->greenlets_allocated; i++)
		free(speedscope->greenlets[i].events);
	free(speedscope->greenlets);
	speedscope->greenlets = NULL;
	speedscope->greenlets_allocated = 0;
}

static int evented_thread_end(void *owner, struct call_walk *walk)
{
	struct speedscope *speedscope = owner;
	int error = batches_wait(&speedscope->events);

	for (uint32_t i = 0; i < speedscope->greenlets_allocated && !error; i++)
		if (speedscope->greenlets[i].count)
			error = put_greenlet(speedscope, walk, i);
	forget_greenlets(speedscope);
	if (speedscope->begun) {
		output_string(speedscope->output, "\n],\"endValue\":");
		output_i64(speedscope->output, speedscope->last_ns);
		output_char(speedscope->output, '}');
	}
	return error;
}

/* --- spans --- */

/* The event of a span's begin or end; the frames of spans follow those of functions. */
static void put_span_event(struct speedscope *speedscope, const struct closed_span *span, char type, bool first)
{
	struct event event = {(uint64_t)(type == 'O' ? span->start_ns : span->end_ns),
			      speedscope->functions.count + span->name, (uint32_t)type};

	put_line(speedscope, &event, first);
}

/* Ends the open spans that end before a time. open: indices + 1, a list by the outer one. */
static size_t end_spans(struct speedscope *speedscope, const struct closed_span *spans, size_t *outer, size_t open,
			int64_t until_ns)
{
	while (open && spans[open - 1].end_ns <= until_ns) {
		put_span_event(speedscope, &spans[open - 1], 'C', false);
		open = outer[open - 1];
	}
	return open;
}

/* The profile of the spans of one thread and layer. Returns how many they are; outer has room for as many. */
static size_t put_layer(struct speedscope *speedscope, const struct closed_span *spans, size_t count, size_t *outer)
{
	int64_t end_ns = spans[0].end_ns;
	size_t open = 0, i;

	output_string(speedscope->output, ",\"startValue\":");
	output_i64(speedscope->output, spans[0].start_ns);
	output_string(speedscope->output, ",\"events\":[");
	for (i = 0; i < count && spans[i].thread == spans[0].thread && spans[i].layer == spans[0].layer; i++) {
		open = end_spans(speedscope, spans, outer, open, spans[i].start_ns);
		put_span_event(speedscope, &spans[i], 'O', i == 0);
		outer[i] = open;
		open = i + 1;
		end_ns = spans[i].end_ns > end_ns ? spans[i].end_ns : end_ns;
	}
	end_spans(speedscope, spans, outer, open, INT64_MAX);
	output_string(speedscope->output, "\n],\"endValue\":");
	output_i64(speedscope->output, end_ns);
	output_char(speedscope->output, '}');
	return i;
}

/* The name of the profile: "MainThread (4711) spans", and a number for the second layer and later ones. */
static int begin_layer(struct speedscope *speedscope, const struct trace *trace, const struct closed_span *span)
{
	const struct trace_thread *thread = trace->threads[span->thread];
	char *name = stack_thread_name(thread), *whole = NULL;
	int error = -ENOMEM;

	free(speedscope->process);
	speedscope->process = stack_process_name(trace_process_of(trace, thread));
	if (name && speedscope->process &&
	    asprintf(&whole, span->layer ? "%s spans #%u" : "%s spans", name, span->layer + 1) >= 0) {
		begin_profile(speedscope, "evented", whole);
		free(whole);
		error = 0;
	}
	free(name);
	return error;
}

static int put_spans(struct speedscope *speedscope, const struct trace *trace)
{
	struct speedscope_spans *spans = &speedscope->spans;
	int error = speedscope_spans_layout(spans);
	size_t *outer = calloc(spans->count + 1, sizeof(*outer)), left_out = 0;

	if (!outer)
		error = -ENOMEM;
	for (size_t i = 0; i < spans->count && !error;) {
		if (spans->at[i].layer == SPEEDSCOPE_LAYERS) {
			i++;
			left_out++;
			continue;
		}
		error = begin_layer(speedscope, trace, &spans->at[i]);
		if (!error)
			i += put_layer(speedscope, &spans->at[i], spans->count - i, outer);
	}
	free(outer);
	if (left_out && !error)
		output_message(
		    "evprof: %zu spans are left out: more than %u of their thread overlap without being nested",
		    left_out, SPEEDSCOPE_LAYERS);
	return error;
}

/* --- sampled --- */

static int put_sample(struct speedscope *speedscope, struct stacks *stacks, uint32_t stack)
{
	uint32_t length, i;
	const uint32_t *path = stacks_path(stacks, stack, &length);

	if (!path)
		return -ENOMEM;
	for (i = 0; i < length; i++) {
		output_char(speedscope->output, i ? ',' : '[');
		output_u64(speedscope->output, stacks->at[path[i]].function);
	}
	output_char(speedscope->output, ']');
	return speedscope->output->error;
}

/* Writes the stacks with own time, or their own times. */
static int put_column(struct speedscope *speedscope, struct stacks *stacks, bool times)
{
	const char *comma = times ? "" : "\n";
	int error = 0;

	for (uint32_t i = 1; !error && i < stacks->count; i++) {
		if (!stacks->at[i].own_ns)
			continue;
		output_string(speedscope->output, comma);
		comma = times ? "," : ",\n";
		if (times)
			output_u64(speedscope->output, stacks->at[i].own_ns);
		else
			error = put_sample(speedscope, stacks, i);
	}
	return error;
}

static int sampled_thread(void *owner, struct call_walk *walk, struct stacks *stacks)
{
	struct speedscope *speedscope = owner;
	int error;

	if (stacks->count < 2)
		return 0;
	if (begin_thread(speedscope, walk, "sampled") < 0)
		return -ENOMEM;
	output_string(speedscope->output, ",\"startValue\":0,\"endValue\":");
	output_u64(speedscope->output, stacks_own_ns(stacks));
	output_string(speedscope->output, ",\"samples\":[");
	error = put_column(speedscope, stacks, false);
	output_string(speedscope->output, "],\n\"weights\":[");
	put_column(speedscope, stacks, true);
	output_string(speedscope->output, "]}");
	return error;
}

/* --- all --- */

static void begin_file(struct speedscope *speedscope, const struct export *export)
{
	output_string(speedscope->output, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
					  "\"exporter\":\"evprof\",\"name\":\"");
	output_json(speedscope->output, text_of(export->trace->path));
	export_put_sampling(speedscope->output, trace_sample_rate(export->trace));
	output_string(speedscope->output, "\",\"profiles\":[");
}

static void end_file(struct speedscope *speedscope)
{
	put_frames(speedscope);
	stack_functions_done(&speedscope->functions);
	free(speedscope->process);
}

int export_speedscope(const struct export *export, struct output *output, struct progress *progress)
{
	struct call_visitor visitor = {.process = evented_process,
				       .process_end = evented_process_end,
				       .thread = evented_thread,
				       .thread_end = evented_thread_end,
				       .push = evented_push,
				       .pop = evented_pop,
				       .other = evented_other,
				       .timed = true};
	struct speedscope speedscope = {
	    .output = output, .sampled = trace_sample_rate(export->trace) > 0, .spans.open.in_turn = true};
	int error;

	begin_file(&speedscope, export);
	batches_begin(&speedscope.events, write_events, &speedscope);
	error = walk_trace(export->trace, export->filter, progress, &visitor, &speedscope);
	batches_end(&speedscope.events);
	forget_greenlets(&speedscope);
	if (!error)
		error = put_spans(&speedscope, export->trace);
	end_file(&speedscope);
	speedscope_spans_done(&speedscope.spans);
	return error;
}

int export_speedscope_sampled(const struct export *export, struct output *output, struct progress *progress)
{
	static const struct stacks_visitor visitor = {.process = speedscope_process, .thread = sampled_thread};
	struct speedscope speedscope = {.output = output};
	int error;

	begin_file(&speedscope, export);
	error = stacks_visit(export->trace, export->filter, progress, &speedscope.functions, &visitor, &speedscope);
	end_file(&speedscope);
	return error;
}
