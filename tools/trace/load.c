/*
 * load.c - loads the contents of the chunks when a trace is opened: processes, threads and their chunks. See load.h.
 */
#include "trace/load.h"

#include <errno.h>
#include <stdlib.h>

#include "trace/stream.h"
#include "util/grow.h"

#define NUMBER_MAX (UINT64_C(1) << 24)

/*
 * Limits the memory for all chunks together, because a few hundred bytes of zstd may unpack to 16 MiB: KEPT_TIMES the
 * size of the file, or KEPT_BYTES_MIN if that is more. A program that only makes functions and calls each once needs 21
 * times the size.
 */
#define KEPT_TIMES 128
#define KEPT_BYTES_MIN (UINT64_C(256) << 20)

int trace_keep(struct trace *trace, uint64_t bytes)
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

/* Makes room for that number, if the file can hold that many: each process and thread has its own chunk. */
static int grow_table(const struct trace *trace, void *table, uint32_t *count, uint64_t number)
{
	uint32_t wanted = (uint32_t)number + 1;

	if (number >= NUMBER_MAX || number > trace->size_bytes / sizeof(struct trace_chunk))
		return -EBADMSG;
	if (number >= *count && wanted < *count + *count / 2)
		wanted = *count + *count / 2;
	return grow_zeroed(table, count, wanted, sizeof(void *));
}

int trace_make_process(struct trace *trace, uint64_t number, struct trace_process **process)
{
	int error = grow_table(trace, &trace->processes, &trace->process_count, number);

	if (error)
		return error;
	*process = trace->processes[number];
	if (*process)
		return 0;
	*process = trace->processes[number] = calloc(1, sizeof(**process));
	if (!*process)
		return -ENOMEM;
	(*process)->number = (uint32_t)number;
	return 0;
}

int trace_make_thread(struct trace *trace, uint64_t number, uint64_t process, struct trace_thread **thread)
{
	int error = grow_table(trace, &trace->threads, &trace->thread_count, number);
	struct trace_process *owner;

	if (!error && !trace->threads[number])
		error = trace_make_process(trace, process, &owner);
	if (error)
		return error;
	*thread = trace->threads[number];
	if (*thread)
		return 0;
	*thread = trace->threads[number] = calloc(1, sizeof(**thread));
	if (!*thread)
		return -ENOMEM;
	(*thread)->number = (uint32_t)number;
	(*thread)->process = (uint32_t)process;
	return 0;
}

/* --- chunks --- */

static int load_place(struct trace *trace, struct trace_place *place, struct trace_payload *payload)
{
	struct trace_thread *thread;
	int error;

	if (place->type == TRACE_CHUNK_EVENTS)
		return trace_make_thread(trace, place->thread, place->process, &thread);
	error = trace_read_payload(trace, place, payload);
	if (error)
		return error;
	if (place->type == TRACE_CHUNK_META)
		return trace_load_meta(trace, payload);
	if (place->type == TRACE_CHUNK_DEFINITIONS)
		return trace_load_definitions(trace, payload);
	return trace_load_clocks(trace, payload);
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

static int compare_places(const void *a, const void *b)
{
	const struct trace_place *left = a, *right = b;

	return compare_u64(left->thread, right->thread) ?: compare_u64(left->offset, right->offset);
}

/* Copies the EVENTS chunks, grouped by thread. Chunks of a thread that cannot exist are left out. */
static int group_places(struct trace *trace)
{
	size_t count = 0, i;

	trace->event_places = malloc((trace->place_count + 1) * sizeof(*trace->event_places));
	if (!trace->event_places)
		return -ENOMEM;
	for (i = 0; i < trace->place_count; i++) {
		const struct trace_place *place = &trace->places[i];

		if (place->type == TRACE_CHUNK_EVENTS && place->thread < trace->thread_count &&
		    trace->threads[place->thread])
			trace->event_places[count++] = *place;
	}
	qsort(trace->event_places, count, sizeof(*trace->event_places), compare_places);
	for (i = 0; i < count; i++) {
		struct trace_thread *thread = trace->threads[trace->event_places[i].thread];

		if (!thread->place_count++)
			thread->places = &trace->event_places[i];
		thread->former += thread->reused && trace->event_places[i].last_ticks < thread->start_ticks;
	}
	return 0;
}

static int list_threads(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i])
			trace->processes[i]->thread_count = 0;
	for (uint32_t i = 0; i < trace->thread_count; i++) {
		struct trace_process *process;

		if (!trace->threads[i])
			continue;
		process = trace_process_of(trace, trace->threads[i]);
		if (grow_by_one(&process->threads, &process->threads_allocated, process->thread_count,
				sizeof(*process->threads)))
			return -ENOMEM;
		process->threads[process->thread_count++] = i;
	}
	return 0;
}

/* Finds the earliest event. Reads a chunk only if it begins before the earliest event found: mostly one, the first. */
static void find_span(struct trace *trace)
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
		if (!any || trace_ns(process, trace_first_event(&events)) < trace->start_ns)
			trace->start_ns = trace_ns(process, trace_first_event(&events));
		any = true;
	}
	if (trace->end_ns < trace->start_ns)
		trace->end_ns = trace->start_ns;
	trace_payload_done(&payload);
}

static int load_all(struct trace *trace)
{
	int error = load_places(trace);

	if (!error)
		error = trace_finish_definitions(trace);
	trace_set_lines(trace);
	if (!error)
		error = group_places(trace);
	return error ? error : list_threads(trace);
}

int trace_load(struct trace *trace)
{
	int error;

	trace_name_kinds(trace);
	error = load_all(trace);
	if (error)
		return error;
	find_span(trace);
	return trace_own_events_find(trace);
}

static void forget_thread(struct trace_thread *thread)
{
	thread->places = NULL;
	thread->place_count = thread->former = 0;
	thread->reused = false;
	if (thread->own)
		forget_thread(thread->own);
}

static void forget_places(struct trace *trace)
{
	for (uint32_t i = 0; i < trace->thread_count; i++) {
		if (trace->threads[i])
			forget_thread(trace->threads[i]);
	}
	free(trace->event_places);
	trace->event_places = NULL;
}

int trace_load_more(struct trace *trace)
{
	forget_places(trace);
	return load_all(trace);
}

static void process_free(struct trace_process *process)
{
	if (!process)
		return;
	json_decref(process->meta);
	json_decref(process->end);
	json_decref(process->changes);
	free(process->resident);
	free(process->codes.at);
	free(process->functions.at);
	free(process->types.at);
	free(process->marks.at);
	free(process->native_frames.at);
	free(process->lines.at);
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
