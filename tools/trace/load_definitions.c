/*
 * load_definitions.c - loads DEFINITIONS chunks: names by id, names of threads, and symbols by address. See load.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"
#include "util/grow.h"

/* Ids count from 1. An id this far above all others is damage, and must not cost memory. */
#define ID_JUMP_MAX (UINT32_C(1) << 20)
#define ID_BYTES 128 /* table space for each id up to the highest */

/* --- names of threads --- */

/* Any other name takes precedence over the kernel's. */
static int set_name(struct trace_thread *thread, const struct wire_definition *definition)
{
	bool is_kernels = definition->flags & WIRE_KERNEL_NAME;
	struct text name = trace_string(definition, 1);
	char *copy;

	if (is_kernels && thread->name && !thread->kernel_name)
		return 0;
	copy = strndup(name.at, name.length);
	if (!copy)
		return -ENOMEM;
	free(thread->name);
	thread->name = copy;
	thread->kernel_name = is_kernels;
	return 0;
}

static uint64_t latest_key(uint32_t process, uint32_t tid)
{
	return ((uint64_t)process + 1) << 32 | tid;
}

/*
 * The last thread of the process with that tid. The kernel reuses a tid after its thread's end, and the collector its
 * number.
 */
static struct trace_thread *latest_thread(const struct trace *trace, uint64_t key)
{
	uint64_t number = u64_map_value(&trace->latest, key);
	struct trace_thread *thread = number ? trace->threads[number - 1] : NULL;

	return thread && latest_key(thread->process, thread->tid) == key ? thread : NULL;
}

int trace_take_pending_name(struct trace *trace, struct trace_thread *thread)
{
	uint64_t key = latest_key(thread->process, thread->tid), pending;
	uint64_t *latest = u64_map_make(&trace->latest, key);

	if (!latest)
		return -ENOMEM;
	*latest = thread->number + 1;
	return u64_map_take(&trace->pending, key, &pending) ? set_name(thread, (const void *)(uintptr_t)pending) : 0;
}

static int load_thread_name(struct trace *trace, uint32_t process, const struct wire_definition *definition)
{
	uint64_t key = latest_key(process, definition->id), *pending;
	struct trace_thread *thread = latest_thread(trace, key);

	if (thread && (!thread->ended || definition->flags & WIRE_KERNEL_NAME))
		return set_name(thread, definition);
	if (definition->flags & WIRE_KERNEL_NAME)
		return 0;
	pending = u64_map_make(&trace->pending, key);
	if (!pending)
		return -ENOMEM;
	*pending = (uintptr_t)definition;
	return 0;
}

/* --- names by id, symbols by address --- */

static int set_definition(struct trace *trace, struct trace_names *names, const struct wire_definition *definition)
{
	uint32_t id = definition->id;

	if (id == 0 || id > WIRE_ARG_MAX || id > names->count + ID_JUMP_MAX)
		return -EBADMSG;
	if (id >= names->count && trace_keep(trace, (id + UINT64_C(1) - names->count) * ID_BYTES) < 0)
		return -EBADMSG;
	if (id >= names->allocated &&
	    grow_zeroed(&names->at, &names->allocated, id + id / 2 + 64, sizeof(*names->at)) < 0)
		return -ENOMEM;
	if (id >= names->count)
		names->count = id + 1;
	names->at[id] = definition;
	return 0;
}

/* Notes the first native frame that may be in the module. */
static int note_module(struct trace_process *process, uint32_t id)
{
	int error = grow_zeroed(&process->module_since, &process->module_since_count, process->modules.allocated,
				sizeof(*process->module_since));

	if (!error)
		process->module_since[id] = process->native_frames.count ? process->native_frames.count : 1;
	return error;
}

static int load_symbol(struct trace *trace, struct trace_process *process, const struct wire_definition *definition)
{
	struct trace_symbols *symbols = &process->symbols;

	if (trace_keep(trace, sizeof(*symbols->at)) < 0)
		return -EBADMSG;
	if (grow_by_one(&symbols->at, &symbols->allocated, symbols->count, sizeof(*symbols->at)))
		return -ENOMEM;
	symbols->at[symbols->count] = (struct trace_symbol){definition, symbols->count};
	symbols->count++;
	return 0;
}

static int load_definition(struct trace *trace, struct trace_process *process, const struct wire_definition *definition)
{
	struct trace_names *const names[] = {
	    [WIRE_DEFINE_CODE] = &process->codes,     [WIRE_DEFINE_C_FUNCTION] = &process->functions,
	    [WIRE_DEFINE_TYPE] = &process->types,     [WIRE_DEFINE_MARK] = &process->marks,
	    [WIRE_DEFINE_MODULE] = &process->modules, [WIRE_DEFINE_NATIVE_FRAME] = &process->native_frames,
	    [WIRE_DEFINE_LINES] = &process->lines};
	unsigned type = definition->type;
	int error = 0; /* a type of a later version is ignored */

	if (type == WIRE_DEFINE_CALIBRATION)
		process->calibration = trace_string(definition, 1);
	else if (type == WIRE_DEFINE_BUDGET)
		process->budget = trace_string(definition, 1);
	else if (type == WIRE_DEFINE_SYMBOL)
		error = load_symbol(trace, process, definition);
	else if (type == WIRE_DEFINE_THREAD_NAME)
		error = load_thread_name(trace, process->number, definition);
	else if (type < sizeof(names) / sizeof(*names) && names[type])
		error = set_definition(trace, names[type], definition);
	if (type == WIRE_DEFINE_MODULE && !error)
		error = note_module(process, definition->id);
	return error;
}

/* --- the chunk --- */

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

static int keep_definitions(struct trace *trace, struct trace_payload *payload)
{
	size_t bytes = payload->chunk.raw_bytes;
	void *grown;
	void *kept;

	if (trace_keep(trace, bytes) < 0)
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

int trace_load_definitions(struct trace *trace, struct trace_payload *payload)
{
	size_t room = payload->chunk.raw_bytes;
	struct trace_process *process;
	const uint8_t *at;
	int error = trace_make_process(trace, payload->chunk.process, &process);

	if (!error)
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

/* --- after all chunks --- */

static int compare_symbols(const void *a, const void *b)
{
	const struct trace_symbol *left = a, *right = b;

	return compare_u64(left->definition->address, right->definition->address)
		   ?: compare_u64(left->definition->id, right->definition->id)
		   ?: compare_u64(left->number, right->number);
}

/* A name that no later thread used belongs to a thread that had ended when its name was read. */
int trace_finish_definitions(struct trace *trace)
{
	const struct u64_map *pending = &trace->pending;
	int error = 0;

	for (size_t i = 0; pending->slots && i <= pending->mask && !error; i++) {
		const struct u64_map_slot *pair = &pending->slots[i];
		struct trace_thread *thread = pair->key ? latest_thread(trace, pair->key) : NULL;

		if (thread && !thread->name)
			error = set_name(thread, (const void *)(uintptr_t)pair->value);
	}
	for (uint32_t i = 0; i < trace->process_count; i++) {
		struct trace_symbols *symbols = trace->processes[i] ? &trace->processes[i]->symbols : NULL;

		if (symbols && symbols->count)
			qsort(symbols->at, symbols->count, sizeof(*symbols->at), compare_symbols);
	}
	return error;
}
