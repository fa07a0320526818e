/* locals.c - see locals.h. */
#include "stack/locals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/objects.h"
#include "util/grow.h"

#define WORD sizeof(uint64_t)
#define LOCALS_MAX 256 /* of a frame */

/* Offsets from PyCodeObject.co_code (until 3.10), and from co_filename. */
enum { VARIABLES = 24, FREE_NAMES = 32, CELL_NAMES = 40, ALL_NAMES = -16 };

/* A tuple of names, whose variables follow each other. */
struct names {
	uint64_t tuple, count;
};

static bool read_tuple(const struct layout *layout, struct process *process, uint64_t at, struct names *names)
{
	char type[8];

	return process_word(process, at, &names->tuple) &&
	       object_type_name(layout, process, object_type(layout, process, names->tuple), type, sizeof(type)) &&
	       strcmp(type, "tuple") == 0 && process_word(process, names->tuple + layout->fields.size, &names->count) &&
	       names->count <= LOCALS_MAX;
}

/* From 3.11 on one tuple has all names; before, arguments and variables, those in cells, those of outer functions. */
static size_t read_names(const struct layout *layout, struct process *process, uint64_t code, struct names names[3])
{
	uint64_t first = code + layout->row->layout.code_bytes;
	size_t count;

	if (layout_has(layout, PYTHON_OWN_FRAMES))
		return read_tuple(layout, process, code + layout->fields.code_file + ALL_NAMES, &names[0]);
	count = read_tuple(layout, process, first + VARIABLES, &names[0]) &&
			read_tuple(layout, process, first + CELL_NAMES, &names[1]) &&
			read_tuple(layout, process, first + FREE_NAMES, &names[2])
		    ? 3
		    : 0;
	return count;
}

/* The object of a slot; 0: it is not set. The lowest bits are tags (from 3.14 on). */
static uint64_t object_in(struct process *process, uint64_t slot)
{
	uint64_t object;

	return process_word(process, slot, &object) ? object & ~UINT64_C(7) : 0;
}

/* What is in the cell, where the object is one. */
static uint64_t behind_cell(const struct layout *layout, struct process *process, uint64_t object)
{
	uint64_t type = object_type(layout, process, object);
	const struct process_range *range = process_range_of(process, type);
	char name[8];

	if (!range || !range->python || !object_type_name(layout, process, type, name, sizeof(name)) ||
	    strcmp(name, "cell") != 0)
		return object;
	return object_in(process, object + layout->object_shift + PYTHON_OBJECT_BYTES);
}

/* False: the variable is not set, or has changed. */
static bool read_local(const struct layout *layout, struct process *process, uint64_t name, uint64_t slot,
		       struct local *local)
{
	uint64_t in_slot = object_in(process, slot), object = in_slot ? behind_cell(layout, process, in_slot) : 0;

	if (!object || !object_text(layout, process, object_in(process, name), local->name, sizeof(local->name)) ||
	    !value_read(layout, process, object, &local->value))
		return false;
	remote_refresh(process->remote);
	return object_in(process, slot) == in_slot && behind_cell(layout, process, in_slot) == object;
}

static int read_all(const struct layout *layout, struct process *process, const struct names *names, uint64_t slots,
		    struct frame_locals *locals)
{
	uint64_t first =
	    names->tuple + layout->fields.size + (layout_has(layout, PYTHON_HASHED_TUPLES) ? 2 * WORD : WORD);
	struct local local;

	for (uint64_t i = 0; i < names->count; i++) {
		if (!read_local(layout, process, first + WORD * i, slots + WORD * i, &local))
			continue;
		if (grow_by_one(&locals->at, &locals->room, locals->count, sizeof(local)) < 0)
			return -ENOMEM;
		locals->at[locals->count++] = local;
	}
	return 0;
}

int locals_read(const struct layout *layout, struct process *process, const struct remote_frame *frame,
		struct frame_locals *locals)
{
	uint64_t slots = frame->frame + layout->row->layout.locals;
	struct names names[3];
	size_t count;
	int r = 0;

	remote_refresh(process->remote);
	count = read_names(layout, process, frame->code, names);
	for (size_t i = 0; i < count && r == 0; i++) {
		r = read_all(layout, process, &names[i], slots, locals);
		slots += WORD * names[i].count;
	}
	return r;
}

void locals_done(struct frame_locals *locals)
{
	free(locals->at);
	*locals = (struct frame_locals){0};
}
