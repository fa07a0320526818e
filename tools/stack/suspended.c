/* suspended.c - see suspended.h. */
#include "stack/suspended.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack/gc_lists.h"
#include "stack/greenlets.h"
#include "stack/objects.h"
#include "util/grow.h"

#define WORD sizeof(uint64_t)
#define DEPTH_MAX 1024	  /* coroutines that await each other */
#define BASES_MAX 32	  /* of a type */
#define TASK_WORDS_MAX 64 /* of a Task, in which its coroutine and its name are searched */
#define COROUTINES_MAX (1u << 20)
#define GREENLET_FRAMES_MAX 16384
#define FRAMES_MAX (1u << 22) /* of all that is suspended */

enum kind { KIND_OTHER = 1, KIND_TASK, KIND_COROUTINE, KIND_GREENLET };

struct found {
	uint64_t object;
	uint64_t task; /* 0: no Task has it */
	bool awaited;
};

struct search {
	const struct layout *layout;
	struct process *process;
	struct u64_map types;	  /* enum kind of each type */
	struct u64_map by_object; /* 1 + index of a coroutine */
	struct found *coroutines;
	uint64_t *tasks;
	uint64_t *greenlets;
	size_t count, room, task_count, task_room, greenlet_count, greenlet_room;
	bool failed; /* no memory */
};

/* --- what there is --- */

/* By the name of the type or of one that it derives from. */
static enum kind kind_of(const struct search *search, uint64_t type)
{
	const struct layout *layout = search->layout;
	char name[32];

	if (type == layout->coroutine_type)
		return KIND_COROUTINE;
	for (unsigned i = 0; i < BASES_MAX && type; i++) {
		if (!object_type_name(layout, search->process, type, name, sizeof(name)))
			name[0] = 0;
		if (strcmp(name, "_asyncio.Task") == 0)
			return KIND_TASK;
		if (greenlet_is_name(name))
			return KIND_GREENLET;
		if (!process_word(search->process, type + layout->object_shift + PYTHON_TYPE_BASE, &type))
			break;
	}
	return KIND_OTHER;
}

/* Objects may be visited more than once. */
static void add_coroutine(struct search *search, uint64_t object)
{
	uint64_t *index = u64_map_make(&search->by_object, object);

	if (index && *index)
		return;
	if (!index || grow_by_one(&search->coroutines, &search->room, search->count, sizeof(struct found)) < 0) {
		search->failed = true;
		return;
	}
	search->coroutines[search->count++] = (struct found){.object = object};
	*index = search->count;
}

static void add_object(struct search *search, uint64_t **objects, size_t *count, size_t *room, uint64_t object)
{
	if (*count == COROUTINES_MAX)
		return;
	if (grow_by_one(objects, room, *count, sizeof(object)) < 0)
		search->failed = true;
	else
		(*objects)[(*count)++] = object;
}

static void visit(void *context, uint64_t object, uint64_t type)
{
	struct search *search = context;
	uint64_t *kind = type && type % WORD == 0 ? u64_map_make(&search->types, type) : NULL;

	if (!kind || search->failed)
		return;
	if (!*kind)
		*kind = kind_of(search, type);
	if (*kind == KIND_COROUTINE && search->count < COROUTINES_MAX)
		add_coroutine(search, object);
	else if (*kind == KIND_TASK)
		add_object(search, &search->tasks, &search->task_count, &search->task_room, object);
	else if (*kind == KIND_GREENLET)
		add_object(search, &search->greenlets, &search->greenlet_count, &search->greenlet_room, object);
}

static struct found *coroutine_at(const struct search *search, uint64_t object)
{
	uint64_t index = object ? u64_map_value(&search->by_object, object) : 0;

	return index ? &search->coroutines[index - 1] : NULL;
}

/* --- frames of generators --- */

static uint64_t frame_of(const struct search *search, uint64_t generator)
{
	uint64_t at = generator + search->layout->object_shift + search->layout->row->layout.generator_frame;

	if (!layout_has(search->layout, PYTHON_OWN_FRAMES) && !process_word(search->process, at, &at))
		return 0;
	return at;
}

static bool is_generator(const struct search *search, uint64_t object)
{
	uint64_t type = object_type(search->layout, search->process, object);

	return type && (type == search->layout->coroutine_type || type == search->layout->generator_type ||
			type == search->layout->async_generator_type);
}

/* The end of a frame's stack. False: the frame runs; from 3.11 on it may also be an old one. */
static bool read_stack_end(const struct search *search, uint64_t frame, uint64_t *end)
{
	const struct python_layout *known = &search->layout->row->layout;
	uint64_t base = frame + known->locals;
	int32_t depth;

	if (layout_has(search->layout, PYTHON_STACK_ADDRESS))
		return process_word(search->process, frame + known->frame_stack, end) && *end;
	if ((known->frame_values && !process_word(search->process, frame + known->frame_values, &base)) ||
	    !remote_read(search->process->remote, frame + known->frame_stack, &depth, sizeof(depth)) || depth < 0 ||
	    depth > 1 << 20)
		return false;
	*end = base + WORD * (uint64_t)depth;
	return true;
}

/* genobject.c: from 3.11 on the state is a byte before the frame. Before, only a frame that runs has no end. */
static bool is_suspended(const struct search *search, uint64_t generator)
{
	bool from_0 = layout_has(search->layout, PYTHON_STATES_FROM_0);
	int8_t state, created = from_0 ? 0 : layout_has(search->layout, PYTHON_STATES_FROM_MINUS_3) ? -3 : -2;
	uint64_t frame = frame_of(search, generator), word;

	if (!frame || !process_word(search->process, frame + search->layout->fields.frame_code, &word) || !word)
		return false;
	if (!layout_has(search->layout, PYTHON_OWN_FRAMES))
		return read_stack_end(search, frame, &word);
	return remote_read(search->process->remote, frame - 5, &state, 1) && state >= created &&
	       state <= (from_0 ? 3 : -1);
}

/* What the frame awaits: the last word of its stack, or the one before. */
static uint64_t top_of_stack(const struct search *search, uint64_t frame)
{
	uint64_t end, object;

	if (!read_stack_end(search, frame, &end))
		return 0;
	end -= layout_has(search->layout, PYTHON_AWAITED_BELOW) ? 2 * WORD : WORD;
	return process_word(search->process, end, &object) ? object & ~UINT64_C(7) : 0;
}

/* Iterators that stand between a generator and the one that it awaits have that in their first field. */
static uint64_t behind_iterator(const struct search *search, uint64_t object)
{
	static const char *const names[] = {"coroutine_wrapper", "async_generator_asend", "async_generator_athrow"};
	uint64_t type = object_type(search->layout, search->process, object), inner;
	char name[32];

	if (!type || !object_type_name(search->layout, search->process, type, name, sizeof(name)))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0 &&
		    process_word(search->process, object + PYTHON_OBJECT_BYTES + search->layout->object_shift, &inner))
			return inner;
	return 0;
}

/* The generator that a suspended one awaits; 0: something else. */
static uint64_t awaited_by(const struct search *search, uint64_t generator)
{
	uint64_t object = top_of_stack(search, frame_of(search, generator));

	if (!object)
		return 0;
	if (!is_generator(search, object))
		object = behind_iterator(search, object);
	return object && object != generator && is_generator(search, object) && is_suspended(search, object) ? object
													     : 0;
}

/* --- tasks --- */

/* From 3.12 on a name that nobody has set is a number. */
static bool read_task_name(const struct search *search, uint64_t object, char *name, size_t bytes)
{
	uint64_t type = object_type(search->layout, search->process, object);
	uint32_t digit;

	if (type != search->layout->int_type)
		return object_text(search->layout, search->process, object, name, bytes);
	if (!remote_read(search->process->remote, object + search->layout->object_shift + PYTHON_INT_DIGIT, &digit,
			 sizeof(digit)))
		return false;
	snprintf(name, bytes, "Task-%u", digit);
	return true;
}

/* A Task has its coroutine somewhere, and its name behind it. name: may be NULL. */
static struct found *read_task(const struct search *search, uint64_t task, char *name, size_t bytes)
{
	struct found *coroutine = NULL;
	uint64_t word;

	for (unsigned i = 2; i < TASK_WORDS_MAX && process_word(search->process, task + i * WORD, &word); i++) {
		if (!coroutine)
			coroutine = coroutine_at(search, word);
		else if (!name || read_task_name(search, word, name, bytes))
			break;
	}
	return coroutine;
}

static void mark_coroutines(struct search *search)
{
	for (size_t i = 0; i < search->task_count; i++) {
		struct found *coroutine = read_task(search, search->tasks[i], NULL, 0);

		if (coroutine)
			coroutine->task = search->tasks[i];
	}
	for (size_t i = 0; search->coroutines && i < search->count; i++) {
		uint64_t object = search->coroutines[i].object;
		unsigned depth = 0;

		if (!is_suspended(search, object))
			continue;
		while ((object = awaited_by(search, object)) && !coroutine_at(search, object) && depth++ < DEPTH_MAX)
			;
		if (coroutine_at(search, object))
			coroutine_at(search, object)->awaited = true;
	}
}

/* --- stacks --- */

static bool read_frame(const struct search *search, struct codes *codes, uint64_t generator, struct stack_frame *frame)
{
	const struct layout *layout = search->layout;
	struct remote_frame *at = &frame->at;

	at->frame = frame_of(search, generator);
	if (!at->frame || !is_suspended(search, generator) ||
	    !process_word(search->process, at->frame + layout->fields.frame_code, &at->code))
		return false;
	at->code &= ~UINT64_C(7);
	if (!remote_instruction(search->process->remote, at) ||
	    !codes_find(codes, search->process, at->code, &frame->code))
		return false;
	frame->line = codes_line(codes, layout, frame->code, at->instruction);
	return true;
}

/* Reads a coroutine and what it awaits, the outermost first. Returns the number of frames. */
static size_t read_chain(const struct search *search, struct codes *codes, uint64_t object,
			 struct stack_frame frames[DEPTH_MAX])
{
	size_t count = 0;

	for (; object && count < DEPTH_MAX && read_frame(search, codes, object, &frames[count]); count++)
		object = awaited_by(search, object);
	return count;
}

/* Takes the frames. 0 or -ENOMEM. */
static int keep(struct suspended *suspended, const struct suspended_task *task)
{
	if (!task->frames || grow_by_one(&suspended->at, &suspended->room, suspended->count, sizeof(*task)) < 0) {
		free(task->frames);
		return -ENOMEM;
	}
	suspended->at[suspended->count++] = *task;
	suspended->frames += task->count;
	return 0;
}

static int add_task(const struct search *search, struct codes *codes, const struct found *found,
		    struct suspended *suspended)
{
	static struct stack_frame frames[DEPTH_MAX], again[DEPTH_MAX];
	struct suspended_task task = {.name = ""};

	remote_refresh(search->process->remote);
	if (found->task)
		read_task(search, found->task, task.name, sizeof(task.name));
	task.count = read_chain(search, codes, found->object, frames);
	remote_refresh(search->process->remote);
	/* It runs, or has run meanwhile. */
	if (!task.count || read_chain(search, codes, found->object, again) != task.count ||
	    memcmp(frames, again, task.count * sizeof(*frames)) != 0)
		return 0;
	task.frames = malloc(task.count * sizeof(*frames));
	for (size_t i = 0; task.frames && i < task.count; i++)
		task.frames[i] = frames[task.count - 1 - i];
	return keep(suspended, &task);
}

/* --- greenlets --- */

/* Some are visited more than once. */
static bool is_repeated(const struct search *search, size_t number)
{
	return number && search->greenlets[number] == search->greenlets[number - 1];
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Reads its stack twice. 0: it runs, or has run meanwhile. */
static size_t read_greenlet(const struct search *search, uint64_t greenlet, struct remote_frame *frames)
{
	static struct remote_frame again[GREENLET_FRAMES_MAX];
	size_t count;

	remote_refresh(search->process->remote);
	count = greenlet_stack(search->layout, search->process, greenlet, frames, GREENLET_FRAMES_MAX);
	remote_refresh(search->process->remote);
	return greenlet_stack(search->layout, search->process, greenlet, again, GREENLET_FRAMES_MAX) == count &&
		       memcmp(frames, again, count * sizeof(*frames)) == 0
		   ? count
		   : 0;
}

static int add_greenlet(const struct search *search, struct codes *codes, uint64_t greenlet,
			struct suspended *suspended)
{
	static struct remote_frame frames[GREENLET_FRAMES_MAX];
	struct suspended_task task = {.count = read_greenlet(search, greenlet, frames)};
	uint64_t type = object_type(search->layout, search->process, greenlet);

	if (!task.count || !object_type_name(search->layout, search->process, type, task.name, sizeof(task.name)))
		return 0;
	task.frames = calloc(task.count, sizeof(*task.frames));
	for (size_t i = 0; task.frames && i < task.count; i++) {
		struct stack_frame *frame = &task.frames[i];

		frame->at = frames[i];
		if (!codes_find(codes, search->process, frame->at.code, &frame->code)) {
			free(task.frames);
			return 0;
		}
		frame->line = codes_line(codes, search->layout, frame->code, frame->at.instruction);
	}
	return keep(suspended, &task);
}

static int add_greenlets(const struct search *search, struct codes *codes, struct suspended *suspended)
{
	int r = 0;

	qsort(search->greenlets, search->greenlet_count, sizeof(*search->greenlets), compare_addresses);
	for (size_t i = 0; i < search->greenlet_count && r == 0 && suspended->frames < FRAMES_MAX; i++)
		if (!is_repeated(search, i))
			r = add_greenlet(search, codes, search->greenlets[i], suspended);
	return r;
}

int suspended_read(const struct layout *layout, struct process *process, struct codes *codes,
		   struct suspended *suspended)
{
	struct search search = {.layout = layout, .process = process};
	int r = 0;

	if (!layout->row->layout.frame_stack || layout->free_threaded)
		return 0;
	suspended->cut = !layout->fields.frame_instruction; /* no thread has shown where a frame has it */
	if (suspended->cut)
		return 0;
	suspended->cut = !gc_lists_walk(layout, process, visit, &search);
	remote_refresh(process->remote);
	mark_coroutines(&search);
	for (size_t i = 0; i < search.count && r == 0 && !search.failed && suspended->frames < FRAMES_MAX; i++)
		if (!search.coroutines[i].awaited && is_suspended(&search, search.coroutines[i].object))
			r = add_task(&search, codes, &search.coroutines[i], suspended);
	suspended->tasks = suspended->count;
	if (r == 0 && search.greenlets)
		r = add_greenlets(&search, codes, suspended);
	suspended->cut |= suspended->frames >= FRAMES_MAX;
	r = search.failed ? -ENOMEM : r;
	u64_map_done(&search.types);
	u64_map_done(&search.by_object);
	free(search.coroutines);
	free(search.tasks);
	free(search.greenlets);
	return r;
}

void suspended_done(struct suspended *suspended)
{
	for (size_t i = 0; i < suspended->count; i++)
		free(suspended->at[i].frames);
	free(suspended->at);
	*suspended = (struct suspended){0};
}
