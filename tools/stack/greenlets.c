/*
 * greenlets.c - see greenlets.h.
 *
 * Nothing says where greenlet has the frame: the only frame object near is searched. Until 1.1 it is in the object.
 * Later ones have their state behind a pointer, the last field of the object.
 */
#include "stack/greenlets.h"

#include <string.h>

#include "stack/objects.h"

#define WORD sizeof(uint64_t)
#define BASES_MAX 32		     /* of a type */
#define NAME "greenlet.greenlet"     /* of the type */
#define POINTER_OBJECT_BYTES 40	     /* of an object that has a pointer to its state */
#define STATE_WORDS 24		     /* of that state, in which the frame is */
#define OBJECT_BYTES_MAX (24 * WORD) /* of an object that has the state itself */

bool greenlet_is_name(const char *type_name)
{
	return strcmp(type_name, NAME) == 0;
}

/* The bytes of an object of greenlet's own type, from which the object's type derives. 0: it cannot be read. */
static uint64_t object_bytes(const struct layout *layout, struct process *process, uint64_t greenlet)
{
	uint64_t type = object_type(layout, process, greenlet), bytes = 0;
	char name[32];

	for (unsigned i = 0; i < BASES_MAX && type; i++) {
		if (!object_type_name(layout, process, type, name, sizeof(name)))
			return 0;
		if (greenlet_is_name(name))
			return process_word(process, type + PYTHON_TYPE_BASIC_SIZE, &bytes) ? bytes : 0;
		if (!process_word(process, type + PYTHON_TYPE_BASE, &type))
			return 0;
	}
	return 0;
}

/* The interpreter's frame of the first frame object to which a word leads; 0: none. */
static uint64_t search_frame(const struct layout *layout, struct process *process, uint64_t start, uint64_t end)
{
	uint64_t object, frame;

	for (uint64_t at = start; at + WORD <= end && process_word(process, at, &object); at += WORD) {
		if (object_type(layout, process, object) != layout->frame_type)
			continue;
		if (!layout_has(layout, PYTHON_OWN_FRAMES))
			return object;
		return process_word(process, object + PYTHON_FRAME_INNER, &frame) ? frame : 0;
	}
	return 0;
}

static uint64_t first_frame(const struct layout *layout, struct process *process, uint64_t greenlet)
{
	uint64_t bytes = object_bytes(layout, process, greenlet), state;

	if (bytes != POINTER_OBJECT_BYTES)
		return bytes <= OBJECT_BYTES_MAX
			   ? search_frame(layout, process, greenlet + PYTHON_OBJECT_BYTES, greenlet + bytes)
			   : 0;
	return process_word(process, greenlet + POINTER_OBJECT_BYTES - WORD, &state) && state % WORD == 0
		   ? search_frame(layout, process, state, state + STATE_WORDS * WORD)
		   : 0;
}

static bool read_frame(const struct layout *layout, struct process *process, struct remote_frame *frame)
{
	uint64_t at = frame->frame;

	if (at % WORD || !process_word(process, at + layout->fields.frame_code, &frame->code) ||
	    !process_word(process, at + layout->fields.frame_back, &frame->back))
		return false;
	frame->code &= ~UINT64_C(7); /* tag bits from 3.14 on */
	return object_type(layout, process, frame->code) == layout->fields.code_type &&
	       remote_instruction(process->remote, frame);
}

size_t greenlet_stack(const struct layout *layout, struct process *process, uint64_t greenlet,
		      struct remote_frame *frames, size_t max)
{
	uint64_t at = first_frame(layout, process, greenlet);
	size_t count = 0;

	for (; at && count < max; at = frames[count++].back) {
		frames[count] = (struct remote_frame){.frame = at};
		if (!read_frame(layout, process, &frames[count]))
			break;
	}
	return count;
}
