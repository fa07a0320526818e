/*
 * export_html.c - the HTML report: one file with a timeline, a flame graph, cProfile's table and the heap, which a
 * browser opens from disk.
 *
 *   page.h    the page: tools/html/report.html, report.css, report.js
 *   pack.h    the encoding of the data in it
 *   calls.h   calls in levels of detail
 *   tree.h    the flame graph
 *   memory.h  flame graph and table of memory
 *   curve.h   the heap
 *   analysis/profile.h      the table, which is that of evprof report
 *
 * The trace is read three times: for the table, to count calls, and to write them. If it has memory events it is read
 * once more, for the heap and its allocating stacks. Memory grows with the functions, the different stacks and the live
 * blocks; the rest is constant.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/live.h"
#include "analysis/profile.h"
#include "html/calls.h"
#include "html/curve.h"
#include "html/memory.h"
#include "html/page.h"
#include "html/tree.h"
#include "replay/call_walk.h"
#include "replay/program_end.h"
#include "trace/labels.h"

/* The calls take at most about 60 MB of the file, for any trace. Calls beyond that are merged, and the page says so. */
#define CALLS_MAX 8000000
#define SLIVERS_MAX 4000000
#define NODES_MAX 150000
#define INSTANTS_MAX 100000 /* for exceptions, and again for all others */
#define STEPS_MAX 100000    /* steps of tasks */
#define TASKS_MAX 1000	    /* tasks with a row */
#define ACTIVITY_STEPS 1024

/* Kind and end of a call, as report.js reads them: kind * 8 + end. */
enum { CALL_PYTHON, CALL_RESUME, CALL_THROW, CALL_NATIVE, CALL_RUNNING };
enum { END_OPEN, END_RETURN, END_YIELD, END_UNWIND };

struct html_thread {
	uint32_t process; /* index */
	const struct trace_thread *thread;
	uint32_t depth; /* depth of the deepest call + 1 */
	uint64_t calls;
};

enum { INSTANT_COLUMNS = 4, STEP_COLUMNS = 4, FUNCTION_COLUMNS = 12, HEAP_COLUMNS = 6 };

/* The kind of a function, as report.js reads it. */
enum { FUNCTION_PYTHON, FUNCTION_BUILTIN, FUNCTION_LIBRARY };

/* The data of a function except its times. */
struct html_function {
	uint32_t display; /* number of its display name + 1; 0: none yet */
	bool library;	  /* from a native stack: its file is the library */
	/* Of its longest call; INT64_MIN: no call. */
	int64_t longest_ns;
	int64_t start_ns;
	uint32_t thread;
};

struct html {
	const struct export *export;
	struct output *output;
	struct progress *progress;
	struct profile profile;
	struct html_texts texts;
	struct html_function *known; /* by label */
	uint32_t known_count;
	uint32_t *functions; /* by key of the process: label + 1 */
	struct html_tree tree;
	struct html_packer packer;
	struct batches adding;	 /* struct html_call, queued for calls */
	struct html_calls calls; /* owned by the second thread until batches_wait() */
	struct html_plan plan;
	struct html_census census;
	struct html_thread *threads;
	uint32_t thread_count;
	uint32_t threads_allocated;
	uint32_t process_index; /* of the current process */
	uint32_t thread_index;
	uint32_t root;
	uint32_t blocks;
	bool writing; /* the second walk: calls are written */
	bool memory;  /* the process has memory events */
	int64_t from_ns;
	int64_t to_ns; /* from_ns to to_ns: the shown time range */
	uint64_t activity[ACTIVITY_STEPS];
	unsigned activity_step; /* the current step, from step_from_ns to before step_to_ns */
	int64_t step_from_ns, step_to_ns;
	uint64_t call_count;
	uint64_t too_deep;
	/* instants: thread, time, kind, number or text */
	struct html_column instants[INSTANT_COLUMNS];
	struct u64_map instant_texts; /* type or mark of a process: number of its text + 1 */
	uint64_t exceptions, others, instants_left_out;
	/* steps of tasks: thread, begin, length, text */
	struct html_column steps[STEP_COLUMNS];
	struct u64_map task_texts; /* thread + 1 << 32 | task: number of its name + 1; 0: the task has no row */
	uint32_t tasks;
	uint64_t step_count, steps_left_out;
	struct html_curve *curve;
	int64_t curve_ns; /* time of its latest point */
	/* process, shift, block and number of points of each curve, time of its peak, of the end + 1 */
	struct html_column heaps[HEAP_COLUMNS];
	struct html_column curves[HTML_CURVE_COLUMNS]; /* of all processes: a block for each would be slow to write */
	uint32_t curves_block;			       /* block of curves; valid if there are any */
	uint64_t tree_least_ns;
	struct stack_functions made_by; /* the functions in weights */
	struct html_memory weights;
	uint32_t weights_block; /* block of the tree; the next one has the functions; 0: no memory events */
	uint64_t weights_least;
	bool weights_missing; /* events are missing */
};

/* --- functions --- */

static int grow_known(struct html *html)
{
	uint32_t count = html->profile.labels.allocated;
	struct html_function *grown = realloc(html->known, count * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	for (html->known = grown; html->known_count < count; html->known_count++)
		grown[html->known_count] = (struct html_function){.longest_ns = INT64_MIN};
	return 0;
}

static int know(struct html *html, uint32_t label, const struct wire_definition *definition, uint32_t key)
{
	char *name;

	if (label >= html->known_count && grow_known(html) < 0)
		return -ENOMEM;
	if (html->known[label].display)
		return 0;
	name = label_display(definition, key & 1, key / 2);
	if (!name)
		return -ENOMEM;
	html->known[label].display = html_text_add(&html->texts, text_of(name)) + 1;
	free(name);
	return 0;
}

static uint32_t new_function(struct html *html, struct call_walk *walk, uint32_t key)
{
	uint32_t label = labels_find(&html->profile.labels, walk->process, key / 2, key & 1);
	if (label == UINT32_MAX || know(html, label, walk_definition(walk, key), key) < 0) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	html->functions[key] = label + 1;
	return label;
}

/* The number of a function in the page, equal to that of its label. */
static inline uint32_t function_of(struct html *html, struct call_walk *walk, uint32_t key)
{
	uint32_t number = html->functions[key];

	return __builtin_expect(number != 0, 1) ? number - 1 : new_function(html, walk, key);
}

/* --- calls --- */

static uint8_t how_of(unsigned kind, unsigned end)
{
	static const uint8_t kinds[WIRE_KIND_SLOTS] = {[WIRE_CALL] = CALL_PYTHON,
						       [WIRE_RESUME] = CALL_RESUME,
						       [WIRE_THROW] = CALL_THROW,
						       [WIRE_C_CALL] = CALL_NATIVE,
						       [WIRE_FRAME] = CALL_RUNNING};
	static const uint8_t ends[WIRE_KIND_SLOTS] = {[WIRE_RETURN] = END_RETURN,
						      [WIRE_C_RETURN] = END_RETURN,
						      [WIRE_YIELD] = END_YIELD,
						      [WIRE_UNWIND] = END_UNWIND,
						      [WIRE_C_EXCEPTION] = END_UNWIND};

	return (uint8_t)(kinds[kind] * 8 + ends[end]);
}

/* The first time that belongs to an activity step. */
static int64_t activity_from(const struct html *html, unsigned step)
{
	uint64_t span = (uint64_t)(html->to_ns - html->from_ns);

	return html->from_ns + (int64_t)(((unsigned __int128)step * span + ACTIVITY_STEPS - 2) / (ACTIVITY_STEPS - 1));
}

static void find_step(struct html *html, int64_t ns)
{
	uint64_t span = (uint64_t)(html->to_ns - html->from_ns);
	uint64_t at = (uint64_t)(ns - html->from_ns);
	unsigned step = (unsigned)((unsigned __int128)at * (ACTIVITY_STEPS - 1) / span);

	html->activity_step = step;
	html->step_from_ns = activity_from(html, step);
	html->step_to_ns = step == ACTIVITY_STEPS - 1 ? html->to_ns + 1 : activity_from(html, step + 1);
}

static inline void count_activity(struct html *html, int64_t ns)
{
	if (__builtin_expect(ns < html->step_from_ns || ns >= html->step_to_ns, 0)) {
		if (html->to_ns == html->from_ns || ns < html->from_ns || ns > html->to_ns)
			return;
		find_step(html, ns);
	}
	html->activity[html->activity_step]++;
}

/*
 * The first walk. Finds a call's node in the tree when it begins. frame->user holds the node, and the function in the
 * high half.
 */
static void html_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct html *html = owner;
	uint32_t depth = (uint32_t)(frame - walk->frames);
	struct html_thread *thread = &html->threads[html->thread_index];
	uint32_t parent = depth ? (uint32_t)frame[-1].user : html->root;
	uint32_t function = function_of(html, walk, frame->key);

	frame->user = html_tree_child(&html->tree, parent, function) | (uint64_t)function << 32;
	if (depth >= thread->depth)
		thread->depth = depth + 1;
	if (frame->kind == WIRE_FRAME)
		return;
	thread->calls++;
	html->call_count++;
	count_activity(html, frame->start_ns);
}

static inline void count_longest(struct html *html, const struct html_call *call)
{
	struct html_function *function = call->function < html->known_count ? &html->known[call->function] : NULL;

	if (!function || call->end_ns - call->start_ns <= function->longest_ns)
		return;
	function->longest_ns = call->end_ns - call->start_ns;
	function->start_ns = call->start_ns;
	function->thread = html->thread_index;
}

static int add_calls(void *owner, const char *bytes, size_t used)
{
	const struct html_call *call = (const struct html_call *)bytes, *end = call + used / sizeof(*call);
	struct html *html = owner;

	for (; call < end; call++)
		html_calls_add(&html->calls, call);
	return html->calls.error;
}

static inline void add_call(struct html *html, struct call_walk *walk, const struct html_call *call)
{
	struct html_call *room;

	if (call->depth >= HTML_DEPTH_MAX)
		return;
	room = batches_room(&html->adding, sizeof(*room));
	if (room)
		*room = *call;
	if (__builtin_expect(html->adding.error != 0, 0))
		walk_fail(walk, html->adding.error);
}

static void html_count(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct html *html = owner;
	uint32_t depth = (uint32_t)(frame - walk->frames);
	struct html_call call = {.start_ns = frame->start_ns,
				 .end_ns = walk->now_ns,
				 .function = (uint32_t)(frame->user >> 32),
				 .depth = depth,
				 .how = how_of(frame->kind, how)};

	add_call(html, walk, &call);
	html->too_deep += depth >= HTML_DEPTH_MAX;
	count_longest(html, &call);
	html_tree_add(&html->tree, (uint32_t)frame->user, depth ? (uint32_t)frame[-1].user : html->root,
		      (uint64_t)(call.end_ns - call.start_ns), frame->kind != WIRE_FRAME);
}

/* --- tasks --- */

/* The number of a task's name + 1; 0: it has no row. */
static uint64_t text_of_task(struct html *html, struct call_walk *walk, const struct walk_frame *frame)
{
	uint64_t *number = u64_map_make(&html->task_texts, ((uint64_t)html->thread_index + 1) << 32 | frame->task);
	char *name;

	if (number && (*number || html->tasks >= TASKS_MAX))
		return *number;
	name = number ? walk_task_name(walk, frame) : NULL;
	if (!name) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	html->tasks++;
	*number = (uint64_t)html_text_add(&html->texts, text_of(name)) + 1;
	free(name);
	return *number;
}

static void add_step(struct html *html, struct call_walk *walk, const struct walk_frame *frame)
{
	uint64_t text = html->step_count < STEPS_MAX ? text_of_task(html, walk, frame) : 0;

	if (!text) {
		html->steps_left_out++;
		return;
	}
	html->step_count++;
	html_column_put(&html->steps[0], html->thread_index);
	html_column_put(&html->steps[1], (uint64_t)frame->start_ns);
	html_column_put(&html->steps[2], (uint64_t)(walk->now_ns - frame->start_ns));
	html_column_put(&html->steps[3], text - 1);
}

/* The second walk: writes the call. */
static void html_write(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct html *html = owner;
	struct html_call call = {.start_ns = frame->start_ns,
				 .end_ns = walk->now_ns,
				 .function = function_of(html, walk, frame->key),
				 .depth = (uint32_t)(frame - walk->frames),
				 .how = how_of(frame->kind, how)};

	add_call(html, walk, &call);
	if (frame->task)
		add_step(html, walk, frame);
}

/* --- instants --- */

static uint64_t text_of_type(struct html *html, struct call_walk *walk, const struct trace_names *names, uint32_t id,
			     const char *otherwise)
{
	uint64_t key = ((uint64_t)html->process_index + 1) << 33 | (uint64_t)(otherwise[0] == 'm') << 32 | id;
	uint64_t *number = u64_map_make(&html->instant_texts, key);
	const struct wire_definition *definition = trace_name(names, id);

	if (!number) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	if (!*number)
		*number = (uint64_t)html_text_add(&html->texts,
						  definition ? trace_string(definition, 1) : text_of(otherwise)) +
			  1;
	return *number - 1;
}

/* Whether events of this kind are shown in the timeline; report.js has the same list. */
static bool is_instant(unsigned kind)
{
	const uint32_t instants = 1u << WIRE_EXCEPTION | 1u << WIRE_GAP | 1u << WIRE_FORK | 1u << WIRE_EXEC |
				  1u << WIRE_EXEC_FAILED | 1u << WIRE_EXIT | 1u << WIRE_MARK | 1u << WIRE_PAUSE;

	return instants >> kind & 1;
}

static void html_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct html *html = owner;
	unsigned kind = wire_head_kind(head);
	uint64_t value = kind == WIRE_GAP ? *extra : wire_head_arg(head);
	uint64_t *count = kind == WIRE_EXCEPTION ? &html->exceptions : &html->others;

	html->memory |= wire_is_memory(kind);
	if (!html->writing || !is_instant(kind))
		return;
	if (++*count > INSTANTS_MAX) {
		html->instants_left_out++;
		return;
	}
	if (kind == WIRE_EXCEPTION)
		value = text_of_type(html, walk, &walk->process->types, (uint32_t)value, "exception");
	else if (kind == WIRE_MARK)
		value = text_of_type(html, walk, &walk->process->marks, (uint32_t)value, "mark");
	html_column_put(&html->instants[0], html->thread_index);
	html_column_put(&html->instants[1], (uint64_t)walk->now_ns);
	html_column_put(&html->instants[2], kind);
	html_column_put(&html->instants[3], value);
}

/* --- threads and processes --- */

static int html_thread(void *owner, struct call_walk *walk)
{
	struct html *html = owner;
	int error;

	if (html->writing) {
		html->thread_index++;
	} else {
		if (html->thread_count == html->threads_allocated) {
			uint32_t allocated = html->threads_allocated ? html->threads_allocated * 2 : 64;
			struct html_thread *grown = realloc(html->threads, allocated * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			html->threads = grown;
			html->threads_allocated = allocated;
		}
		html->thread_index = html->thread_count++;
		html->threads[html->thread_index] =
		    (struct html_thread){.process = html->process_index, .thread = walk->thread};
	}
	error = batches_wait(&html->adding);
	html_calls_thread(&html->calls, html->thread_index);
	return error;
}

static int html_thread_end(void *owner, struct call_walk *walk)
{
	struct html *html = owner;
	int error = batches_wait(&html->adding);

	(void)walk;
	html_calls_thread_end(&html->calls);
	return error ? error : html->calls.error;
}

static int html_process(void *owner, struct call_walk *walk)
{
	struct html *html = owner;

	html->process_index++;
	html->memory = false;
	html->functions = calloc(walk_keys(walk), sizeof(*html->functions));
	if (!html->writing)
		html->root = html_tree_root(&html->tree, html->process_index);
	return html->functions && !html->tree.failed ? 0 : -ENOMEM;
}

/* --- memory --- */

/* Clocks of threads may differ slightly, so a time may precede the last one. */
static void watch_heap(void *owner, int64_t ns, uint64_t bytes)
{
	struct html *html = owner;

	if (ns > html->curve_ns)
		html->curve_ns = ns;
	html_curve_add(html->curve, html->curve_ns, bytes);
}

static int write_curves(struct html *html)
{
	if (!html->curves[0].used && !html->curves[0].failed)
		return 0;
	return html_block_write(&html->packer, html->curves_block, html->curves, HTML_CURVE_COLUMNS);
}

static int add_curve(struct html *html, int64_t peak_ns, int64_t end_ns)
{
	uint64_t row[HEAP_COLUMNS] = {
	    html->process_index, html->curve->shift, 0,
	    html->curve->count,	 (uint64_t)peak_ns,  end_ns == PROGRAM_END_NONE ? 0 : (uint64_t)end_ns + 1};

	if (!html->curve->count)
		return 0;
	if (!html->curves[0].used)
		html->curves_block = html->blocks++;
	row[2] = html->curves_block;
	for (unsigned i = 0; i < HEAP_COLUMNS; i++)
		html_column_put(&html->heaps[i], row[i]);
	html_curve_columns(html->curve, html->curves);
	return html->curves[0].used < HTML_CURVE_POINTS ? 0 : write_curves(html);
}

/* Reads a process once more in order of time, for the heap and its allocating stacks. */
static int write_memory(struct html *html, const struct call_walk *walk)
{
	struct live live = {0};
	int64_t end_ns;
	int error = stack_functions_process(&html->made_by, walk);

	html->curve = calloc(1, sizeof(*html->curve));
	html->curve_ns = 0;
	if (!html->curve)
		error = -ENOMEM;
	if (!error)
		error = live_find_both(&live, walk, &html->made_by, html->progress, watch_heap, html, &end_ns);
	if (!error)
		error = html_memory_add(&html->weights, html->process_index, &live, &html->made_by);
	if (!error)
		error = add_curve(html, live.peak_ns, end_ns);
	html->weights_missing |= live.missing;
	live_done(&live);
	free(html->curve);
	html->curve = NULL;
	return error;
}

static int html_process_end(void *owner, struct call_walk *walk)
{
	struct html *html = owner;

	free(html->functions);
	html->functions = NULL;
	return html->writing && html->memory ? write_memory(html, walk) : 0;
}

/* Reads the trace once. */
static int walk(struct html *html, bool writing)
{
	const struct call_visitor visitor = {.process = html_process,
					     .process_end = html_process_end,
					     .thread = html_thread,
					     .thread_end = html_thread_end,
					     .push = writing ? NULL : html_push,
					     .pop = writing ? html_write : html_count,
					     .other = html_other};
	int error;

	html->writing = writing;
	html->process_index = html->thread_index = UINT32_MAX; /* the first one becomes 0 */
	html_calls_init(&html->calls, writing ? &html->packer : NULL, &html->blocks, html->plan);
	batches_begin(&html->adding, add_calls, html);
	error = walk_trace(html->export->trace, html->export->filter, html->progress, &visitor, html);
	batches_end(&html->adding);
	if (!error)
		error = html_calls_finish(&html->calls);
	html->census = html->calls.census;
	html_calls_done(&html->calls);
	free(html->functions);
	html->functions = NULL;
	return error;
}

/* --- written after the calls: the blocks in the order of report.js, then one JSON object --- */

/* The page's number of a function in weights; UINT32_MAX if memory ran out. */
static uint32_t number_weighed(struct html *html, uint32_t function)
{
	const struct stack_function *known = &html->made_by.at[function];
	uint32_t label = labels_add(&html->profile.labels, &html->made_by.labels.at[function]);

	if (label == UINT32_MAX || (label >= html->known_count && grow_known(html) < 0))
		return UINT32_MAX;
	if (!html->known[label].display)
		html->known[label].display = html_text_add(&html->texts, text_of(known->name)) + 1;
	html->known[label].library = known->library.length > 0;
	return label;
}

static uint32_t *number_functions(struct html *html)
{
	uint32_t count = html->made_by.count;
	uint32_t *numbers = malloc(((size_t)count + 1) * sizeof(*numbers));

	for (uint32_t i = 0; numbers && i < count; i++) {
		numbers[i] = number_weighed(html, i);
		if (numbers[i] == UINT32_MAX) {
			free(numbers);
			return NULL;
		}
	}
	return numbers;
}

/* Written before the functions, because it adds those that only allocated. */
static int write_weights(struct html *html)
{
	struct html_column columns[HTML_MEMORY_FUNCTION_COLUMNS] = {0};
	uint32_t *numbers = number_functions(html);
	int error =
	    numbers ? html_memory_tree(&html->weights, numbers, NODES_MAX, columns, &html->weights_least) : -ENOMEM;

	html->weights_block = html->blocks;
	if (!error)
		error = html_block_write(&html->packer, html->blocks++, columns, HTML_MEMORY_TREE_COLUMNS);
	if (!error) {
		html_memory_functions(&html->weights, numbers, columns);
		error = html_block_write(&html->packer, html->blocks++, columns, HTML_MEMORY_FUNCTION_COLUMNS);
	}
	for (unsigned i = 0; i < HTML_MEMORY_FUNCTION_COLUMNS; i++)
		html_column_done(&columns[i]);
	free(numbers);
	return error;
}

static unsigned kind_of(const struct label *label, const struct html_function *known)
{
	if (known && known->library)
		return FUNCTION_LIBRARY;
	return !label->line && text_same(label->file, text_of("~")) ? FUNCTION_BUILTIN : FUNCTION_PYTHON;
}

/* By function: the number of its file's name, one for each file. NULL if memory ran out. */
static uint32_t *add_files(struct html *html)
{
	const struct labels *labels = &html->profile.labels;
	uint32_t *numbers = calloc((size_t)labels->count + 1, sizeof(*numbers)), first = html->texts.count;
	struct labels files = {0};

	if (!numbers)
		return NULL;
	for (uint32_t i = 0; i < labels->count; i++) {
		uint32_t file = labels_add(&files, &(struct label){.file = labels->at[i].file});

		if (file == UINT32_MAX) {
			labels_done(&files);
			free(numbers);
			return NULL;
		}
		if (first + file == html->texts.count)
			html_text_add(&html->texts, labels->at[i].file);
		numbers[i] = first + file;
	}
	labels_done(&files);
	return numbers;
}

static int write_functions(struct html *html)
{
	const struct labels *labels = &html->profile.labels;
	struct html_column columns[FUNCTION_COLUMNS] = {0};
	uint32_t *files = add_files(html), i;
	int error;

	if (!files)
		return -ENOMEM;
	for (i = 0; i < labels->count; i++) {
		const struct label *label = &labels->at[i];
		struct profile_times times = {0};
		const struct html_function *known = i < html->known_count ? &html->known[i] : NULL;
		bool called = known && known->longest_ns >= 0;
		uint32_t name = html_text_add(&html->texts, label->name);

		if (i < html->profile.times_allocated)
			times = html->profile.times[i];
		html_column_put(&columns[0], known && known->display ? known->display - 1 : name);
		html_column_put(&columns[1], name);
		html_column_put(&columns[2], files[i]);
		html_column_put(&columns[3], kind_of(label, known) == FUNCTION_PYTHON ? label->line : 0);
		html_column_put(&columns[4], kind_of(label, known));
		html_column_put(&columns[5], times.calls);
		html_column_put(&columns[6], times.recursive);
		html_column_put(&columns[7], times.own_ns);
		html_column_put(&columns[8], times.total_ns);
		html_column_put(&columns[9], called ? (uint64_t)known->longest_ns + 1 : 0);
		html_column_put(&columns[10], called ? (uint64_t)known->start_ns : 0);
		html_column_put(&columns[11], called ? known->thread : 0);
	}
	free(files);
	error = html_block_write(&html->packer, html->blocks++, columns, FUNCTION_COLUMNS);
	for (i = 0; i < FUNCTION_COLUMNS; i++)
		html_column_done(&columns[i]);
	return error;
}

static int write_tree(struct html *html)
{
	struct html_column columns[HTML_TREE_COLUMNS] = {0};
	int error;
	unsigned i;

	html->tree_least_ns = html_tree_columns(&html->tree, NODES_MAX, columns);
	error = html_block_write(&html->packer, html->blocks++, columns, HTML_TREE_COLUMNS);
	for (i = 0; i < HTML_TREE_COLUMNS; i++)
		html_column_done(&columns[i]);
	return error;
}

static int write_activity(struct html *html)
{
	struct html_column column = {0};
	int error;
	unsigned i;

	for (i = 0; i < ACTIVITY_STEPS; i++)
		html_column_put(&column, html->activity[i]);
	error = html_block_write(&html->packer, html->blocks++, &column, 1);
	html_column_done(&column);
	return error;
}

static int write_texts(struct html *html)
{
	struct html_column columns[2] = {html->texts.lengths, html->texts.bytes};
	int error = html_block_write(&html->packer, html->blocks++, columns, 2);

	html->texts.lengths = columns[0];
	html->texts.bytes = columns[1];
	return error;
}

/* Writes the blocks of tables, in this order, and their names; empty blocks, too. */
static int write_tables(struct html *html)
{
	uint32_t directory = html->blocks - 1, first;
	int error = html->weights.tree.count ? write_weights(html) : 0;

	if (!error)
		error = write_curves(html);
	first = html->blocks;
	if (!error)
		error = write_functions(html);
	if (!error)
		error = write_tree(html);
	if (!error)
		error = write_activity(html);
	if (!error)
		error = html_block_write(&html->packer, html->blocks++, html->instants, INSTANT_COLUMNS);
	if (!error)
		error = html_block_write(&html->packer, html->blocks++, html->heaps, HEAP_COLUMNS);
	if (!error)
		error = html_block_write(&html->packer, html->blocks++, html->steps, STEP_COLUMNS);
	if (!error)
		error = html_packer_wait(&html->packer);
	if (!error)
		output_format(
		    html->output,
		    "<script type=\"application/json\" id=\"meta\">{\"directory\":%u,\"functions\":%u,\"tree\":%u,"
		    "\"activity\":%u,\"instants\":%u,\"heaps\":%u,\"steps\":%u,\"texts\":%u,\n",
		    directory, first, first + 1, first + 2, first + 3, first + 4, first + 5, html->blocks);
	return error;
}

static uint32_t add_text(struct html *html, const char *text)
{
	return html_text_add(&html->texts, text_of(text ? text : ""));
}

static void put_number(struct html *html, const char *name, uint64_t number)
{
	output_format(html->output, "\"%s\":%llu,", name, (unsigned long long)number);
}

/* Writes the number of events in the whole trace, and of lost ones, as evprof info reports them. */
static int put_totals(struct html *html)
{
	struct trace_totals totals;
	int error = trace_count_totals(html->export->trace, &totals);

	if (error)
		return error;
	put_number(html, "events", totals.events);
	put_number(html, "lost", totals.lost);
	return 0;
}

/* Writes the filter, so that the page shows that it is a part of the trace. */
static void put_choice(struct html *html)
{
	const struct filter *filter = html->export->filter;

	output_format(html->output, "\"choice\":{\"pid\":%lld,\"tid\":%lld,\"time\":%d,\"functions\":%d,",
		      (long long)filter->pid, (long long)filter->tid, filter->from_given || filter->to_given,
		      filter_has_functions(filter));
	put_number(html, "shortest", filter->min_duration_ns);
	output_format(html->output, "\"deepest\":%u},\n", filter->max_depth);
}

static void put_process(struct html *html, const struct trace_process *process)
{
	const json_t *arguments = json_object_get(process->meta, "argv");
	const json_t *status = json_object_get(process->end, "status");
	const json_t *signal = json_object_get(process->end, "signal");
	const json_t *argument;
	size_t i;

	output_format(html->output, "{\"pid\":%lld,\"ppid\":%lld,\"program\":%u,\"python\":%u,\"host\":%u,\"cwd\":%u,",
		      (long long)process->pid, (long long)process->ppid, add_text(html, trace_process_name(process)),
		      add_text(html, trace_process_text(process, "python")),
		      add_text(html, trace_process_text(process, "host")),
		      add_text(html, trace_process_text(process, "cwd")));
	output_format(html->output, "\"ended\":%d,\"status\":%lld,\"signal\":%lld,\"arguments\":[",
		      process->end != NULL, json_is_integer(status) ? (long long)json_integer_value(status) : -1,
		      json_is_integer(signal) ? (long long)json_integer_value(signal) : 0);
	json_array_foreach((json_t *)arguments, i, argument)
	{
		const char *text = json_string_value(argument);

		output_format(html->output, "%s%u", i ? "," : "", add_text(html, text));
	}
	output_string(html->output, "]}");
}

static void put_processes(struct html *html)
{
	const struct trace *trace = html->export->trace;
	const char *comma = "";
	uint32_t i;

	output_string(html->output, "\"processes\":[");
	for (i = 0; i < trace->process_count; i++) {
		if (!trace->processes[i] || !filter_process(html->export->filter, trace->processes[i]))
			continue;
		output_string(html->output, comma);
		put_process(html, trace->processes[i]);
		comma = ",\n";
	}
	output_string(html->output, "],\n\"threads\":[");
	for (i = 0; i < html->thread_count; i++) {
		const struct html_thread *thread = &html->threads[i];

		output_format(html->output,
			      "%s{\"process\":%u,\"tid\":%u,\"name\":%u,\"depth\":%u,\"calls\":%llu,\"lost\":%llu}",
			      i ? ",\n" : "", thread->process, thread->thread->tid,
			      add_text(html, thread->thread->name), thread->depth, (unsigned long long)thread->calls,
			      (unsigned long long)trace_sum(thread->thread->lost));
	}
	output_string(html->output, "],\n");
}

static int write_meta(struct html *html)
{
	struct trace *trace = html->export->trace;
	char missing[1024];
	int error = put_totals(html);

	trace_verdict(trace, missing, sizeof(missing));
	put_number(html, "from", (uint64_t)html->from_ns);
	put_number(html, "to", (uint64_t)html->to_ns);
	put_number(html, "created", trace->header.created_ns / 1000000);
	put_number(html, "trace", html_text_add(&html->texts, text_base_name(text_of(trace->path))));
	put_number(html, "missing", add_text(html, missing));
	put_number(html, "calls", html->call_count);
	put_number(html, "sampled", (uint64_t)trace_sample_rate(trace));
	put_number(html, "top", html->plan.top);
	put_number(html, "floor", html->plan.floor);
	put_number(html, "merged", html_plan_merged(&html->plan, &html->census));
	put_number(html, "shortest", (uint64_t)html->plan.shortest_ns);
	put_number(html, "deep", html->too_deep);
	put_number(html, "instants_left_out", html->instants_left_out);
	put_number(html, "steps_left_out", html->steps_left_out);
	put_number(html, "unmatched", html->profile.unmatched);
	put_number(html, "stacks", html->tree.count);
	put_number(html, "stacks_least", html->tree_least_ns);
	put_number(html, "stacks_folded", html->tree.too_many);
	put_number(html, "memory", html->weights_block);
	put_number(html, "memory_least", html->weights_least);
	put_number(html, "memory_missing", html->weights_missing);
	put_number(html, "without_native", html->made_by.without_native);
	put_choice(html);
	put_processes(html);
	output_string(html->output, "\"format\":1}</script>\n");
	return error ? error : write_texts(html);
}

/* --- all --- */

static int make_table(struct html *html)
{
	const struct profile_options options = {.filter = html->export->filter};

	/* Progress counts the events of all readings. */
	html->progress->total *= trace_records(html->export->trace, "mem") ? 4 : 3;
	return profile_add(&html->profile, html->export->trace, &options, html->progress);
}

static void choose_time(struct html *html)
{
	const struct trace *trace = html->export->trace;
	const struct filter *filter = html->export->filter;
	int64_t end = trace->end_ns - trace->start_ns;

	html->from_ns = filter_from(filter);
	html->to_ns = filter_to(filter) < end ? filter_to(filter) : end;
	if (html->to_ns < html->from_ns)
		html->to_ns = html->from_ns;
	html->plan = html_plan_make(NULL, html->to_ns - html->from_ns, 0, 0);
}

static void html_done(struct html *html)
{
	unsigned i;

	profile_done(&html->profile);
	html_texts_done(&html->texts);
	html_tree_done(&html->tree);
	u64_map_done(&html->instant_texts);
	u64_map_done(&html->task_texts);
	for (i = 0; i < STEP_COLUMNS; i++)
		html_column_done(&html->steps[i]);
	for (i = 0; i < INSTANT_COLUMNS; i++)
		html_column_done(&html->instants[i]);
	for (i = 0; i < HEAP_COLUMNS; i++)
		html_column_done(&html->heaps[i]);
	for (i = 0; i < HTML_CURVE_COLUMNS; i++)
		html_column_done(&html->curves[i]);
	stack_functions_done(&html->made_by);
	html_memory_done(&html->weights);
	free(html->known);
	free(html->threads);
}

int export_html(const struct export *export, struct output *output, struct progress *progress)
{
	struct html html = {.export = export, .output = output, .progress = progress};
	int error = make_table(&html), packed;

	choose_time(&html);
	if (!error)
		error = walk(&html, false);
	if (!error && html.tree.failed)
		error = -ENOMEM;
	if (!error) {
		html.plan = html_plan_make(&html.census, html.to_ns - html.from_ns, CALLS_MAX, SLIVERS_MAX);
		html_page_begin(output);
		error = html_packer_begin(&html.packer, output);
	}
	if (!error)
		error = walk(&html, true);
	if (!error)
		error = write_tables(&html);
	if (!error)
		error = write_meta(&html);
	packed = html_packer_end(&html.packer);
	html_page_end(output);
	html_done(&html);
	return error ? error : packed;
}
