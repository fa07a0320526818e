/* file.c - see file.h. */
#include "cut/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/json_memory.h"
#include "file/columns.h"
#include "trace/chunk.h"

#define DEFINITIONS_BYTES (512u << 10) /* are written at once */

/* --- chunks --- */

static void set_error(struct cut_file *file, int error)
{
	if (!file->error)
		file->error = error;
}

static void write_chunk(struct cut_file *file, const struct trace_chunk *chunk, const void *raw, size_t bytes)
{
	if (!file->error)
		set_error(file, trace_writer_chunk(&file->writer, chunk, raw, bytes));
}

static void write_plain(struct cut_file *file, enum trace_chunk_type type, uint32_t process, const void *raw,
			size_t bytes)
{
	const struct trace_chunk chunk = {.type = (uint16_t)type, .process = process, .thread = TRACE_NOBODY};

	write_chunk(file, &chunk, raw, bytes);
}

/* Takes over the object. */
static void write_meta(struct cut_file *file, uint32_t process, json_t *object)
{
	char *text;

	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	if (!text || json_memory_ran_out)
		set_error(file, -ENOMEM);
	else
		write_plain(file, TRACE_CHUNK_META, process, text, strlen(text));
	free(text);
	json_decref(object);
}

static json_t *integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static void write_definitions(struct cut_file *file)
{
	if (file->ids.used)
		write_plain(file, TRACE_CHUNK_DEFINITIONS, file->process_number, file->ids.definitions, file->ids.used);
	file->ids.used = 0;
	set_error(file, file->ids.error);
}

/* --- the whole file --- */

char *file_kinds(const struct trace *trace)
{
	struct trace_payload payload = {0};
	void *unzstd = NULL;
	json_t *object = NULL;
	const char *type;
	char *kinds = NULL;

	if (trace->place_count && trace->places[0].type == TRACE_CHUNK_META &&
	    trace_fetch(trace, &trace->places[0], &payload, &unzstd) == 0)
		object = json_loadb((const char *)payload.raw, payload.chunk.raw_bytes, 0, NULL);
	type = json_string_value(json_object_get(object, "type"));
	if (payload.raw && type && strcmp(type, "kinds") == 0)
		kinds = strndup((const char *)payload.raw, payload.chunk.raw_bytes);
	json_decref(object);
	trace_payload_done(&payload);
	trace_unzstd_free(unzstd);
	return kinds;
}

void file_begin(struct cut_file *file, const struct trace *trace, const struct cut_stretch *stretch, const char *kinds,
		int fd)
{
	*file =
	    (struct cut_file){.trace = trace, .stretch = stretch, .writer = {.fd = fd}, .packer = trace_packer_new()};
	json_memory_begin();
	if (!file->packer) {
		set_error(file, -ENOMEM);
		return;
	}
	set_error(file,
		  trace_writer_open(&file->writer, file->packer, fd, trace->header.created_ns, trace->header.session));
	file->writer.fd = fd;
	if (kinds)
		write_plain(file, TRACE_CHUNK_META, TRACE_NOBODY, kinds, strlen(kinds));
	/* The first record relates the clocks of the trace to the time of day. */
	if (trace->clock_count)
		write_plain(file, TRACE_CHUNK_CLOCK, TRACE_NOBODY, &trace->clocks[0], sizeof(trace->clocks[0]));
}

void file_end(struct cut_file *file)
{
	if (!file->error)
		set_error(file, trace_writer_finish(&file->writer, file->events, file->lost, file->process_number));
}

void file_done(struct cut_file *file)
{
	trace_writer_close(&file->writer);
	trace_packer_free(file->packer);
	free(file->payload);
}

/* --- processes --- */

/* The records that make the line of the process, so that each tick has the same time as in the trace. */
static void write_clocks(struct cut_file *file)
{
	const struct trace_process *process = file->process;
	uint64_t clock = ((uint64_t)process->clock_kind + 1) << 32 | process->clock_shift;
	const struct trace_clock *first, *last;

	for (size_t i = 0; i < file->clock_count; i++)
		if (file->clocks[i] == clock)
			return;
	if (file->clock_count == sizeof(file->clocks) / sizeof(*file->clocks))
		return;
	file->clocks[file->clock_count++] = clock;
	trace_line_clocks(file->trace, process, &first, &last);
	if (first)
		write_plain(file, TRACE_CHUNK_CLOCK, TRACE_NOBODY, first, sizeof(*first));
	if (last && last != first)
		write_plain(file, TRACE_CHUNK_CLOCK, TRACE_NOBODY, last, sizeof(*last));
}

static void add_definition(struct cut_file *file, const struct wire_definition *definition)
{
	if (definition && definition->size_bytes <= WIRE_DEFINITION_MAX_BYTES + 8)
		ids_add(&file->ids, definition);
	if (file->ids.used > DEFINITIONS_BYTES)
		write_definitions(file);
}

/* Native frames, each module before the first frame that may be in it, and then the symbols. */
static void write_native(struct cut_file *file)
{
	const struct trace_process *process = file->process;
	uint32_t module = 0;

	for (uint32_t frame = 0; frame < process->native_frames.count; frame++) {
		for (; module < process->modules.count && process->module_since[module] <= frame; module++)
			add_definition(file, process->modules.at[module]);
		add_definition(file, process->native_frames.at[frame]);
	}
	for (size_t i = 0; process->native_frames.count && i < process->symbols.count; i++)
		add_definition(file, process->symbols.at[i].definition);
}

/* The trace has more than a last stretch. */
static void set_alive_only(const struct cut_file *file, json_t *process)
{
	json_object_set_new(process, "alive_only", json_true());
	json_object_del(process, "so_far");
	if (file->so_far)
		json_object_set_new(process, "so_far", integer(file->so_far));
	if (file->left_out)
		json_object_set_new(process, "left_out", integer(file->left_out));
	json_object_del(process, "keep_ns");
	json_object_del(process, "keep_bytes");
	json_object_del(process, "keep_alive");
	json_object_del(process, "since_ns");
}

/* Of a trace that keeps its last stretch, all before that time is gone. Marks and spans are complete stretches. */
static void set_since(const struct cut_file *file, json_t *process)
{
	const struct cut_edge *from = &file->stretch->from;

	if (from->thread)
		json_object_del(process, "since_ns");
	else if (from->ns != INT64_MIN && trace_process_is_kept(file->process))
		json_object_set_new(process, "since_ns", json_integer(from->ns));
}

/* What was recorded at the beginning of the stretch is what the process begins with. */
static void take_first_events(const struct cut_file *file, json_t *object)
{
	uint64_t from = cut_ticks(&file->stretch->from, file->process);
	const json_t *change;
	size_t i;

	json_array_foreach(file->process->changes, i, change)
	{
		if ((uint64_t)json_integer_value(json_object_get(change, "ticks")) <= from)
			json_object_set(object, "events", json_object_get(change, "events"));
	}
}

static void write_changes(struct cut_file *file)
{
	const struct cut_stretch *stretch = file->stretch;
	uint64_t from = cut_ticks(&stretch->from, file->process), to = cut_ticks(&stretch->to, file->process);
	const json_t *change;
	size_t i;

	json_array_foreach(file->process->changes, i, change)
	{
		uint64_t ticks = (uint64_t)json_integer_value(json_object_get(change, "ticks"));
		json_t *object = ticks > from && ticks < to ? json_deep_copy(change) : NULL;

		if (!object)
			continue;
		json_object_set_new(object, "process", integer(file->process_number));
		write_meta(file, file->process_number, object);
	}
}

static void write_process(struct cut_file *file)
{
	const struct trace_process *process = file->process;
	json_t *object = process->meta ? json_deep_copy(process->meta) : NULL, *title;

	file->process_written = true;
	write_clocks(file);
	if (process->meta) {
		title = json_incref(json_object_get(object, "title"));
		json_object_del(object, "title");
		json_object_set_new(object, "process", integer(file->process_number));
		if (file->began_before)
			json_object_set_new(object, "start", json_string("rejoin"));
		if (file->alive_only)
			set_alive_only(file, object);
		else
			set_since(file, object);
		take_first_events(file, object);
		write_meta(file, file->process_number, object);
		write_changes(file);
		if (title)
			write_meta(file, file->process_number,
				   json_pack("{ss so so}", "type", "title", "process", integer(file->process_number),
					     "title", title));
	}
	if (process->calibration.length)
		ids_define(&file->ids, WIRE_DEFINE_CALIBRATION, 1, 0, process->calibration);
	write_native(file);
}

void file_begin_process(struct cut_file *file, const struct trace_process *process, bool began_before)
{
	file->process = process;
	file->began_before = began_before;
	file->process_written = false;
	set_error(file, ids_begin(&file->ids, process));
}

/* The end of a process that goes on after the stretch. */
static json_t *detached(const struct cut_file *file)
{
	return json_pack("{ss so ss sn sn so s{}}", "type", "process_end", "process", integer(file->process_number),
			 "how", "detached", "status", "signal", "end_ticks",
			 integer(cut_ticks(&file->stretch->to, file->process)), "lost");
}

#define SAMPLES_OF_CHUNK 1000

/* Samples of the resident size in the stretch, from the one with that number on. Returns the next number. */
static uint32_t write_samples(struct cut_file *file, uint32_t at)
{
	const struct trace_process *process = file->process;
	uint64_t from = cut_ticks(&file->stretch->from, process), to = cut_ticks(&file->stretch->to, process), peak = 0;
	json_t *samples = json_array();

	for (; at < process->resident_count && json_array_size(samples) < SAMPLES_OF_CHUNK; at++) {
		const struct trace_resident *sample = &process->resident[at];
		uint64_t bytes = sample->anonymous + sample->file + sample->shared;

		if (sample->ticks < from || sample->ticks >= to)
			continue;
		peak = bytes > peak ? bytes : peak;
		json_array_append_new(samples, json_pack("[oooo]", integer(sample->ticks), integer(sample->anonymous),
							 integer(sample->file), integer(sample->shared)));
	}
	if (json_array_size(samples))
		write_meta(file, file->process_number,
			   json_pack("{ss so so sO}", "type", "resident", "process", integer(file->process_number),
				     "peak_bytes", integer(peak), "samples", samples));
	json_decref(samples);
	return at;
}

void file_end_process(struct cut_file *file)
{
	const struct trace_process *process = file->process;
	uint64_t to = cut_ticks(&file->stretch->to, process);
	json_t *object;

	for (uint32_t at = 0; file->process_written && at < process->resident_count;)
		at = write_samples(file, at);
	if (file->process_written && process->end && process->end_ticks < to) {
		object = json_deep_copy(process->end);
		json_object_set_new(object, "process", integer(file->process_number));
		file->lost += trace_sum(process->lost);
		write_meta(file, file->process_number, object);
	} else if (file->process_written && to < UINT64_MAX) {
		write_meta(file, file->process_number, detached(file));
	}
	file->process_number += file->process_written;
	ids_done(&file->ids);
}

/* --- threads --- */

void file_begin_thread(struct cut_file *file, const struct trace_thread *thread)
{
	json_t *object;

	if (!file->process_written)
		write_process(file);
	memset(file->counts, 0, sizeof(file->counts));
	file->gaps = 0;
	object = json_pack("{ss so so so so}", "type", "thread", "process", integer(file->process_number), "thread",
			   integer(file->thread_number), "tid", integer(thread->tid), "start_ticks",
			   integer(thread->start_ticks));
	if (thread->sampled)
		json_object_set_new(object, "sampled", json_true());
	write_meta(file, file->process_number, object);
	if (thread->name)
		ids_define(&file->ids, WIRE_DEFINE_THREAD_NAME, thread->tid, thread->kernel_name ? WIRE_KERNEL_NAME : 0,
			   text_of(thread->name));
	write_definitions(file);
}

static json_t *counts_object(const struct cut_file *file)
{
	json_t *object = json_object();

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		if (file->counts[kind])
			json_object_set_new(object, file->trace->kind_names[kind], integer(file->counts[kind]));
	return object;
}

void file_end_thread(struct cut_file *file)
{
	json_t *lost = json_object();

	if (file->gaps)
		json_object_set_new(lost, "unknown", integer(file->gaps));
	write_meta(file, file->process_number,
		   json_pack("{ss so so so}", "type", "thread_end", "thread", integer(file->thread_number), "events",
			     counts_object(file), "lost", lost));
	file->lost += file->gaps;
	file->thread_number++;
}

static void count_events(struct cut_file *file, const struct event_buffer *buffer)
{
	const uint64_t *extra = buffer->extras;

	for (uint32_t i = 0; i < buffer->count; i++) {
		unsigned kind = wire_head_kind(buffer->heads[i]);

		if (kind == WIRE_GAP)
			file->gaps += *extra;
		if (!wire_is_bookkeeping(kind)) {
			file->counts[kind]++;
			file->events++;
		}
		if (wire_extra_words(buffer->heads[i])) /* else it may be NULL */
			extra += wire_extra_words(buffer->heads[i]);
	}
}

void file_write(struct cut_file *file, struct event_buffer *buffer, uint64_t first_ticks)
{
	const struct trace_chunk chunk = {.type = TRACE_CHUNK_EVENTS,
					  .process = file->process_number,
					  .thread = file->thread_number,
					  .first_ticks = first_ticks,
					  .last_ticks = buffer->last,
					  .events = buffer->count,
					  .extras = buffer->extra_count};
	size_t bytes = ((size_t)buffer->count + buffer->extra_count) * 8;

	set_error(file, buffer->error);
	if (trace_reserve((void **)&file->payload, &file->payload_allocated, bytes) < 0)
		set_error(file, -ENOMEM);
	write_definitions(file);
	if (buffer->count && !file->error) {
		columns_pack(file->payload, buffer->heads, buffer->ticks, buffer->count, buffer->extras,
			     buffer->extra_count);
		write_chunk(file, &chunk, file->payload, bytes);
		count_events(file, buffer);
	}
	buffer->count = buffer->extra_count = 0;
}
