/*
 * native_stack.c - walks native stacks. See native_stack.h.
 */
#include "trace/native_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void native_stack_begin(struct native_stack_walk *walk, const struct trace_process *process, uint32_t frame)
{
	*walk = (struct native_stack_walk){.process = process, .frame = frame};
}

/* The first symbol at the address that is valid for the frame, or NULL. */
static const struct trace_symbol *find_symbol(const struct trace_process *process, const struct wire_definition *frame)
{
	const struct trace_symbols *symbols = &process->symbols;
	size_t low = 0, high = symbols->count;

	/* The first symbol for a higher address or a later frame. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wire_definition *symbol = symbols->at[middle].definition;

		if (symbol->address < frame->address || (symbol->address == frame->address && symbol->id <= frame->id))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || symbols->at[low - 1].definition->address != frame->address)
		return NULL;
	high = low - 1;
	while (high > 0 && symbols->at[high - 1].definition->address == frame->address &&
	       symbols->at[high - 1].definition->id == symbols->at[low - 1].definition->id)
		high--;
	return &symbols->at[high];
}

static const struct wire_definition *find_module(const struct trace_process *process,
						 const struct wire_definition *frame)
{
	const struct wire_definition *found = NULL;

	/*
	 * The address of the call, which precedes its return address. A later module has replaced earlier ones at the
	 * same addresses.
	 */
	for (uint32_t i = 1; i < process->modules.count; i++) {
		const struct wire_definition *module = process->modules.at[i];

		if (module && process->module_since[i] <= frame->id &&
		    frame->address - 1 - module->address < (uint64_t)module->number << 12)
			found = module;
	}
	return found;
}

static void take_nameless(struct native_stack_walk *walk, const struct wire_definition *frame,
			  struct native_function *place)
{
	const struct wire_definition *module = find_module(walk->process, frame);

	*place =
	    (struct native_function){.module = module ? text_base_name(trace_string(module, 0)) : (struct text){"", 0}};
	if (module)
		snprintf(walk->name, sizeof(walk->name), "%.*s+0x%" PRIx64,
			 (int)(place->module.length < 40 ? place->module.length : 40), place->module.at,
			 frame->address - module->address);
	else
		snprintf(walk->name, sizeof(walk->name), "0x%" PRIx64, frame->address);
	place->function = text_of(walk->name);
}

static void go_out(struct native_stack_walk *walk, const struct wire_definition *frame)
{
	walk->symbol = NULL;
	walk->cut = frame->number == 0 && frame->flags & WIRE_CUT;
	/* Callers are defined first: a later id is damage, and could form a cycle. */
	walk->frame = frame->number < frame->id ? frame->number : 0;
}

/*
 * The interpreter loop. The recorder leaves it out where it knows its address range. It does not know parts that the
 * compiler placed elsewhere.
 */
static bool is_interpreter(struct text name)
{
	static const char *const names[] = {"_PyEval_EvalFrameDefault", "_TAIL_CALL_"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (name.length >= strlen(names[i]) && !memcmp(name.at, names[i], strlen(names[i])))
			return true;
	return false;
}

bool native_stack_next(struct native_stack_walk *walk, struct native_function *place)
{
	const struct wire_definition *frame = trace_name(&walk->process->native_frames, walk->frame), *symbol;

	if (!frame)
		return false;
	if (!walk->symbol)
		walk->symbol = find_symbol(walk->process, frame);
	if (!walk->symbol) {
		take_nameless(walk, frame, place);
		go_out(walk, frame);
		return true;
	}
	symbol = (walk->symbol++)->definition;
	*place = (struct native_function){.function = trace_string(symbol, 1),
					  .file = trace_string(symbol, 0),
					  .line = symbol->number,
					  .module = trace_string(symbol, 3)};
	if (!(symbol->flags & WIRE_INLINED) ||
	    walk->symbol == walk->process->symbols.at + walk->process->symbols.count ||
	    walk->symbol->definition->address != symbol->address || walk->symbol->definition->id != symbol->id)
		go_out(walk, frame);
	if (!is_interpreter(place->function))
		return true;
	walk->frame = 0;
	walk->cut = false;
	return false;
}

static void count_chunk(struct native_stack_counts *counts, const struct trace_events *events, uint32_t *frame)
{
	const uint64_t *extra = events->extras;

	for (uint32_t i = 0; i < events->count; i++) {
		uint32_t head = events->heads[i];

		native_stack_count(counts, head, extra, frame);
		*frame = wire_head_kind(head) == WIRE_NATIVE_STACK ? wire_head_arg(head) : 0;
		extra += wire_extra_words(head);
	}
}

void native_stack_count_process(struct native_stack_counts *counts, struct trace *trace,
				const struct trace_process *process)
{
	for (size_t i = 0; i < process->thread_count; i++) {
		struct trace_events events;
		struct trace_stream stream;
		uint32_t frame = 0;

		trace_stream_open(&stream, trace, trace->threads[process->threads[i]]);
		while (trace_stream_next(&stream, &events))
			count_chunk(counts, &events, &frame);
		trace_stream_close(&stream);
	}
}
