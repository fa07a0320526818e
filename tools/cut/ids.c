/* ids.c - see ids.h. */
#include "cut/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct trace_names *names_of(const struct trace_process *process, enum ids_kind kind)
{
	switch (kind) {
	case IDS_CODE:
		return &process->codes;
	case IDS_FUNCTION:
		return &process->functions;
	case IDS_TYPE:
		return &process->types;
	default:
		return &process->marks;
	}
}

int ids_begin(struct ids *ids, const struct trace_process *process)
{
	*ids = (struct ids){.process = process};
	for (enum ids_kind kind = 0; kind < IDS_KINDS; kind++) {
		ids->ids[kind] = calloc((size_t)names_of(process, kind)->count + 1, sizeof(*ids->ids[kind]));
		if (!ids->ids[kind])
			ids->error = -ENOMEM;
	}
	return ids->error;
}

void ids_done(struct ids *ids)
{
	for (enum ids_kind kind = 0; kind < IDS_KINDS; kind++)
		free(ids->ids[kind]);
	free(ids->definitions);
	*ids = (struct ids){0};
}

/* Room for a record; NULL: no memory. */
static uint8_t *room_for(struct ids *ids, size_t bytes)
{
	if (ids->used + bytes > ids->allocated) {
		size_t wanted = 2 * (ids->used + bytes) + 4096;
		uint8_t *grown = realloc(ids->definitions, wanted);

		if (!grown) {
			ids->error = -ENOMEM;
			return NULL;
		}
		ids->definitions = grown;
		ids->allocated = wanted;
	}
	ids->used += bytes;
	return ids->definitions + ids->used - bytes;
}

void ids_add(struct ids *ids, const struct wire_definition *definition)
{
	uint8_t *room = room_for(ids, definition->size_bytes);

	if (room)
		memcpy(room, definition, definition->size_bytes);
}

void ids_define(struct ids *ids, unsigned type, uint32_t id, unsigned flags, struct text name)
{
	struct wire_definition definition = {.type = (uint16_t)type, .flags = (uint16_t)flags, .id = id};
	uint8_t *room;

	definition.length[1] = (uint32_t)(name.length < WIRE_STRING_MAX_BYTES ? name.length : WIRE_STRING_MAX_BYTES);
	definition.size_bytes = wire_definition_bytes(&definition);
	room = room_for(ids, definition.size_bytes);
	if (!room)
		return;
	memset(room, 0, definition.size_bytes);
	memcpy(room, &definition, sizeof(definition));
	memcpy(room + sizeof(definition), name.at, definition.length[1]);
}

/* A record larger than any that a recorder writes is damage, and its name not known. */
static const struct wire_definition *valid(const struct wire_definition *definition)
{
	return definition && definition->size_bytes <= WIRE_DEFINITION_MAX_BYTES + 8 ? definition : NULL;
}

static struct wire_definition *add_copy(struct ids *ids, const struct wire_definition *definition)
{
	struct wire_definition *copy = (struct wire_definition *)(void *)room_for(ids, definition->size_bytes);

	if (copy)
		memcpy(copy, definition, definition->size_bytes);
	return copy;
}

static uint32_t define(struct ids *ids, enum ids_kind kind, uint32_t id)
{
	const struct wire_definition *definition = valid(trace_name(names_of(ids->process, kind), id)), *lines = NULL;
	struct wire_definition *copy = definition ? add_copy(ids, definition) : NULL;

	if (!copy)
		return 0;
	copy->id = ids->ids[kind][id] = ++ids->counts[kind];
	if (kind == IDS_CODE)
		lines = valid(trace_name(&ids->process->lines, id));
	copy = lines ? add_copy(ids, lines) : NULL;
	if (copy)
		copy->id = ids->ids[kind][id];
	return ids->ids[kind][id];
}

uint32_t ids_of(struct ids *ids, enum ids_kind kind, uint32_t id)
{
	if (id >= names_of(ids->process, kind)->count)
		return 0;
	return ids->ids[kind][id] ? ids->ids[kind][id] : define(ids, kind, id);
}

static uint32_t mark_of(struct ids *ids, uint64_t id)
{
	return id <= UINT32_MAX ? ids_of(ids, IDS_MARK, (uint32_t)id) : 0;
}

/* Replaces the first extra word. */
static void set_first(uint32_t head, const uint64_t **extra, uint64_t words[WIRE_EXTRA_MAX], uint64_t word)
{
	memcpy(words, *extra, wire_extra_words(head) * sizeof(*words));
	words[0] = word;
	*extra = words;
}

/* Two ids stand in each word after the first. */
static void rewrite_thinned(struct ids *ids, uint32_t head, const uint64_t **extra, uint64_t words[WIRE_EXTRA_MAX])
{
	memset(words, 0, wire_extra_words(head) * sizeof(*words));
	words[0] = **extra;
	for (unsigned i = 0; i < WIRE_THIN_MOST; i++) {
		uint32_t thinned = wire_thinned(head, *extra, i);
		uint32_t code = thinned & WIRE_ARG_MAX, id = code ? ids_of(ids, IDS_CODE, code) : 0;

		if (id || thinned == WIRE_THIN_EXCEPTIONS)
			words[1 + i / 2] |= (uint64_t)(id | (thinned & WIRE_THIN_C_CALLS)) << i % 2 * 32;
	}
	*extra = words;
}

/* Events whose ids are in extra words, or in the value. */
static uint32_t rewrite_rare(struct ids *ids, uint32_t head, const uint64_t **extra, uint64_t words[WIRE_EXTRA_MAX])
{
	unsigned kind = wire_head_kind(head), count = wire_extra_words(head);

	if (kind == WIRE_STACK_CHANGE) {
		for (unsigned i = 0; i < count; i++)
			words[i] = wire_place(ids_of(ids, IDS_CODE, wire_place_code((*extra)[i])),
					      wire_place_instruction((*extra)[i]));
		*extra = words;
		return head;
	}
	if (kind == WIRE_TASK) {
		uint32_t name = wire_task_name(**extra) ? mark_of(ids, wire_task_name(**extra)) : 0;

		set_first(head, extra, words,
			  wire_task_word(wire_task_address(**extra), name <= WIRE_TASK_NAME_MAX ? name : 0));
		return wire_head(WIRE_TASK, ids_of(ids, IDS_CODE, wire_head_arg(head)));
	}
	if (kind == WIRE_MARK && !count) {
		uint32_t id = mark_of(ids, wire_number(head, *extra));

		return wire_extended(WIRE_MARK, 0, id <= WIRE_VALUE_MAX ? id : 0);
	}
	if (count && (kind == WIRE_MARK || kind == WIRE_SPAN_BEGIN || kind == WIRE_COUNTER || kind == WIRE_ARGUMENT))
		set_first(head, extra, words, mark_of(ids, **extra));
	else if (wire_is_thin(kind) && count)
		rewrite_thinned(ids, head, extra, words);
	return head;
}

uint32_t ids_of_event(struct ids *ids, uint32_t head, const uint64_t **extra, uint64_t words[WIRE_EXTRA_MAX])
{
	unsigned kind = wire_head_plain_kind(head);

	switch (kind) {
	case WIRE_CALL ... WIRE_UNWIND:
	case WIRE_FRAME:
	case WIRE_OPEN:
		return wire_head(kind, ids_of(ids, IDS_CODE, wire_head_arg(head)));
	case WIRE_C_CALL ... WIRE_C_EXCEPTION:
		return wire_head(kind, ids_of(ids, IDS_FUNCTION, wire_head_arg(head)));
	case WIRE_EXCEPTION:
		return wire_head(kind, ids_of(ids, IDS_TYPE, wire_head_arg(head)));
	case WIRE_TASK:
	case WIRE_EXTENDED:
		return rewrite_rare(ids, head, extra, words);
	default:
		return head;
	}
}
