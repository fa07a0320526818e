/*
 * load.c - loads the contents of the chunks: processes, threads, names and the clock. See load.h.
 *
 * Reads everything but the events, once, when the trace is opened. Called by reader.c only.
 */
#include "trace/load.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/json_memory.h"
#include "trace/stream.h"
#include "util/grow.h"

/* Ids count from 1. An id this far above all others is damage, and must not cost memory. */
#define ID_JUMP_MAX (UINT32_C(1) << 20)
#define NUMBER_MAX (UINT64_C(1) << 24)

/*
 * Limits the memory for all chunks together, because a few hundred bytes of zstd may unpack to 16 MiB: KEPT_TIMES the
 * size of the file, or KEPT_BYTES_MIN if that is more. A program that only makes functions and calls each once needs 21
 * times the size.
 */
#define KEPT_TIMES 128
#define KEPT_BYTES_MIN (UINT64_C(256) << 20)
#define ID_BYTES 128  /* table space for each id up to the highest */
#define JSON_TIMES 32 /* memory of an object relative to its text */
#define META_MAX_BYTES (UINT32_C(1) << 20)

/* Reserves bytes of the limit. Returns 0, or -EBADMSG if they exceed it. */
static int keep(struct trace *trace, uint64_t bytes)
{
	uint64_t most = trace->size_bytes * KEPT_TIMES;

	if (most < KEPT_BYTES_MIN)
		most = KEPT_BYTES_MIN;
	if (bytes > most - trace->kept_bytes)
		return -EBADMSG;
	trace->kept_bytes += bytes;
	return 0;
}

/* --- processes and threads by number --- */

/* Whether the file can hold that many: each process and thread has its own chunk. */
static bool number_possible(const struct trace *trace, uint64_t number)
{
	return number < NUMBER_MAX && number <= trace->size_bytes / sizeof(struct trace_chunk);
}

static int grow_table(void *table, uint32_t *count, uint32_t number)
{
	uint32_t wanted = number + 1;

	if (number < *count)
		return 0;
	if (wanted < *count + *count / 2)
		wanted = *count + *count / 2;
	return grow_zeroed(table, count, wanted, sizeof(void *));
}

/* The process with that number, added if it is new. NULL with *error set if it cannot exist. */
static struct trace_process *process_at(struct trace *trace, uint64_t number, int *error)
{
	struct trace_process *process;

	*error = -EBADMSG;
	if (!number_possible(trace, number))
		return NULL;
	*error = grow_table(&trace->processes, &trace->process_count, (uint32_t)number);
	if (*error || trace->processes[number])
		return *error ? NULL : trace->processes[number];
	process = calloc(1, sizeof(*process));
	*error = process ? 0 : -ENOMEM;
	if (process)
		process->number = (uint32_t)number;
	trace->processes[number] = process;
	return process;
}

static struct trace_thread *thread_at(struct trace *trace, uint64_t number, uint64_t process, int *error)
{
	struct trace_thread *thread;

	*error = -EBADMSG;
	if (!number_possible(trace, number))
		return NULL;
	*error = grow_table(&trace->threads, &trace->thread_count, (uint32_t)number);
	if (*error || trace->threads[number])
		return *error ? NULL : trace->threads[number];
	if (!process_at(trace, process, error))
		return NULL;
	thread = calloc(1, sizeof(*thread));
	*error = thread ? 0 : -ENOMEM;
	if (!thread)
		return NULL;
	thread->number = (uint32_t)number;
	thread->process = (uint32_t)process;
	trace->threads[number] = thread;
	return thread;
}

/* --- META --- */

static uint64_t member_u64(const json_t *object, const char *member)
{
	return (uint64_t)json_integer_value(json_object_get(object, member));
}

/* A required number; -1, which no table holds, if it is missing. */
static uint64_t member_number(const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);

	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : UINT64_MAX;
}

static const char *const known_kinds[WIRE_KINDS] = WIRE_KIND_NAMES;

static void name_kinds(struct trace *trace)
{
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		if (known_kinds[kind])
			snprintf(trace->kind_names[kind], TRACE_KIND_NAME_BYTES, "%s", known_kinds[kind]);
		else
			snprintf(trace->kind_names[kind], TRACE_KIND_NAME_BYTES, "kind %u", kind);
}

/* Takes the name of a kind that this evprof does not know, if it is like those that it knows. */
static void load_kind(struct trace *trace, const json_t *object)
{
	uint64_t kind = member_number(object, "kind");
	const char *name = json_string_value(json_object_get(object, "name"));
	size_t length = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;

	if (kind < WIRE_KINDS && !known_kinds[kind] && length && !name[length] && length < TRACE_KIND_NAME_BYTES)
		memcpy(trace->kind_names[kind], name, length + 1);
}

static int load_kinds(struct trace *trace, const json_t *object)
{
	const json_t *kind;
	size_t i;

	json_array_foreach(json_object_get(object, "kinds"), i, kind)
	{
		load_kind(trace, kind);
	}
	return 0;
}

static unsigned kind_of_name(const struct trace *trace, const char *name)
{
	unsigned kind;

	for (kind = 1; kind < WIRE_KINDS; kind++)
		if (strcmp(name, trace->kind_names[kind]) == 0)
			return kind;
	return WIRE_NONE;
}

/* Reads {"call":N,...} into counts by kind. Names that nobody explains, and "unknown", count as WIRE_NONE. */
static void read_counts(const struct trace *trace, const json_t *object, uint64_t *counts)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		unsigned kind = kind_of_name(trace, name);

		if (json_integer_value(value) > 0)
			counts[kind] += (uint64_t)json_integer_value(value);
	}
}

static int load_process(struct trace *trace, json_t *object)
{
	int error;
	struct trace_process *process = process_at(trace, member_number(object, "process"), &error);

	if (!process)
		return error;
	process->known = true;
	process->pid = json_integer_value(json_object_get(object, "pid"));
	process->ppid = json_integer_value(json_object_get(object, "ppid"));
	process->clock_kind = (uint32_t)member_u64(object, "clock_kind");
	process->clock_shift = (uint32_t)member_u64(object, "clock_shift");
	process->start_ticks = member_u64(object, "start_ticks");
	json_decref(process->meta);
	process->meta = json_incref(object);
	return 0;
}

/* The last title counts. */
static int load_title(struct trace *trace, const json_t *object)
{
	uint64_t number = member_number(object, "process");
	struct trace_process *process = number < trace->process_count ? trace->processes[number] : NULL;
	json_t *title = json_object_get(object, "title");

	if (!process || !process->meta)
		return -EBADMSG;
	if (!json_is_string(title))
		return json_object_del(process->meta, "title"), 0;
	return json_object_set(process->meta, "title", title) ? -ENOMEM : 0;
}

static char *copy_text(struct text text)
{
	return strndup(text.at ? text.at : "", text.length);
}

static int set_name(struct trace_thread *thread, struct text name)
{
	char *copy = copy_text(name);

	if (!copy)
		return -ENOMEM;
	free(thread->name);
	thread->name = copy;
	thread->kernel_name = false;
	return 0;
}

/* Any other name takes precedence over the kernel's. */
static int set_kernel_name(struct trace_thread *thread, struct text name)
{
	int error;

	if (thread->name && !thread->kernel_name)
		return 0;
	error = set_name(thread, name);
	thread->kernel_name = !error;
	return error;
}

static uint64_t latest_key(uint32_t process, uint32_t tid)
{
	return ((uint64_t)process + 1) << 32 | tid;
}

static struct text pending_name(uint64_t value)
{
	return trace_string((const struct wire_definition *)(uintptr_t)value, 1);
}

static int take_pending(struct trace *trace, struct trace_thread *thread)
{
	uint64_t value;

	if (!u64_map_take(&trace->pending, latest_key(thread->process, thread->tid), &value))
		return 0;
	return set_name(thread, pending_name(value));
}

static int load_thread(struct trace *trace, const json_t *object)
{
	int error;
	struct trace_thread *thread =
	    thread_at(trace, member_number(object, "thread"), member_number(object, "process"), &error);
	uint64_t *latest;

	if (!thread)
		return error;
	thread->known = true;
	thread->tid = (uint32_t)member_u64(object, "tid");
	thread->start_ticks = member_u64(object, "start_ticks");
	thread->sampled = json_is_true(json_object_get(object, "sampled"));
	latest = u64_map_make(&trace->latest, latest_key(thread->process, thread->tid));
	if (!latest)
		return -ENOMEM;
	*latest = thread->number + 1;
	return take_pending(trace, thread);
}

static int load_thread_end(struct trace *trace, const json_t *object)
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
	uint64_t number = member_number(object, "process");
	struct trace_process *process = number < trace->process_count ? trace->processes[number] : NULL;

	if (!process)
		return -EBADMSG;
	process->ended = true;
	process->end_ticks = member_u64(object, "end_ticks");
	read_counts(trace, json_object_get(object, "lost"), process->lost);
	json_decref(process->end);
	process->end = json_incref(object);
	return 0;
}

static int load_meta(struct trace *trace, const struct trace_payload *payload)
{
	json_t *object;
	const char *type;
	int error;

	if (payload->chunk.raw_bytes > META_MAX_BYTES ||
	    keep(trace, (uint64_t)payload->chunk.raw_bytes * JSON_TIMES) < 0)
		return -EBADMSG;
	json_memory_begin();
	object = json_loadb((const char *)payload->raw, payload->chunk.raw_bytes, 0, NULL);
	if (!object && json_memory_ran_out)
		return -ENOMEM;
	type = json_string_value(json_object_get(object, "type"));
	error = object && type ? 0 : -EBADMSG;
	if (type && strcmp(type, "process") == 0)
		error = load_process(trace, object);
	else if (type && strcmp(type, "kinds") == 0)
		error = load_kinds(trace, object);
	else if (type && strcmp(type, "title") == 0)
		error = load_title(trace, object);
	else if (type && strcmp(type, "thread") == 0)
		error = load_thread(trace, object);
	else if (type && strcmp(type, "thread_end") == 0)
		error = load_thread_end(trace, object);
	else if (type && strcmp(type, "process_end") == 0)
		error = load_process_end(trace, object);
	json_decref(object);
	return error;
}

/* --- DEFINITIONS --- */

static int set_definition(struct trace *trace, struct trace_names *names, const struct wire_definition *definition)
{
	uint32_t id = definition->id;

	if (id == 0 || id > WIRE_ARG_MAX || id > names->count + ID_JUMP_MAX)
		return -EBADMSG;
	if (id >= names->count && keep(trace, (id + UINT64_C(1) - names->count) * ID_BYTES) < 0)
		return -EBADMSG;
	if (id >= names->allocated) {
		uint32_t allocated = id + id / 2 + 64;
		void *grown = realloc(names->at, allocated * sizeof(*names->at));

		if (!grown)
			return -ENOMEM;
		names->at = grown;
		memset(names->at + names->allocated, 0, (allocated - names->allocated) * sizeof(*names->at));
		names->allocated = allocated;
	}
	if (id >= names->count)
		names->count = id + 1;
	names->at[id] = definition;
	return 0;
}

/* The last thread of the process with that tid. The kernel reuses a tid after its thread's end. */
static struct trace_thread *latest_thread(const struct trace *trace, uint64_t key)
{
	uint64_t number = u64_map_value(&trace->latest, key);

	return number ? trace->threads[number - 1] : NULL;
}

static int load_thread_name(struct trace *trace, uint32_t process, const struct wire_definition *definition)
{
	uint64_t key = latest_key(process, definition->id), *pending;
	struct trace_thread *thread = latest_thread(trace, key);

	if (definition->flags & WIRE_KERNEL_NAME)
		return thread ? set_kernel_name(thread, trace_string(definition, 1)) : 0;
	if (thread && !thread->ended)
		return set_name(thread, trace_string(definition, 1));
	pending = u64_map_make(&trace->pending, key);
	if (!pending)
		return -ENOMEM;
	*pending = (uintptr_t)definition;
	return 0;
}

static int load_module(struct trace *trace, struct trace_process *process, const struct wire_definition *definition)
{
	int error = set_definition(trace, &process->modules, definition);

	if (!error)
		error = grow_zeroed(&process->module_since, &process->module_since_count, process->modules.allocated,
				    sizeof(*process->module_since));
	if (error)
		return error;
	process->module_since[definition->id] = process->native_frames.count ? process->native_frames.count : 1;
	return 0;
}

static int load_symbol(struct trace *trace, struct trace_process *process, const struct wire_definition *definition)
{
	struct trace_symbols *symbols = &process->symbols;

	if (keep(trace, sizeof(*symbols->at)) < 0)
		return -EBADMSG;
	if (grow_by_one(&symbols->at, &symbols->allocated, symbols->count, sizeof(*symbols->at)))
		return -ENOMEM;
	symbols->at[symbols->count] = (struct trace_symbol){definition, symbols->count};
	symbols->count++;
	return 0;
}

static int load_definition(struct trace *trace, struct trace_process *process, const struct wire_definition *definition)
{
	switch (definition->type) {
	case WIRE_DEFINE_CODE:
		return set_definition(trace, &process->codes, definition);
	case WIRE_DEFINE_C_FUNCTION:
		return set_definition(trace, &process->functions, definition);
	case WIRE_DEFINE_TYPE:
		return set_definition(trace, &process->types, definition);
	case WIRE_DEFINE_MARK:
		return set_definition(trace, &process->marks, definition);
	case WIRE_DEFINE_CALIBRATION:
		process->calibration = trace_string(definition, 1);
		return 0;
	case WIRE_DEFINE_MODULE:
		return load_module(trace, process, definition);
	case WIRE_DEFINE_NATIVE_FRAME:
		return set_definition(trace, &process->native_frames, definition);
	case WIRE_DEFINE_SYMBOL:
		return load_symbol(trace, process, definition);
	case WIRE_DEFINE_THREAD_NAME:
		return load_thread_name(trace, process->number, definition);
	}
	return 0; /* a type of a later version */
}

static bool definition_valid(const struct wire_definition *definition, size_t room)
{
	uint64_t bytes = sizeof(*definition);
	unsigned i;

	if (room < sizeof(*definition) || definition->size_bytes > room || definition->size_bytes % 8)
		return false;
	for (i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		bytes += definition->length[i];
	return bytes <= definition->size_bytes;
}

/* Keeps the payload, because names point into it. */
static int keep_definitions(struct trace *trace, struct trace_payload *payload)
{
	size_t bytes = payload->chunk.raw_bytes;
	void *grown;
	void *kept;

	if (keep(trace, bytes) < 0)
		return -EBADMSG;
	grown = realloc(trace->definitions, (trace->definition_count + 1) * sizeof(*trace->definitions));
	if (!grown)
		return -ENOMEM;
	trace->definitions = grown;
	/* The buffer may be larger than needed: a larger chunk may have used it before. */
	kept = realloc(payload->raw, bytes ? bytes : 1);
	if (!kept)
		return -ENOMEM;
	trace->definitions[trace->definition_count++] = kept;
	payload->raw = NULL;
	payload->raw_allocated = 0;
	return 0;
}

static int load_definitions(struct trace *trace, struct trace_payload *payload)
{
	size_t room = payload->chunk.raw_bytes;
	const uint8_t *at;
	int error;
	struct trace_process *process = process_at(trace, payload->chunk.process, &error);

	if (!process)
		return error;
	error = keep_definitions(trace, payload);
	if (error)
		return error;
	at = trace->definitions[trace->definition_count - 1];
	while (room && !error) {
		const struct wire_definition *definition = (const void *)at;

		if (!definition_valid(definition, room))
			return -EBADMSG;
		error = load_definition(trace, process, definition);
		at += definition->size_bytes;
		room -= definition->size_bytes;
	}
	return error;
}

/* --- CLOCK --- */

static int load_clocks(struct trace *trace, const struct trace_payload *payload)
{
	size_t count = payload->chunk.raw_bytes / sizeof(struct trace_clock);
	struct trace_clock *grown;

	if (payload->chunk.raw_bytes % sizeof(struct trace_clock))
		return -EBADMSG;
	if (count == 0)
		return 0;
	if (keep(trace, payload->chunk.raw_bytes) < 0)
		return -EBADMSG;
	grown = realloc(trace->clocks, (trace->clock_count + count) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	trace->clocks = grown;
	memcpy(grown + trace->clock_count, payload->raw, count * sizeof(*grown));
	trace->clock_count += count;
	return 0;
}

static struct trace_line line_through(const struct trace_clock *first, const struct trace_clock *last)
{
	struct trace_line line = {.ticks = first->ticks, .ns = (int64_t)first->monotonic_ns, .shift = 63};
	uint64_t ns = last->monotonic_ns - first->monotonic_ns;
	uint64_t ticks = last->ticks - first->ticks;

	while (line.shift && ((unsigned __int128)ns << line.shift) / ticks >> 63)
		line.shift--;
	line.factor = (uint64_t)(((unsigned __int128)ns << line.shift) / ticks);
	return line;
}

/* Finds the two readings of the process's clock that are furthest apart. */
static bool find_pairs(const struct trace *trace, const struct trace_process *process, const struct trace_clock **first,
		       const struct trace_clock **last)
{
	size_t i;

	*first = *last = NULL;
	for (i = 0; i < trace->clock_count; i++) {
		const struct trace_clock *clock = &trace->clocks[i];

		if (clock->clock_kind != process->clock_kind || clock->clock_shift != process->clock_shift)
			continue;
		if (!*first || clock->ticks < (*first)->ticks)
			*first = clock;
		if (!*last || clock->ticks > (*last)->ticks)
			*last = clock;
	}
	return *first && (*first)->ticks < (*last)->ticks && (*first)->monotonic_ns < (*last)->monotonic_ns &&
	       (*first)->monotonic_ns < TRACE_NS_FAR;
}

/*
 * Sets the line of the process. Processes with the same clock share one; `like` is the previous process, which mostly
 * has the same clock.
 */
static void set_line(struct trace *trace, struct trace_process *process, const struct trace_process *like)
{
	const struct trace_clock *first;
	const struct trace_clock *last;

	if (like && like->known && like->clock_kind == process->clock_kind &&
	    like->clock_shift == process->clock_shift) {
		process->line = like->line;
		return;
	}
	process->line = (struct trace_line){.factor = UINT64_C(1) << (process->clock_shift & 31)};
	if (process->clock_kind == 0) /* RING_CLOCK_MONOTONIC: ticks are ns */
		return;
	if (find_pairs(trace, process, &first, &last))
		process->line = line_through(first, last);
	else if (process->known)
		trace->damage.no_clock = true;
}

/* --- all together --- */

static int load_place(struct trace *trace, struct trace_place *place, struct trace_payload *payload)
{
	int error;

	if (place->type == TRACE_CHUNK_EVENTS)
		return thread_at(trace, place->thread, place->process, &error) ? 0 : error;
	error = trace_read_payload(trace, place, payload);
	if (error)
		return error;
	if (place->type == TRACE_CHUNK_META)
		error = load_meta(trace, payload);
	else if (place->type == TRACE_CHUNK_DEFINITIONS)
		error = load_definitions(trace, payload);
	else
		error = load_clocks(trace, payload);
	return error;
}

static int load_places(struct trace *trace)
{
	struct trace_payload payload = {0};
	int error = 0;
	size_t i;

	for (i = 0; i < trace->place_count && error != -ENOMEM; i++) {
		error = load_place(trace, &trace->places[i], &payload);
		if (error == -EBADMSG)
			trace_note_damage(trace, &trace->places[i]);
	}
	trace_payload_done(&payload);
	return error == -ENOMEM ? error : 0;
}

/* The thread of an EVENTS chunk; NULL for other chunks, and for a thread that cannot exist. */
static struct trace_thread *thread_of_place(const struct trace *trace, const struct trace_place *place)
{
	if (place->type != TRACE_CHUNK_EVENTS || place->thread >= trace->thread_count)
		return NULL;
	return trace->threads[place->thread];
}

/* Groups the chunks by thread: counts them, then copies each thread's into adjacent places. */
static int group_places(struct trace *trace)
{
	struct trace_place *next;
	size_t i;

	trace->event_places = malloc((trace->place_count + 1) * sizeof(*trace->event_places));
	if (!trace->event_places)
		return -ENOMEM;
	for (i = 0; i < trace->place_count; i++) {
		struct trace_thread *thread = thread_of_place(trace, &trace->places[i]);

		if (thread)
			thread->place_count++;
	}
	next = trace->event_places;
	for (i = 0; i < trace->thread_count; i++) {
		if (!trace->threads[i])
			continue;
		trace->threads[i]->places = next;
		next += trace->threads[i]->place_count;
		trace->threads[i]->place_count = 0;
	}
	for (i = 0; i < trace->place_count; i++) {
		struct trace_thread *thread = thread_of_place(trace, &trace->places[i]);

		if (thread)
			thread->places[thread->place_count++] = trace->places[i];
	}
	return 0;
}

static int list_threads(struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->thread_count; i++) {
		struct trace_process *process;
		void *grown;

		if (!trace->threads[i])
			continue;
		process = trace_process_of(trace, trace->threads[i]);
		/* The array doubles at each power of two. */
		if ((process->thread_count & (process->thread_count - 1)) == 0) {
			size_t room = process->thread_count ? process->thread_count * 2 : 1;

			grown = realloc(process->threads, room * sizeof(*process->threads));
			if (!grown)
				return -ENOMEM;
			process->threads = grown;
		}
		process->threads[process->thread_count++] = i;
	}
	return 0;
}

/* The time of the first event of a chunk. */
static uint64_t first_event_ticks(const struct trace_events *events)
{
	if (events->count == 0)
		return events->first_ticks;
	return wire_time_of(wire_head_kind(events->heads[0]), events->first_ticks, events->ticks[0], events->extras);
}

/* Finds the earliest event. Reads a chunk only if it begins before the earliest event found: mostly one, the first. */
static int find_span(struct trace *trace)
{
	struct trace_payload payload = {0};
	bool any = false;
	uint32_t i;

	for (i = 0; i < trace->thread_count; i++) {
		struct trace_thread *thread = trace->threads[i];
		const struct trace_process *process;
		struct trace_events events;
		int64_t end;

		if (!thread || thread->place_count == 0)
			continue;
		process = trace_process_of(trace, thread);
		end = trace_ns(process, thread->places[thread->place_count - 1].last_ticks);
		trace->end_ns = !any || end > trace->end_ns ? end : trace->end_ns;
		if (any && trace_ns(process, thread->places[0].first_ticks) >= trace->start_ns)
			continue;
		events = (struct trace_events){.first_ticks = thread->places[0].first_ticks};
		if (trace_read_payload(trace, &thread->places[0], &payload) == 0)
			trace_note_error(trace, &thread->places[0], trace_unpack_events(&payload, &events));
		if (!any || trace_ns(process, first_event_ticks(&events)) < trace->start_ns)
			trace->start_ns = trace_ns(process, first_event_ticks(&events));
		any = true;
	}
	if (trace->end_ns < trace->start_ns)
		trace->end_ns = trace->start_ns;
	trace_payload_done(&payload);
	return 0;
}

/* A name that no later thread used belongs to a thread that had ended when its name was read. */
static int give_late_names(struct trace *trace)
{
	const struct u64_map *pending = &trace->pending;

	for (size_t i = 0; pending->slots && i <= pending->mask; i++) {
		const struct u64_map_slot *pair = &pending->slots[i];
		struct trace_thread *thread = pair->key ? latest_thread(trace, pair->key) : NULL;

		if (thread && !thread->name && set_name(thread, pending_name(pair->value)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct trace_symbol *left = a, *right = b;

	if (left->definition->address != right->definition->address)
		return left->definition->address < right->definition->address ? -1 : 1;
	if (left->definition->id != right->definition->id)
		return left->definition->id < right->definition->id ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static void sort_symbols(struct trace_process *process)
{
	if (process->symbols.count)
		qsort(process->symbols.at, process->symbols.count, sizeof(*process->symbols.at), compare_symbols);
}

int trace_load(struct trace *trace)
{
	int error;
	const struct trace_process *like = NULL;
	uint32_t i;

	name_kinds(trace);
	error = load_places(trace);
	if (!error)
		error = give_late_names(trace);
	for (i = 0; i < trace->process_count; i++)
		if (trace->processes[i]) {
			set_line(trace, trace->processes[i], like);
			like = trace->processes[i];
			sort_symbols(trace->processes[i]);
		}
	if (!error)
		error = group_places(trace);
	if (!error)
		error = list_threads(trace);
	if (!error)
		error = find_span(trace);
	if (!error)
		error = trace_own_events_find(trace);
	return error;
}

static void process_free(struct trace_process *process)
{
	if (!process)
		return;
	json_decref(process->meta);
	json_decref(process->end);
	free(process->codes.at);
	free(process->functions.at);
	free(process->types.at);
	free(process->marks.at);
	free(process->native_frames.at);
	free(process->modules.at);
	free(process->module_since);
	free(process->symbols.at);
	free(process->threads);
	free(process);
}

static void thread_free(struct trace_thread *thread)
{
	if (!thread)
		return;
	thread_free(thread->own);
	free(thread->name);
	free(thread->events);
	free(thread->lost);
	free(thread);
}

void trace_unload(struct trace *trace)
{
	size_t i;

	for (i = 0; i < trace->process_count; i++)
		process_free(trace->processes[i]);
	for (i = 0; i < trace->thread_count; i++)
		thread_free(trace->threads[i]);
	for (i = 0; i < trace->definition_count; i++)
		free(trace->definitions[i]);
	u64_map_done(&trace->latest);
	u64_map_done(&trace->pending);
	free(trace->definitions);
	free(trace->processes);
	free(trace->threads);
	free(trace->clocks);
	free(trace->event_places);
}
