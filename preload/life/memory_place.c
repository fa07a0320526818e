/*
 * memory_place.c - see memory_place.h.
 */
#include "life/memory_place.h"

#include "base/config.h"
#include "base/filter.h"
#include "definitions/definitions.h"

bool memory_place_known;

bool memory_place_wanted(void)
{
	return config.memory_lines && config.events & EVENT_MEM && config.events & EVENT_CALL &&
	       !(config.events & EVENT_LINE);
}

/* Whether the function counts as part of its caller. */
static bool is_hidden(struct writer *writer, const void *code)
{
	uint64_t value;

	if (!filter_hides)
		return false;
	if (!ids_find_fast(&writer->ids, code, &value))
		value = definitions_reload(writer, code);
	return value & DEFINITION_HIDDEN;
}

/* The innermost function that calls show, from this frame outwards; NULL: there is none. */
static const char *find_shown(struct writer *writer, const char *frame)
{
	const void *code;

	for (; frame; frame = own_frames_back(frame)) {
		code = own_frames_shown_code(frame);
		if (code && !is_hidden(writer, code))
			return frame;
	}
	return NULL;
}

void memory_place_put(struct writer *writer, const char *frame)
{
	uintptr_t code, instruction;
	uint32_t head;

	frame = find_shown(writer, frame);
	if (!frame)
		return;
	code = own_frames_code(frame);
	instruction = own_frames_instruction(frame, own_frames_instruction_mask());
	if (writer->knows_stack && code == writer->place_code && instruction == writer->place_instruction)
		return;
	writer->place_code = code;
	writer->place_instruction = instruction;
	writer->knows_stack = 1;
	thread_self.placed = true;
	head = wire_head(WIRE_AT_INSTRUCTION,
			 wire_instruction(own_frames_offset((const void *)(code & ~(uintptr_t)7), instruction)));
	writer_store(writer, writer->head, wire_word(head, 0));
	writer->head++;
}
