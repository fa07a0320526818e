/*
 * load_meta.c - loads META chunks: processes, threads, their ends, and the names of kinds. See load.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/json_memory.h"
#include "trace/load.h"
#include "util/grow.h"

#define JSON_TIMES 32 /* memory of an object relative to its text */
#define META_MAX_BYTES (UINT32_C(1) << 20)

static uint64_t member_u64(const json_t *object, const char *member)
{
	return (uint64_t)json_integer_value(json_object_get(object, member));
}

/* A required number; -1, which no table holds, if it is missing. */
static uint64_t member_number(const json_t *object, const char *member)
{
	return json_is_integer(json_object_get(object, member)) ? member_u64(object, member) : UINT64_MAX;
}

static struct trace_process *member_process(const struct trace *trace, const json_t *object)
{
	uint64_t number = member_number(object, "process");

	return number < trace->process_count ? trace->processes[number] : NULL;
}

static const char *const known_kinds[WIRE_KINDS] = WIRE_KIND_NAMES;

void trace_name_kinds(struct trace *trace)
{
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		if (known_kinds[kind])
			snprintf(trace->kind_names[kind], TRACE_KIND_NAME_BYTES, "%s", known_kinds[kind]);
		else
			snprintf(trace->kind_names[kind], TRACE_KIND_NAME_BYTES, "kind %u", kind);
}

bool trace_knows_kind(unsigned kind)
{
	return known_kinds[kind];
}

/* Takes the names of kinds that this evprof does not know, if they are like those that it knows. */
static int load_kinds(struct trace *trace, json_t *object)
{
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(object, "kinds"), i, member)
	{
		uint64_t kind = member_number(member, "kind");
		const char *name = json_string_value(json_object_get(member, "name"));
		size_t length = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;

		if (kind < WIRE_KINDS && !known_kinds[kind] && length && !name[length] &&
		    length < TRACE_KIND_NAME_BYTES)
			memcpy(trace->kind_names[kind], name, length + 1);
	}
	return 0;
}

/* Reads {"call":N,...} into counts by kind. Names that nobody explains, and "unknown", count as WIRE_NONE. */
static void read_counts(const struct trace *trace, const json_t *object, uint64_t *counts)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		unsigned kind = 1;

		while (kind < WIRE_KINDS && strcmp(name, trace->kind_names[kind]) != 0)
			kind++;
		if (json_integer_value(value) > 0)
			counts[kind % WIRE_KINDS] += (uint64_t)json_integer_value(value);
	}
}

static int load_process(struct trace *trace, json_t *object)
{
	const json_t *seen = json_object_get(object, "seen_pid");
	struct trace_process *process;
	int error = trace_make_process(trace, member_number(object, "process"), &process);

	if (error)
		return error;
	process->known = true;
	process->pid = json_integer_value(json_object_get(object, "pid"));
	process->ppid = json_integer_value(json_object_get(object, "ppid"));
	process->seen_pid = json_is_integer(seen) ? json_integer_value(seen) : process->pid;
	process->clock_kind = (uint32_t)member_u64(object, "clock_kind");
	process->clock_shift = (uint32_t)member_u64(object, "clock_shift");
	process->start_ticks = member_u64(object, "start_ticks");
	json_decref(process->meta);
	process->meta = json_incref(object);
	return 0;
}

/* The last title counts. */
static int load_title(struct trace *trace, json_t *object)
{
	struct trace_process *process = member_process(trace, object);
	json_t *title = json_object_get(object, "title");

	if (!process)
		return -EBADMSG;
	if (!process->meta) /* the collector had no memory for its description, and said so */
		return 0;
	if (!json_is_string(title))
		return json_object_del(process->meta, "title"), 0;
	return json_object_set(process->meta, "title", title) ? -ENOMEM : 0;
}

/* A sample: ticks and three numbers of bytes. One that is damaged, or earlier than the one before, is left out. */
static int load_sample(struct trace_process *process, const json_t *sample)
{
	const uint32_t count = process->resident_count;
	uint64_t numbers[4];
	int error;

	for (size_t i = 0; i < 4; i++) {
		const json_t *number = json_array_get(sample, i);

		if (!json_is_integer(number) || json_integer_value(number) < 0)
			return 0;
		numbers[i] = (uint64_t)json_integer_value(number);
		if (i && numbers[i] >> 60)
			return 0;
	}
	if (count == UINT32_MAX || (count && numbers[0] < process->resident[count - 1].ticks))
		return 0;
	error = grow_by_one(&process->resident, &process->resident_allocated, count, sizeof(*process->resident));
	if (error)
		return error;
	process->resident[process->resident_count++] =
	    (struct trace_resident){numbers[0], numbers[1], numbers[2], numbers[3]};
	return 0;
}

static int load_resident(struct trace *trace, json_t *object)
{
	struct trace_process *process = member_process(trace, object);
	uint64_t peak_bytes = member_u64(object, "peak_bytes");
	const json_t *sample;
	int error = 0;
	size_t i;

	if (!process)
		return -EBADMSG;
	if (!(peak_bytes >> 60) && peak_bytes > process->resident_peak_bytes)
		process->resident_peak_bytes = peak_bytes;
	json_array_foreach(json_object_get(object, "samples"), i, sample)
	{
		if (!error)
			error = load_sample(process, sample);
	}
	return error;
}

/* Other events are recorded from then on. One that is damaged, or earlier than the one before, is left out. */
static int load_events(struct trace *trace, json_t *object)
{
	struct trace_process *process = member_process(trace, object);
	const json_t *last, *ticks = json_object_get(object, "ticks");

	if (!process)
		return -EBADMSG;
	last = json_array_get(process->changes, json_array_size(process->changes) - 1);
	if (!json_is_array(json_object_get(object, "events")) || json_integer_value(ticks) < 0 ||
	    (last && member_u64(object, "ticks") < member_u64(last, "ticks")))
		return 0;
	if (!process->changes)
		process->changes = json_array();
	return json_array_append(process->changes, object) ? -ENOMEM : 0;
}

/* The thread that had the number has left the file. */
static int reuse_number(struct trace *trace, struct trace_thread *thread, uint64_t process)
{
	struct trace_process *owner;
	int error = trace_make_process(trace, process, &owner);

	if (error)
		return error;
	thread->process = owner->number;
	thread->reused = true;
	thread->ended = thread->kernel_name = false;
	free(thread->name);
	free(thread->events);
	free(thread->lost);
	thread->name = NULL;
	thread->events = thread->lost = NULL;
	return 0;
}

static int load_thread(struct trace *trace, json_t *object)
{
	uint64_t process = member_number(object, "process"), start_ticks = member_u64(object, "start_ticks");
	struct trace_thread *thread;
	int error = trace_make_thread(trace, member_number(object, "thread"), process, &thread);

	if (!error && thread->known && thread->start_ticks != start_ticks)
		error = reuse_number(trace, thread, process);
	if (error)
		return error;
	thread->known = true;
	thread->tid = (uint32_t)member_u64(object, "tid");
	thread->start_ticks = start_ticks;
	thread->sampled = json_is_true(json_object_get(object, "sampled"));
	return trace_take_pending_name(trace, thread);
}

static int load_thread_end(struct trace *trace, json_t *object)
{
	uint64_t number = member_number(object, "thread");
	struct trace_thread *thread = number < trace->thread_count ? trace->threads[number] : NULL;

	if (!thread)
		return -EBADMSG;
	thread->ended = true;
	if (!thread->events)
		thread->events = calloc(WIRE_KINDS, sizeof(uint64_t));
	if (!thread->lost)
		thread->lost = calloc(WIRE_KINDS, sizeof(uint64_t));
	if (!thread->events || !thread->lost)
		return -ENOMEM;
	read_counts(trace, json_object_get(object, "events"), thread->events);
	read_counts(trace, json_object_get(object, "lost"), thread->lost);
	return 0;
}

static int load_process_end(struct trace *trace, json_t *object)
{
	struct trace_process *process = member_process(trace, object);

	if (!process)
		return -EBADMSG;
	process->ended = true;
	process->end_ticks = member_u64(object, "end_ticks");
	read_counts(trace, json_object_get(object, "lost"), process->lost);
	json_decref(process->end);
	process->end = json_incref(object);
	return 0;
}

int trace_load_meta(struct trace *trace, struct trace_payload *payload)
{
	static const struct {
		const char *type;
		int (*load)(struct trace *trace, json_t *object);
	} types[] = {{"process", load_process},	  {"kinds", load_kinds},	   {"title", load_title},
		     {"thread", load_thread},	  {"thread_end", load_thread_end}, {"process_end", load_process_end},
		     {"resident", load_resident}, {"events", load_events}};
	json_t *object;
	const char *type;
	int error;

	if (payload->chunk.raw_bytes > META_MAX_BYTES ||
	    trace_keep(trace, (uint64_t)payload->chunk.raw_bytes * JSON_TIMES) < 0)
		return -EBADMSG;
	json_memory_begin();
	object = json_loadb((const char *)payload->raw, payload->chunk.raw_bytes, 0, NULL);
	if (!object && json_memory_ran_out)
		return -ENOMEM;
	type = json_string_value(json_object_get(object, "type"));
	error = type ? 0 : -EBADMSG;
	for (size_t i = 0; type && i < sizeof(types) / sizeof(*types); i++)
		if (strcmp(type, types[i].type) == 0)
			error = types[i].load(trace, object);
	json_decref(object);
	return error;
}
