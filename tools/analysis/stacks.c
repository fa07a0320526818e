/*
 * stacks.c - the tree of call stacks, and functions across processes. See stacks.h.
 */
#include "analysis/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/native_stack.h"
#include "util/grow.h"

/* --- the tree --- */

bool stacks_reserve(struct stacks *stacks)
{
	if (stacks->count > UINT32_MAX / 2 ||
	    grow_by_one(&stacks->at, &stacks->allocated, stacks->count, sizeof(*stacks->at)))
		return false;
	if (!stacks->count)
		stacks->at[stacks->count++] = (struct stack_node){0};
	return true;
}

uint32_t stacks_find(struct stacks *stacks, uint32_t parent, uint32_t function)
{
	uint64_t *number;
	uint32_t latest;

	if (!stacks_reserve(stacks))
		return 0;
	/* Most calls have the same function as their caller's call before. */
	latest = stacks->at[parent].latest;
	if (latest && stacks->at[latest].function == function)
		return latest;
	number = u64_map_make(&stacks->children, ((uint64_t)parent + 1) << 32 | function);
	if (!number)
		return 0;
	if (!*number) {
		*number = stacks->count;
		stacks->at[stacks->count++] = (struct stack_node){.parent = parent, .function = function};
	}
	return stacks->at[parent].latest = (uint32_t)*number;
}

const uint32_t *stacks_path(struct stacks *stacks, uint32_t number, uint32_t *length)
{
	uint32_t depth = 0, at;

	for (at = number; at; at = stacks->at[at].parent)
		depth++;
	if (depth >= stacks->path_allocated) {
		uint32_t *grown = realloc(stacks->path, 2 * ((size_t)depth + 1) * sizeof(*grown));

		if (!grown)
			return NULL;
		stacks->path = grown;
		stacks->path_allocated = 2 * (depth + 1);
	}
	*length = depth;
	for (at = number; at; at = stacks->at[at].parent)
		stacks->path[--depth] = at;
	return stacks->path;
}

uint64_t stacks_own_ns(const struct stacks *stacks)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < stacks->count; i++)
		sum += stacks->at[i].own_ns;
	return sum;
}

void stacks_clear(struct stacks *stacks)
{
	u64_map_done(&stacks->children);
	stacks->children = (struct u64_map){0};
	stacks->count = 0;
	stacks->allocated = 0;
	free(stacks->at);
	stacks->at = NULL;
}

void stacks_done(struct stacks *stacks)
{
	stacks_clear(stacks);
	free(stacks->path);
	memset(stacks, 0, sizeof(*stacks));
}

/* --- functions --- */

int stack_functions_process(struct stack_functions *functions, const struct call_walk *walk)
{
	free(functions->numbers);
	free(functions->native_frames);
	functions->native_frames = NULL;
	functions->pool_count = 0;
	u64_map_done(&functions->at_lines);
	functions->has_native_stacks = trace_process_has_native_stacks(walk->process);
	functions->sampled = trace_process_sample_rate(walk->process) > 0;
	functions->numbers = calloc(walk_keys(walk), sizeof(*functions->numbers));
	return functions->numbers ? 0 : -ENOMEM;
}

int stack_functions_add_keys(struct stack_functions *functions, uint32_t known, uint32_t keys)
{
	return grow_zeroed(&functions->numbers, &known, keys, sizeof(*functions->numbers));
}

/* Adds a function with that number; takes the name. UINT32_MAX without a name or memory. */
static uint32_t add_function(struct stack_functions *functions, uint32_t number, char *name,
			     struct stack_function function)
{
	/* Earlier numbers may have no name if memory ran out. */
	if (!name || number != functions->count ||
	    grow_by_one(&functions->at, &functions->allocated, functions->count, sizeof(*functions->at))) {
		free(name);
		return UINT32_MAX;
	}
	function.name = name;
	functions->at[functions->count++] = function;
	return number;
}

uint32_t stack_functions_find(struct stack_functions *functions, const struct call_walk *walk, uint32_t key)
{
	const struct label *label;
	uint32_t number;

	if (functions->numbers[key])
		return functions->numbers[key] - 1;
	number = labels_find(&functions->labels, walk->process, key / 2, key & 1);
	if (number == UINT32_MAX)
		return UINT32_MAX;
	label = &functions->labels.at[number];
	if (number >= functions->count)
		number =
		    add_function(functions, number, label_display(walk_definition(walk, key), key & 1, key / 2),
				 (struct stack_function){
				     .file = label->file, .line = label->line, .begins = label->line, .is_c = key & 1});
	if (number == UINT32_MAX)
		return UINT32_MAX;
	functions->numbers[key] = number + 1;
	return number;
}

/* Functions of native frames have this line in their label, which keeps them distinct from Python functions. */
#define NATIVE_LINE UINT32_MAX

static uint32_t find_native_function(struct stack_functions *functions, const struct native_function *place)
{
	struct text library = place->module.length ? place->module : text_of("?");
	struct label label = {.file = library, .name = place->function, .line = NATIVE_LINE};
	uint32_t number = labels_add(&functions->labels, &label);
	struct stack_function added = {.is_c = true, .source = place->file};

	if (number == UINT32_MAX || number < functions->count)
		return number;
	added.file = added.library = functions->labels.at[number].file;
	return add_function(functions, number, strndup(place->function.at, place->function.length), added);
}

#define LINE_OF_SAMPLE (1u << 31) /* keeps a function at a line distinct from one that begins there */

uint32_t stack_functions_find_line(struct stack_functions *functions, uint32_t function, uint32_t line)
{
	const struct label *whole = &functions->labels.at[function];
	struct label label = {.file = whole->file, .name = whole->name, .line = line | LINE_OF_SAMPLE};
	uint32_t number = labels_add(&functions->labels, &label);
	struct stack_function at_line;

	if (number == UINT32_MAX || number < functions->count)
		return number;
	at_line = functions->at[function];
	at_line.line = line;
	at_line.whole = function + 1;
	return add_function(functions, number, strdup(at_line.name), at_line);
}

uint32_t stack_functions_find_name(struct stack_functions *functions, const char *kind, const char *name)
{
	struct label label = {.file = text_of(kind), .name = text_of(name), .line = NATIVE_LINE};
	uint32_t number = labels_add(&functions->labels, &label);

	if (number == UINT32_MAX || number < functions->count)
		return number;
	return add_function(functions, number, strdup(name), (struct stack_function){.is_c = true});
}

uint32_t stack_functions_find_place(struct stack_functions *functions, const struct label *label, uint32_t begins)
{
	uint32_t number = labels_add(&functions->labels, label);

	if (number == UINT32_MAX || number < functions->count)
		return number;
	label = &functions->labels.at[number];
	return add_function(functions, number, strndup(label->name.at, label->name.length),
			    (struct stack_function){.file = label->file,
						    .line = label->line,
						    .begins = begins,
						    .is_c = text_same(label->file, text_of("~"))});
}

uint32_t stack_functions_at_line(struct stack_functions *functions, struct call_walk *walk, uint32_t head)
{
	uint32_t number;

	if (!functions->sampled || wire_head_kind(head) != WIRE_LINE || !wire_head_arg(head) || !walk_top_runs(walk))
		return UINT32_MAX;
	number = stack_functions_find(functions, walk, walk->frames[walk->shown - 1].key);
	if (number != UINT32_MAX)
		number = stack_functions_find_line(functions, number, wire_head_arg(head));
	if (number == UINT32_MAX)
		walk_fail(walk, -ENOMEM);
	return number;
}

uint32_t stack_functions_of(struct stack_functions *functions, const struct call_walk *walk,
			    const struct walk_frame *frame)
{
	uint32_t number, line;
	uint64_t *known;

	if (!frame->instruction)
		return stack_functions_find(functions, walk, frame->key);
	known = u64_map_make(&functions->at_lines, (uint64_t)frame->instruction << 32 | frame->key);
	if (!known)
		return UINT32_MAX;
	if (*known)
		return (uint32_t)*known - 1;
	number = stack_functions_find(functions, walk, frame->key);
	line = walk_line(walk, frame);
	if (line && number != UINT32_MAX)
		number = stack_functions_find_line(functions, number, line);
	*known = (uint64_t)number + 1;
	return number;
}

static bool add_to_pool(struct stack_functions *functions, uint32_t number)
{
	if (grow_by_one(&functions->pool, &functions->pool_allocated, functions->pool_count, sizeof(*functions->pool)))
		return false;
	functions->pool[functions->pool_count++] = number;
	return true;
}

static bool list_native_functions(struct stack_functions *functions, const struct trace_process *process,
				  uint32_t frame)
{
	struct native_functions *list = &functions->native_frames[frame];
	struct native_function place;
	struct native_stack_walk walk;

	native_stack_begin(&walk, process, frame);
	list->first = (uint32_t)functions->pool_count;
	/* One frame yields several functions where calls were inlined. The frames that follow are the caller's. */
	while (walk.frame == frame && native_stack_next(&walk, &place)) {
		uint32_t number = find_native_function(functions, &place);

		if (number == UINT32_MAX || !add_to_pool(functions, number))
			return false;
		list->count++;
	}
	for (uint32_t i = 0; i < list->count / 2; i++) {
		uint32_t *pool = functions->pool + list->first, swap = pool[i];

		pool[i] = pool[list->count - 1 - i];
		pool[list->count - 1 - i] = swap;
	}
	list->known = true;
	return true;
}

const struct native_functions *stack_functions_of_frame(struct stack_functions *functions,
							const struct trace_process *process, uint32_t frame)
{
	if (!functions->native_frames)
		functions->native_frames =
		    calloc((size_t)process->native_frames.count + 1, sizeof(*functions->native_frames));
	if (!functions->native_frames)
		return NULL;
	if (!functions->native_frames[frame].known && !list_native_functions(functions, process, frame))
		return NULL;
	return &functions->native_frames[frame];
}

void stack_functions_done(struct stack_functions *functions)
{
	for (uint32_t i = 0; i < functions->count; i++)
		free(functions->at[i].name);
	free(functions->at);
	free(functions->numbers);
	free(functions->native_frames);
	free(functions->pool);
	u64_map_done(&functions->at_lines);
	labels_done(&functions->labels);
	memset(functions, 0, sizeof(*functions));
}

uint32_t stacks_push(struct stacks *stacks, struct call_walk *walk, struct walk_frame *frame, uint32_t function)
{
	uint32_t parent = frame > walk->frames ? (uint32_t)frame[-1].user : 0;
	uint32_t number = stacks_find(stacks, parent, function);

	if (!number)
		walk_fail(walk, -ENOMEM);
	frame->user = number;
	return number;
}

/* --- labels of processes and threads --- */

char *stack_process_name(const struct trace_process *process)
{
	const char *program = trace_process_name(process);
	char *name;

	if (asprintf(&name, "%s (%lld)", program[0] ? program : "python", (long long)process->pid) < 0)
		return NULL;
	return name;
}

char *stack_thread_name(const struct trace_thread *thread)
{
	char *name;

	if (asprintf(&name, "%s (%u)", thread->name && thread->name[0] ? thread->name : "thread", thread->tid) < 0)
		return NULL;
	return name;
}
