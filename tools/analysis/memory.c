/*
 * memory.c - the memory of processes by site. See memory.h.
 */
#include "analysis/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/call_walk.h"
#include "replay/program_end.h"
#include "replay/window.h"
#include "util/grow.h"

const char *const memory_by_names[MEMORY_BYS + 1] = {
    [MEMORY_BY_SITE] = "",	     [MEMORY_BY_LINE] = "line",	    [MEMORY_BY_FUNCTION] = "function",
    [MEMORY_BY_MODULE] = "module",   [MEMORY_BY_THREAD] = "thread", [MEMORY_BY_TASK] = "task",
    [MEMORY_BY_LIBRARY] = "library",
};

const char *const memory_kind_names[MEMORY_KINDS] = {"program", "imports", "caches", "interned", "interpreter"};

/* --- kinds --- */

static bool is_native(const struct memory *memory, uint32_t function)
{
	return memory->functions.at[function].library.length;
}

/* What lies below these functions is of that kind. function NULL: all functions of the file. */
static const struct {
	const char *file; /* how its path ends, or begins if it begins with '<' */
	const char *function;
	enum memory_kind kind;
} known_kinds[] = {
    {"<frozen importlib", NULL, MEMORY_OF_IMPORTS},
    {"<frozen zipimport", NULL, MEMORY_OF_IMPORTS},
    {"<frozen getpath", NULL, MEMORY_OF_INTERPRETER},
    {"/importlib/_bootstrap.py", NULL, MEMORY_OF_IMPORTS},
    {"/importlib/_bootstrap_external.py", NULL, MEMORY_OF_IMPORTS},
    {"/re.py", "_compile", MEMORY_OF_CACHES},
    {"/re/__init__.py", "_compile", MEMORY_OF_CACHES},
    {"/linecache.py", NULL, MEMORY_OF_CACHES},
    {"/tokenize.py", "_compile", MEMORY_OF_CACHES},
    {"/fnmatch.py", "_compile_pattern", MEMORY_OF_CACHES},
    {"/encodings/__init__.py", "search_function", MEMORY_OF_CACHES},
    {"<frozen codecs", NULL, MEMORY_OF_CACHES},
    {"/_strptime.py", NULL, MEMORY_OF_CACHES},
    {"/typing.py", "inner", MEMORY_OF_CACHES},
    {"~", "sys.intern", MEMORY_INTERNED},
};

static bool is_in(struct text file, const char *known)
{
	size_t length = strlen(known);

	if (file.length < length)
		return false;
	return memcmp(*known == '<' ? file.at : file.at + file.length - length, known, length) == 0;
}

static enum memory_kind kind_of(const struct stack_function *function)
{
	for (size_t i = 0; i < sizeof(known_kinds) / sizeof(known_kinds[0]); i++)
		if (is_in(function->file, known_kinds[i].file) &&
		    (!known_kinds[i].function || strcmp(function->name, known_kinds[i].function) == 0))
			return known_kinds[i].kind;
	return MEMORY_OF_PROGRAM;
}

enum memory_kind memory_kind_of_stack(const struct stacks *stacks, const struct stack_functions *functions,
				      uint32_t number, const uint8_t *kinds)
{
	const struct stack_node *node = &stacks->at[number];
	const struct stack_function *function;
	bool outermost = node->parent && !stacks->at[node->parent].parent;
	enum memory_kind kind = node->parent ? (enum memory_kind)kinds[node->parent] : MEMORY_OF_INTERPRETER;

	if (!node->parent)
		return kind;
	function = &functions->at[node->function];
	if (outermost && !function->library.length)
		kind = MEMORY_OF_PROGRAM;
	if (kind == MEMORY_OF_PROGRAM && !function->library.length)
		kind = kind_of(function);
	return kind;
}

/* The kind of each stack. Parents precede their children. The caller frees it; NULL: no memory. */
static uint8_t *find_kinds(const struct memory *memory)
{
	const struct stacks *stacks = &memory->live.stacks;
	uint8_t *kinds = calloc((size_t)stacks->count + 1, 1);

	for (uint32_t i = 1; kinds && i < stacks->count; i++)
		kinds[i] = (uint8_t)memory_kind_of_stack(stacks, &memory->functions, i, kinds);
	return kinds;
}

/* --- sites --- */

/* What stands for something that is not a function, as a number of one. UINT32_MAX: no memory. */
static uint32_t find_name(struct memory *memory, const char *kind, const char *name)
{
	return stack_functions_find_name(&memory->functions, kind, name);
}

static uint32_t find_text(struct memory *memory, const char *kind, struct text text)
{
	char *name = strndup(text.at, text.length);
	uint32_t number = name ? find_name(memory, kind, name) : UINT32_MAX;

	free(name);
	return number;
}

static uint32_t find_thread(struct memory *memory, const struct trace *trace, uint32_t thread)
{
	char *name = stack_thread_name(trace->threads[thread]);
	uint32_t number = name ? find_name(memory, "~thread", name) : UINT32_MAX;

	free(name);
	return number;
}

/* The path of a function on a stack whose caller has that path. 0: no memory. */
static uint32_t path_of_function(struct memory *memory, uint32_t above, uint32_t number, bool below_thread)
{
	const struct stack_function *function = &memory->functions.at[number];
	enum memory_by by = memory->options->by;

	if (is_native(memory, number)) {
		if (by == MEMORY_BY_LIBRARY)
			number = find_text(memory, "~library", function->library);
		else if (by != MEMORY_BY_SITE)
			return above;
	} else if (by == MEMORY_BY_LIBRARY || (function->is_c && !below_thread)) {
		return above;
	} else if (by == MEMORY_BY_MODULE) {
		number = find_text(memory, "~module", function->is_c ? text_of(function->name) : function->file);
	} else if (by == MEMORY_BY_FUNCTION && function->whole) {
		number = function->whole - 1;
	}
	if (number == UINT32_MAX)
		return 0;
	return stacks_find(&memory->paths, by == MEMORY_BY_SITE && is_native(memory, number) ? above : 0, number);
}

/* The path of all stacks of a thread that have no other. */
static uint32_t path_of_thread(struct memory *memory, const struct trace *trace, uint32_t thread)
{
	enum memory_by by = memory->options->by;
	uint32_t number = by == MEMORY_BY_THREAD    ? find_thread(memory, trace, thread)
			  : by == MEMORY_BY_TASK    ? find_name(memory, "~none", "(no task)")
			  : by == MEMORY_BY_LIBRARY ? find_name(memory, "~none", "(no native stack)")
						    : find_name(memory, "~none", "(no Python function)");

	return number == UINT32_MAX ? 0 : stacks_find(&memory->paths, 0, number);
}

static bool is_task(const struct memory *memory, uint32_t function)
{
	return text_same(memory->functions.labels.at[function].file, text_of(LIVE_TASK));
}

/* The path of each stack's site. Returns 0 or -ENOMEM. */
static int find_paths(struct memory *memory, const struct trace *trace, uint32_t *paths)
{
	const struct stacks *stacks = &memory->live.stacks;
	enum memory_by by = memory->options->by;

	for (uint32_t i = 1; i < stacks->count; i++) {
		const struct stack_node *node = &stacks->at[i];
		bool below_thread = node->parent && !stacks->at[node->parent].parent;

		if (!node->parent)
			paths[i] = path_of_thread(memory, trace, node->function);
		else if (by == MEMORY_BY_TASK)
			paths[i] = is_task(memory, node->function) ? stacks_find(&memory->paths, 0, node->function)
								   : paths[node->parent];
		else if (by == MEMORY_BY_THREAD)
			paths[i] = paths[node->parent];
		else
			paths[i] = path_of_function(memory, paths[node->parent], node->function, below_thread);
		if (!paths[i])
			return -ENOMEM;
	}
	return 0;
}

/* The site of a path; NULL: no memory. */
static struct memory_site *site_of(struct memory *memory, uint32_t path)
{
	uint32_t *number;

	if (grow_for(&memory->path_sites, &memory->path_site_count, path, sizeof(*memory->path_sites)) < 0)
		return NULL;
	number = &memory->path_sites[path];
	if (!*number) {
		const struct stack_node *node = &memory->paths.at[path];
		const struct stack_function *function;
		struct memory_site *site;
		uint32_t own = path;

		if (grow_by_one(&memory->sites, &memory->sites_allocated, memory->site_count, sizeof(*site)) < 0)
			return NULL;
		while (memory->paths.at[own].parent)
			own = memory->paths.at[own].parent;
		function = &memory->functions.at[memory->paths.at[own].function];
		site = &memory->sites[memory->site_count++];
		*site = (struct memory_site){.name = text_of(function->name),
					     .file = function->file,
					     .line = function->whole ? function->line : 0,
					     .begins = function->begins,
					     .native = node->parent ? path : 0};
		*number = memory->site_count;
	}
	return &memory->sites[*number - 1];
}

static int add_sites(struct memory *memory, const uint32_t *paths, const uint8_t *kinds)
{
	unsigned shown = memory->options->kinds ? memory->options->kinds : (1u << MEMORY_KINDS) - 1;

	for (uint32_t i = 1; i < memory->live.stacks.count; i++) {
		struct live_weights weights = live_weigh(&memory->live, i);
		struct memory_site *site;

		if (!weights.made.blocks)
			continue;
		live_weights_add(&memory->all, &weights);
		live_weights_add(&memory->kinds[kinds[i]], &weights);
		if (!(shown >> kinds[i] & 1))
			continue;
		site = site_of(memory, paths[i]);
		if (!site)
			return -ENOMEM;
		live_weights_add(&site->weights, &weights);
	}
	return 0;
}

static int make_sites(struct memory *memory, const struct trace *trace)
{
	uint32_t *paths = calloc((size_t)memory->live.stacks.count + 1, sizeof(*paths));
	uint8_t *kinds = find_kinds(memory);
	int error = paths && kinds && stacks_reserve(&memory->paths) ? 0 : -ENOMEM;

	if (!error)
		error = find_paths(memory, trace, paths);
	if (!error)
		error = add_sites(memory, paths, kinds);
	free(paths);
	free(kinds);
	return error;
}

const uint32_t *memory_site_native(struct memory *memory, const struct memory_site *site, uint32_t *count)
{
	const uint32_t *path = stacks_path(&memory->paths, site->native, count);

	if (!path || !*count)
		return path;
	for (uint32_t i = 0; i < *count; i++)
		memory->paths.path[i] = memory->paths.at[path[i]].function;
	--*count; /* the first is the Python function */
	return path + 1;
}

/* --- processes --- */

/* Forgets the process. */
static void end_process(struct memory *memory)
{
	live_done(&memory->live);
	stacks_done(&memory->paths);
	free(memory->path_sites);
	free(memory->sites);
	memory->path_sites = NULL;
	memory->sites = NULL;
	memory->path_site_count = memory->site_count = 0;
	memory->sites_allocated = 0;
	memset(memory->kinds, 0, sizeof(memory->kinds));
	memory->all = (struct live_weights){0};
}

static void find_resident(struct memory *memory, const struct trace *trace)
{
	const struct memory_options *options = memory->options;

	if (memory->live.alive_only || !trace_process_records(memory->process, "malloc") ||
	    trace_process_misses_malloc(memory->process) || options->filter->from_given || options->filter->to_given ||
	    options->mark_begin)
		return;
	memory->resident_peak = resident_at_peak(trace, memory->process, &memory->live);
	memory->resident_end = resident_at_end(trace, memory->process, &memory->live);
}

static int read_process(struct memory *memory, struct call_walk *walk, const uint8_t *marks)
{
	enum memory_by by = memory->options->by;
	int error = stack_functions_process(&memory->functions, walk);

	memory->live.lines = by == MEMORY_BY_SITE || by == MEMORY_BY_LINE;
	memory->live.tasks = by == MEMORY_BY_TASK;
	memory->live.marks = marks;
	memory->live.resident_ticks = resident_peak_ticks(walk->process);
	memory->resident_peak = memory->resident_end = (struct resident){0};
	if (!error)
		error = live_find_both(&memory->live, walk, &memory->functions, memory->progress, NULL, NULL,
				       &memory->end_ns);
	if (error || !(memory->live.any || trace_process_records_memory(walk->process)))
		return error;
	find_resident(memory, walk->trace);
	error = make_sites(memory, walk->trace);
	return error ? error : memory->visit(memory->owner, memory);
}

static int find_marks(struct memory *memory, const struct trace_process *process, uint8_t **marks)
{
	*marks = NULL;
	if (!memory->options->mark_begin)
		return 0;
	*marks = window_marks_named(process, memory->options->mark_begin, memory->options->mark_end);
	for (uint32_t id = 1; *marks && id < process->marks.count; id++)
		memory->marks |= (*marks)[id];
	return *marks ? 0 : -ENOMEM;
}

static int memory_process(void *owner, struct call_walk *walk)
{
	struct memory *memory = owner;
	uint8_t *marks;
	int error;

	memory->process = walk->process;
	error = find_marks(memory, walk->process, &marks);
	if (!error)
		error = read_process(memory, walk, marks);
	end_process(memory);
	free(marks);
	return error;
}

int memory_visit(struct memory *memory, struct trace *trace, const struct memory_options *options,
		 struct progress *progress, int (*visit)(void *owner, struct memory *memory), void *owner)
{
	static const struct call_visitor visitor = {.process = memory_process, .no_events = true};

	*memory = (struct memory){.options = options, .visit = visit, .owner = owner, .progress = progress};
	return walk_trace(trace, options->filter, progress, &visitor, memory);
}

void memory_done(struct memory *memory)
{
	end_process(memory);
	stack_functions_done(&memory->functions);
}
