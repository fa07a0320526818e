/*
 * function_names.c - see function_names.h. export/csv_function.c writes the same names.
 */
#include "api/function_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay.h"
#include "trace/labels.h"

/* Ids without a definition that have a name of their own. A damaged trace of some bytes may skip a million of them. */
#define UNKNOWN_NAMED_MAX 65536u

static const char *unknown_name(struct function_names *functions, uint32_t key, char room[LABEL_QUALNAME_BYTES])
{
	const char *kind = key & 1 ? "C function" : "function";

	if (functions->unknown++ < UNKNOWN_NAMED_MAX)
		snprintf(room, LABEL_QUALNAME_BYTES, "<unknown %s %u>", kind, key / 2);
	else
		snprintf(room, LABEL_QUALNAME_BYTES, "<unknown %s>", kind);
	return room;
}

static int make_one(struct function_names *functions, const struct trace_process *process, uint32_t key,
		    struct function_name *made)
{
	const struct wire_definition *definition = trace_name(key & 1 ? &process->functions : &process->codes, key / 2);
	char room[LABEL_QUALNAME_BYTES];
	struct text name, mod;

	if (!definition && functions->shared[key & 1].name) {
		*made = functions->shared[key & 1];
		return 0;
	}
	made->line = key & 1 ? -1 : 0;
	if (!definition) {
		name = text_of(unknown_name(functions, key, room));
		mod = text_of(key & 1 ? "" : "?");
	} else if (key & 1) {
		name = label_qualname(definition, room);
		mod = trace_string(definition, 3);
	} else {
		name = trace_string(definition, 1);
		mod = trace_string(definition, 0);
		made->line = (int32_t)(definition->number & INT32_MAX);
	}
	made->name = (int32_t)texts_add(functions->names, name);
	made->mod = (int32_t)texts_add(functions->mods, mod);
	if (made->name < 0 || made->mod < 0)
		return -ENOMEM;
	if (!definition && functions->unknown > UNKNOWN_NAMED_MAX)
		functions->shared[key & 1] = *made;
	return 0;
}

static int make_marks(struct function_names *functions, const struct trace_process *process)
{
	uint32_t count = process->marks.count;
	int32_t *made = calloc((size_t)count + 1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	functions->marks[process->number] = made;
	for (uint32_t id = 0; id < count; id++) {
		const struct wire_definition *mark = trace_name(&process->marks, id);

		made[id] = mark ? (int32_t)texts_add(functions->names, trace_string(mark, 1)) : 0;
		if (made[id] < 0)
			return -ENOMEM;
	}
	return 0;
}

static int make_process(struct function_names *functions, const struct trace_process *process)
{
	uint32_t keys = replay_keys_of(process), key;
	struct function_name *made = calloc((size_t)keys + 1, sizeof(*made));
	int error = 0;

	if (!made)
		return -ENOMEM;
	functions->of[process->number] = made;
	made[0].line = -1;
	for (key = 0; key < keys && !error; key++)
		error = make_one(functions, process, key, &made[key + 1]);
	return error ? error : make_marks(functions, process);
}

int function_names_make(struct function_names *functions, const struct trace *trace)
{
	int error = 0;

	functions->names = texts_new();
	functions->mods = texts_new();
	functions->of = calloc((size_t)trace->process_count + 1, sizeof(struct function_name *));
	functions->marks = calloc((size_t)trace->process_count + 1, sizeof(int32_t *));
	functions->process_count = trace->process_count;
	if (!functions->names || !functions->mods || !functions->of || !functions->marks ||
	    texts_add(functions->names, text_of("")) || texts_add(functions->mods, text_of("")))
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->process_count && !error; i++)
		if (trace->processes[i])
			error = make_process(functions, trace->processes[i]);
	return error;
}

void function_names_done(struct function_names *functions)
{
	for (uint32_t i = 0; functions->of && i < functions->process_count; i++)
		free(functions->of[i]);
	for (uint32_t i = 0; functions->marks && i < functions->process_count; i++)
		free(functions->marks[i]);
	free(functions->of);
	free(functions->marks);
	texts_drop(functions->names);
	texts_drop(functions->mods);
	*functions = (struct function_names){0};
}
