/*
 * stacks.c - the tree of call stacks, and functions across processes. See stacks.h.
 */
#include "stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the tree --- */

static bool reserve_node(struct stacks *stacks)
{
	uint32_t allocated = stacks->allocated ? stacks->allocated * 2 : 1024;
	struct stack_node *grown;

	if (stacks->count < stacks->allocated)
		return true;
	if (stacks->allocated > UINT32_MAX / 2)
		return false;
	grown = realloc(stacks->at, allocated * sizeof(*grown));
	if (!grown)
		return false;
	stacks->at = grown;
	stacks->allocated = allocated;
	if (!stacks->count)
		stacks->at[stacks->count++] = (struct stack_node){0};
	return true;
}

uint32_t stacks_find(struct stacks *stacks, uint32_t parent, uint32_t function)
{
	uint64_t *number;
	uint32_t latest;

	if (!reserve_node(stacks))
		return 0;
	/* Most calls are the same as the one before of their caller. */
	latest = stacks->at[parent].latest;
	if (latest && stacks->at[latest].function == function)
		return latest;
	number = pairs_make(&stacks->children, ((uint64_t)parent + 1) << 32 | function);
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
	uint32_t i;

	for (i = 0; i < stacks->count; i++)
		sum += stacks->at[i].own_ns;
	return sum;
}

void stacks_clear(struct stacks *stacks)
{
	pairs_done(&stacks->children);
	stacks->children = (struct pairs){0};
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

int stack_functions_process(struct stack_functions *functions, const struct visit *visit)
{
	free(functions->numbers);
	functions->numbers = calloc(visit_keys(visit), sizeof(*functions->numbers));
	return functions->numbers ? 0 : -ENOMEM;
}

static bool reserve_function(struct stack_functions *functions)
{
	uint32_t allocated = functions->allocated ? functions->allocated * 2 : 512;
	struct stack_function *grown;

	if (functions->count < functions->allocated)
		return true;
	grown = realloc(functions->at, allocated * sizeof(*grown));
	if (!grown)
		return false;
	functions->at = grown;
	functions->allocated = allocated;
	return true;
}

static bool name_function(struct stack_functions *functions, const struct visit *visit, uint32_t key, uint32_t number)
{
	char *name;

	if (!reserve_function(functions))
		return false;
	name = label_display(visit_definition(visit, key), key & 1, key / 2);
	if (!name)
		return false;
	functions->at[functions->count++] = (struct stack_function){.name = name,
								    .file = functions->labels.at[number].file,
								    .line = functions->labels.at[number].line,
								    .native = key & 1};
	return true;
}

uint32_t stack_functions_find(struct stack_functions *functions, const struct visit *visit, uint32_t key)
{
	uint32_t number;

	if (functions->numbers[key])
		return functions->numbers[key] - 1;
	number = labels_find(&functions->labels, visit->process, key / 2, key & 1);
	if (number == UINT32_MAX)
		return UINT32_MAX;
	/* A label without its name is left over from when memory ran out: all is given up then. */
	if (number == functions->count && !name_function(functions, visit, key, number))
		return UINT32_MAX;
	functions->numbers[key] = number + 1;
	return number;
}

void stack_functions_done(struct stack_functions *functions)
{
	uint32_t i;

	for (i = 0; i < functions->count; i++)
		free(functions->at[i].name);
	free(functions->at);
	free(functions->numbers);
	labels_done(&functions->labels);
	memset(functions, 0, sizeof(*functions));
}

/* --- counting --- */

uint32_t stacks_push(struct stacks *stacks, struct visit *visit, struct visit_frame *frame, uint32_t function)
{
	uint32_t parent = frame > visit->frames ? (uint32_t)frame[-1].user : 0;
	uint32_t number = stacks_find(stacks, parent, function);

	if (!number)
		visit_fail(visit, -ENOMEM);
	frame->user = number;
	return number;
}

struct counting {
	struct stacks stacks;
	struct stack_functions *functions;
	const struct stacks_visitor *visitor;
	void *owner;
};

static int count_process(void *owner, struct visit *visit)
{
	struct counting *counting = owner;
	int error = stack_functions_process(counting->functions, visit);

	if (!error && counting->visitor->process)
		error = counting->visitor->process(counting->owner, visit);
	return error;
}

static void count_push(void *owner, struct visit *visit, struct visit_frame *frame)
{
	struct counting *counting = owner;
	uint32_t function = stack_functions_find(counting->functions, visit, frame->key);
	uint32_t number = 0;

	if (function == UINT32_MAX)
		visit_fail(visit, -ENOMEM);
	else
		number = stacks_push(&counting->stacks, visit, frame, function);
	if (number)
		counting->stacks.at[number].calls += frame->kind != WIRE_FRAME;
}

static void count_pop(void *owner, struct visit *visit, struct visit_frame *frame, unsigned how)
{
	struct counting *counting = owner;

	(void)how;
	if (frame->user)
		counting->stacks.at[frame->user].own_ns +=
		    (uint64_t)(visit->now_ns - frame->start_ns) - frame->inner_ns;
}

static int count_thread_end(void *owner, struct visit *visit)
{
	struct counting *counting = owner;
	int error = visit->error;

	if (!error)
		error = counting->visitor->thread(counting->owner, visit, &counting->stacks);
	stacks_clear(&counting->stacks);
	return error;
}

int stacks_visit(struct trace *trace, const struct select *select, struct progress *progress,
		 struct stack_functions *functions, const struct stacks_visitor *visitor, void *owner)
{
	static const struct visitor counter = {
	    .process = count_process, .thread_end = count_thread_end, .push = count_push, .pop = count_pop};
	struct counting counting = {.functions = functions, .visitor = visitor, .owner = owner};
	int error = visit_trace(trace, select, progress, &counter, &counting);

	stacks_done(&counting.stacks);
	return error;
}

struct text stack_base_name(struct text file)
{
	const char *slash = file.length ? memrchr(file.at, '/', file.length) : NULL;

	if (!slash || slash + 1 == file.at + file.length)
		return file;
	return (struct text){slash + 1, (size_t)(file.at + file.length - slash - 1)};
}

/* --- names of places --- */

char *stack_process_name(const struct trace_process *process)
{
	const char *program = trace_process_text(process, "program");
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
