/*
 * stacks.c - the tree of call stacks, and functions across processes. See stacks.h.
 */
#include "stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "native.h"

/* --- the tree --- */

bool stacks_reserve(struct stacks *stacks)
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

	if (!stacks_reserve(stacks))
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
	free(functions->natives);
	functions->natives = NULL;
	functions->pool_count = 0;
	functions->has_native = trace_process_has_native(visit->process);
	functions->sampled = trace_process_sample_rate(visit->process) > 0;
	functions->numbers = calloc(visit_keys(visit), sizeof(*functions->numbers));
	return functions->numbers ? 0 : -ENOMEM;
}

/* For the label of that number, which is the next: others before it have no name where memory ran out. */
static bool reserve_function(struct stack_functions *functions, uint32_t number)
{
	uint32_t allocated = functions->allocated ? functions->allocated * 2 : 512;
	struct stack_function *grown;

	if (number != functions->count)
		return false;
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

	if (!reserve_function(functions, number))
		return false;
	name = label_display(visit_definition(visit, key), key & 1, key / 2);
	if (!name)
		return false;
	functions->at[functions->count++] = (struct stack_function){.name = name,
								    .file = functions->labels.at[number].file,
								    .line = functions->labels.at[number].line,
								    .begins = functions->labels.at[number].line,
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
	if (number >= functions->count && !name_function(functions, visit, key, number))
		return UINT32_MAX;
	functions->numbers[key] = number + 1;
	return number;
}

/* Functions of native stacks have no line of their own; the number keeps them apart from those of Python. */
#define NATIVE_LINE UINT32_MAX

static uint32_t find_native(struct stack_functions *functions, const struct native_place *place)
{
	struct text library = place->module.length ? place->module : text_of("?");
	struct label label = {.file = library, .name = place->function, .line = NATIVE_LINE};
	uint32_t number = labels_add(&functions->labels, &label);
	char *name;

	if (number == UINT32_MAX || number < functions->count)
		return number;
	name = strndup(place->function.at, place->function.length);
	if (!name || !reserve_function(functions, number)) {
		free(name);
		return UINT32_MAX;
	}
	functions->at[functions->count++] = (struct stack_function){.name = name,
								    .file = functions->labels.at[number].file,
								    .native = true,
								    .library = functions->labels.at[number].file,
								    .source = place->file};
	return number;
}

#define LINE_OF_SAMPLE (1u << 31) /* keeps a function at a line apart from one that begins there */

static uint32_t find_at_line(struct stack_functions *functions, uint32_t function, uint32_t line)
{
	const struct label *whole = &functions->labels.at[function];
	struct label label = {.file = whole->file, .name = whole->name, .line = line | LINE_OF_SAMPLE};
	uint32_t number = labels_add(&functions->labels, &label);
	struct stack_function at_line;

	if (number == UINT32_MAX || number < functions->count)
		return number;
	at_line = functions->at[function];
	at_line.name = strdup(at_line.name);
	at_line.line = line;
	if (!at_line.name || !reserve_function(functions, number)) {
		free(at_line.name);
		return UINT32_MAX;
	}
	functions->at[functions->count++] = at_line;
	return number;
}

uint32_t stack_functions_at_line(struct stack_functions *functions, struct visit *visit, uint32_t head)
{
	uint32_t number;

	if (!functions->sampled || wire_head_kind(head) != WIRE_LINE || !wire_head_arg(head) || !visit_top_runs(visit))
		return UINT32_MAX;
	number = stack_functions_find(functions, visit, visit->frames[visit->shown - 1].key);
	if (number != UINT32_MAX)
		number = find_at_line(functions, number, wire_head_arg(head));
	if (number == UINT32_MAX)
		visit_fail(visit, -ENOMEM);
	return number;
}

static bool add_to_pool(struct stack_functions *functions, uint32_t number)
{
	if (functions->pool_count == functions->pool_allocated) {
		size_t allocated = functions->pool_allocated ? functions->pool_allocated * 2 : 1024;
		uint32_t *grown = realloc(functions->pool, allocated * sizeof(*grown));

		if (!grown)
			return false;
		functions->pool = grown;
		functions->pool_allocated = allocated;
	}
	functions->pool[functions->pool_count++] = number;
	return true;
}

static bool look_at_native(struct stack_functions *functions, const struct trace_process *process, uint32_t frame)
{
	struct stack_natives *native = &functions->natives[frame];
	struct native_place place;
	struct native_walk walk;

	native_begin(&walk, process, frame);
	native->first = (uint32_t)functions->pool_count;
	/* Several where some were inlined; those that follow are the caller's. */
	while (walk.frame == frame && native_next(&walk, &place)) {
		uint32_t number = find_native(functions, &place);

		if (number == UINT32_MAX || !add_to_pool(functions, number))
			return false;
		native->count++;
	}
	for (uint32_t i = 0; i < native->count / 2; i++) {
		uint32_t *pool = functions->pool + native->first, swap = pool[i];

		pool[i] = pool[native->count - 1 - i];
		pool[native->count - 1 - i] = swap;
	}
	native->known = true;
	return true;
}

const struct stack_natives *stack_functions_native(struct stack_functions *functions,
						   const struct trace_process *process, uint32_t frame)
{
	if (!functions->natives)
		functions->natives = calloc((size_t)process->natives.count + 1, sizeof(*functions->natives));
	if (!functions->natives)
		return NULL;
	if (!functions->natives[frame].known && !look_at_native(functions, process, frame))
		return NULL;
	return &functions->natives[frame];
}

void stack_functions_done(struct stack_functions *functions)
{
	uint32_t i;

	for (i = 0; i < functions->count; i++)
		free(functions->at[i].name);
	free(functions->at);
	free(functions->numbers);
	free(functions->natives);
	free(functions->pool);
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
	struct progress *progress;
	struct live live; /* of the process */
	/* Of a sampled process: the stack of the last line, and when. The innermost one of a moment is a sample. */
	uint32_t line_stack;
	int64_t line_ns;
};

static int count_process(void *owner, struct visit *visit)
{
	struct counting *counting = owner;
	int error = stack_functions_process(counting->functions, visit);

	if (!error && counting->visitor->process)
		error = counting->visitor->process(counting->owner, visit);
	if (!error && counting->visitor->live)
		error =
		    live_find(&counting->live, visit, counting->visitor->live, counting->functions, counting->progress);
	return error;
}

static int count_process_end(void *owner, struct visit *visit)
{
	struct counting *counting = owner;

	(void)visit;
	live_forget(&counting->live);
	return 0;
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
	if (!number)
		return;
	if (!counting->functions->sampled)
		counting->stacks.at[number].calls += frame->kind != WIRE_FRAME;
	else if (counting->line_stack && counting->line_ns == visit->now_ns &&
		 counting->line_stack == counting->stacks.at[number].parent)
		counting->stacks.at[counting->line_stack].calls--;
	counting->line_stack = 0;
}

/* The top of the shown stack is a function at a line from now on: it has had its time at the one before. */
static void count_line(struct counting *counting, struct visit *visit, uint32_t function)
{
	struct visit_frame *frame = &visit->frames[visit->shown - 1];
	uint64_t own_ns = (uint64_t)(visit->now_ns - frame->start_ns) - frame->inner_ns;
	uint32_t before = (uint32_t)frame->user, now = stacks_push(&counting->stacks, visit, frame, function);

	if (!now)
		return;
	counting->stacks.at[before].own_ns += own_ns;
	counting->stacks.at[now].own_ns -= own_ns; /* what the end of the call adds is all of it */
	counting->stacks.at[now].calls++;
	counting->line_stack = now;
	counting->line_ns = visit->now_ns;
}

static void count_pop(void *owner, struct visit *visit, struct visit_frame *frame, unsigned how)
{
	struct counting *counting = owner;

	(void)how;
	if (frame->user)
		counting->stacks.at[frame->user].own_ns +=
		    (uint64_t)(visit->now_ns - frame->start_ns) - frame->inner_ns;
}

#define NATIVE_DEPTH_MAX 128 /* frames of a native stack that are shown: twice what is recorded */

uint32_t stacks_find_native(struct stacks *stacks, struct stack_functions *functions, struct visit *visit,
			    uint32_t python)
{
	const struct trace_process *process = visit->process;
	uint32_t number = python;
	uint32_t frames[NATIVE_DEPTH_MAX], count = 0, frame = visit->replay.native;
	const struct wire_definition *definition;

	visit->replay.native = 0;
	while (count < NATIVE_DEPTH_MAX && (definition = trace_name(&process->natives, frame))) {
		frames[count++] = frame;
		frame = definition->number < frame ? definition->number : 0;
	}
	while (count-- > 0) {
		const struct stack_natives *native = stack_functions_native(functions, process, frames[count]);

		for (uint32_t i = 0; native && i < native->count; i++) {
			number = stacks_find(stacks, number, functions->pool[native->first + i]);
			if (!number)
				break;
		}
		if (!native || (native->count && !number)) {
			visit_fail(visit, -ENOMEM);
			return 0;
		}
		if (!native->count) /* they are there already (native.h) */
			number = python;
	}
	return number;
}

static void count_other(void *owner, struct visit *visit, uint32_t head, const uint64_t *extra)
{
	struct counting *counting = owner;
	unsigned kind = wire_head_kind(head);
	uint32_t number = stack_functions_at_line(counting->functions, visit, head);

	if (number != UINT32_MAX)
		count_line(counting, visit, number);
	if (!counting->visitor->allocations || !wire_is_memory(kind) || kind == WIRE_FREE ||
	    !wire_memory_address(extra[0]))
		return;
	number = visit->shown ? (uint32_t)visit->frames[visit->shown - 1].user : 0;
	if (!counting->visitor->live) /* live.c counts, too */
		stack_functions_note(counting->functions, visit->replay.native);
	number = stacks_find_native(&counting->stacks, counting->functions, visit, number);
	if (!stacks_reserve(&counting->stacks)) {
		visit_fail(visit, -ENOMEM);
		return;
	}
	counting->stacks.at[number].allocations++;
	counting->stacks.at[number].bytes += wire_memory_size(head, extra[0]);
}

static int count_thread_end(void *owner, struct visit *visit)
{
	struct counting *counting = owner;
	int error = visit->error;

	if (!error && counting->visitor->live)
		error = live_put(&counting->live, visit->thread, counting->visitor->live, &counting->stacks);
	if (!error)
		error = counting->visitor->thread(counting->owner, visit, &counting->stacks);
	stacks_clear(&counting->stacks);
	counting->line_stack = 0;
	return error;
}

int stacks_visit(struct trace *trace, const struct select *select, struct progress *progress,
		 struct stack_functions *functions, const struct stacks_visitor *visitor, void *owner)
{
	const struct visitor counter = {.process = count_process,
					.process_end = count_process_end,
					.thread_end = count_thread_end,
					.push = count_push,
					.pop = count_pop,
					.other = count_other,
					.no_events = visitor->only_live};
	struct counting counting = {.functions = functions, .visitor = visitor, .owner = owner, .progress = progress};
	int error = visit_trace(trace, select, progress, &counter, &counting);

	if (counting.live.missing && !error)
		fprintf(stderr, "evprof: events are missing; a block that was freed by one of them counts as alive\n");
	if (functions->without_native && !error)
		fprintf(stderr,
			"evprof: %llu allocations have no native stack; they are shown at their Python function\n",
			(unsigned long long)functions->without_native);
	live_done(&counting.live);
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
