/*
 * export_html.c - the HTML report: one file with a timeline, a flame graph, cProfile's table and the heap, which a
 * browser opens from disk.
 *
 *   page.h       the page: tools/html/report.html, report.css, script/
 *   pack.h       the encoding of the data in it
 *   functions.h  the functions
 *   calls.h      calls in levels of detail
 *   moments.h    instants, steps of tasks, spans, and values of counters
 *   tree.h       the flame graph
 *   heaps.h      the heap over time, flame graph and table of memory
 *   analysis/profile.h      the table, which is that of evprof report
 *
 * The trace is read three times: for the table, to count calls, and to write them. If it has memory events it is read
 * once more, for the heap and its allocating stacks. Memory grows with the functions, the different stacks and the live
 * blocks; the rest is constant.
 */
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>

#include "html/calls.h"
#include "html/functions.h"
#include "html/heaps.h"
#include "html/moments.h"
#include "html/page.h"
#include "html/tree.h"
#include "util/grow.h"

/* The calls take at most about 60 MB of the file, for any trace. Calls beyond that are merged, and the page says so. */
#define CALLS_MAX 8000000
#define SLIVERS_MAX 4000000
#define NODES_MAX 150000
#define ACTIVITY_STEPS 1024

/* Kind and end of a call, as script/report.js reads them: kind * 8 + end. */
enum { CALL_PYTHON, CALL_RESUME, CALL_THROW, CALL_C_FUNCTION, CALL_RUNNING };
enum { END_OPEN, END_RETURN, END_YIELD, END_UNWIND };

struct html_thread {
	uint32_t process; /* index */
	const struct trace_thread *thread;
	uint32_t depth; /* depth of the deepest call + 1 */
	uint64_t calls;
};

struct html {
	const struct export *export;
	struct output *output;
	struct progress *progress;
	struct profile profile;
	struct html_texts texts;
	struct html_functions functions;
	struct html_tree tree;
	struct html_packer packer;
	struct batches adding;	 /* struct html_call, queued for calls */
	struct html_calls calls; /* owned by the second thread until batches_wait() */
	struct html_plan plan;
	struct html_census census;
	struct html_moments moments;
	struct spans spans; /* of the current process */
	struct html_heaps heaps;
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
	uint64_t tree_least_ns;
};

/* --- calls --- */

static uint8_t how_of(unsigned kind, unsigned end)
{
	static const uint8_t kinds[WIRE_KINDS] = {[WIRE_CALL] = CALL_PYTHON,
						  [WIRE_RESUME] = CALL_RESUME,
						  [WIRE_THROW] = CALL_THROW,
						  [WIRE_C_CALL] = CALL_C_FUNCTION,
						  [WIRE_FRAME] = CALL_RUNNING};
	static const uint8_t ends[WIRE_KINDS] = {[WIRE_RETURN] = END_RETURN,
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
	uint32_t function = html_function_of(&html->functions, walk, frame->key);

	frame->user = html_tree_child(&html->tree, parent, function) | (uint64_t)function << 32;
	if (depth >= thread->depth)
		thread->depth = depth + 1;
	if (frame->kind == WIRE_FRAME)
		return;
	thread->calls++;
	html->call_count++;
	count_activity(html, frame->start_ns);
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

static struct html_call call_of(const struct call_walk *walk, const struct walk_frame *frame, uint32_t function,
				unsigned how)
{
	return (struct html_call){frame->start_ns, walk->now_ns, function, (uint32_t)(frame - walk->frames),
				  how_of(frame->kind, how)};
}

static void html_count(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct html_call call = call_of(walk, frame, (uint32_t)(frame->user >> 32), how);
	struct html *html = owner;

	add_call(html, walk, &call);
	html->too_deep += call.depth >= HTML_DEPTH_MAX;
	html_function_called(&html->functions, &call, html->thread_index);
	html_tree_add(&html->tree, (uint32_t)frame->user, call.depth ? (uint32_t)frame[-1].user : html->root,
		      (uint64_t)(call.end_ns - call.start_ns), frame->kind != WIRE_FRAME);
}

/* The second walk: writes the call. */
static void html_write(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct html *html = owner;
	struct html_call call = call_of(walk, frame, html_function_of(&html->functions, walk, frame->key), how);

	add_call(html, walk, &call);
	if (frame->task)
		html_moments_step(&html->moments, walk, html->thread_index, frame);
}

/* The index of the thread in which a span began, which is no later one than the current. */
static uint32_t thread_of(const struct html *html, const struct span *span)
{
	uint32_t index = html->thread_index;

	while (html->threads[index].thread->number != span->thread)
		index--;
	return index;
}

static void end_span(struct html *html, struct call_walk *walk, uint64_t number)
{
	struct span span = spans_end(&html->spans, walk, number);

	if (span.number)
		html_moments_span(&html->moments, walk, thread_of(html, &span), &span);
}

static void begin_span(struct html *html, struct call_walk *walk, const uint64_t *extra)
{
	struct span *span = html_moments_begin(&html->moments, &html->spans, walk, extra);
	int64_t now_ns = walk->now_ns;

	if (!span || span->end_ns < 0)
		return;
	walk->now_ns = span->end_ns; /* another thread has ended it, and was read before */
	end_span(html, walk, extra[1]);
	walk->now_ns = now_ns;
}

static void html_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	struct html *html = owner;

	unsigned kind = wire_head_kind(head);

	html->memory |= wire_is_memory(kind);
	if (!html->writing)
		return;
	if (kind == WIRE_ARGUMENT)
		html_moments_argument(&html->moments, walk, head, extra);
	else if (kind == WIRE_SPAN_BEGIN)
		begin_span(html, walk, extra);
	else if (kind == WIRE_SPAN_END)
		end_span(html, walk, wire_number(head, extra));
	else if (kind == WIRE_COUNTER)
		html_moments_counter(&html->moments, walk, html->process_index, extra);
	else
		html_moments_event(&html->moments, walk, html->process_index, html->thread_index, head, extra);
}

static void html_thinned(void *owner, struct call_walk *walk, const struct walk_thinned *thinned)
{
	struct html *html = owner;

	if (html->writing)
		html_moments_thinned(&html->moments, walk, html->thread_index, thinned);
}

/* Spans that nothing has ended. */
static void end_open_spans(struct html *html, struct call_walk *walk)
{
	const struct span *span;

	for (size_t left = SIZE_MAX; (span = spans_next_unfinished(&html->spans, walk, &left));)
		end_span(html, walk, span->number);
}

/* --- threads and processes --- */

static int html_thread(void *owner, struct call_walk *walk)
{
	struct html *html = owner;
	int error;

	arguments_forget(&html->moments.arguments);
	if (html->writing) {
		html->thread_index++;
	} else {
		if (grow_for(&html->threads, &html->threads_allocated, html->thread_count, sizeof(*html->threads)) < 0)
			return -ENOMEM;
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
	int error = 0;

	html->process_index++;
	html->memory = false;
	spans_done(&html->spans);
	if (html->writing)
		error = spans_begin_process(&html->spans, walk);
	else
		html->root = html_tree_root(&html->tree, html->process_index);
	if (!error && html->tree.failed)
		error = -ENOMEM;
	return error ? error : html_functions_process(&html->functions, walk);
}

static int html_process_end(void *owner, struct call_walk *walk)
{
	struct html *html = owner;

	if (html->writing)
		end_open_spans(html, walk);
	html_functions_process_end(&html->functions);
	return html->writing && html->memory ? html_heaps_process(&html->heaps, walk, html->process_index) : 0;
}

/* Reads the trace once. */
static int walk_calls(struct html *html, bool writing)
{
	const struct call_visitor visitor = {.process = html_process,
					     .process_end = html_process_end,
					     .thread = html_thread,
					     .thread_end = html_thread_end,
					     .push = writing ? NULL : html_push,
					     .pop = writing ? html_write : html_count,
					     .other = html_other,
					     .thinned = html_thinned,
					     .timed = true};
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
	html_functions_process_end(&html->functions);
	return error;
}

/* --- written after the calls: the blocks in the order of script/data.js, then one JSON object --- */

static int write_block(struct html *html, struct html_column *columns, unsigned count)
{
	return html_block_write(&html->packer, html->blocks++, columns, count);
}

/* Writes the blocks of tables, in this order, and their names; empty blocks, too. */
static int write_tables(struct html *html)
{
	struct html_column columns[HTML_FUNCTION_COLUMNS] = {0}; /* empty after each block */
	uint32_t directory = html->blocks - 1, first;
	int error = html_heaps_write(&html->heaps, &html->functions, NODES_MAX);

	first = html->blocks;
	if (!error)
		error = html_functions_columns(&html->functions, columns);
	write_block(html, columns, HTML_FUNCTION_COLUMNS);
	html->tree_least_ns = html_tree_columns(&html->tree, NODES_MAX, columns);
	write_block(html, columns, HTML_TREE_COLUMNS);
	for (unsigned i = 0; i < ACTIVITY_STEPS; i++)
		html_column_put(&columns[0], html->activity[i]);
	write_block(html, columns, 1);
	write_block(html, html->moments.instants, HTML_INSTANT_COLUMNS);
	write_block(html, html->heaps.table, HTML_HEAP_COLUMNS);
	write_block(html, html->moments.steps, HTML_STEP_COLUMNS);
	write_block(html, html->moments.counters, HTML_COUNTER_COLUMNS);
	write_block(html, html->heaps.resident, HTML_RESIDENT_COLUMNS);
	write_block(html, html->moments.thinned, HTML_THINNED_COLUMNS);
	html_columns_done(columns, HTML_FUNCTION_COLUMNS);
	if (!error)
		error = html_packer_wait(&html->packer);
	if (!error)
		output_format(
		    html->output,
		    "<script type=\"application/json\" id=\"meta\">{\"directory\":%u,\"functions\":%u,\"tree\":%u,"
		    "\"activity\":%u,\"instants\":%u,\"heaps\":%u,\"steps\":%u,\"counters\":%u,"
		    "\"resident\":%u,\"thinned\":%u,\"texts\":%u,\n",
		    directory, first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7,
		    first + 8, html->blocks);
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

/* One id stands by itself, several are a list. */
static void put_ids(struct html *html, const char *name, int64_t single, const struct filter_ids *ids)
{
	output_format(html->output, "\"%s\":[", name);
	if (single)
		output_format(html->output, "%lld", (long long)single);
	for (size_t i = 0; i < ids->count; i++)
		output_format(html->output, "%s%lld", i || single ? "," : "", (long long)ids->at[i]);
	output_string(html->output, "],");
}

/* Writes the filter, so that the page shows that it is a part of the trace. */
static void put_filter(struct html *html)
{
	const struct filter *filter = html->export->filter;

	output_string(html->output, "\"choice\":{");
	put_ids(html, "processes", filter->pid, &filter->processes);
	put_ids(html, "threads", filter->tid, &filter->threads);
	output_format(html->output, "\"time\":%d,\"functions\":%d,", filter->from_given || filter->to_given,
		      filter_has_functions(filter));
	put_number(html, "shortest", filter->min_duration_ns);
	output_format(html->output, "\"deepest\":%u},\n", filter->max_depth);
}

static void put_process(struct html *html, const struct trace_process *process)
{
	const json_t *status = json_object_get(process->end, "status");
	const json_t *signal = json_object_get(process->end, "signal");
	const char *argument;

	output_format(html->output, "{\"pid\":%lld,\"ppid\":%lld,\"program\":%u,\"python\":%u,\"host\":%u,\"cwd\":%u,",
		      (long long)process->pid, (long long)process->ppid, add_text(html, trace_process_name(process)),
		      add_text(html, trace_process_text(process, "python")),
		      add_text(html, trace_process_text(process, "host")),
		      add_text(html, trace_process_text(process, "cwd")));
	output_format(html->output, "\"ended\":%d,\"status\":%lld,\"signal\":%lld,\"arguments\":[",
		      process->end != NULL, json_is_integer(status) ? (long long)json_integer_value(status) : -1,
		      json_is_integer(signal) ? (long long)json_integer_value(signal) : 0);
	for (size_t i = 0; (argument = export_argument(process, i)); i++)
		output_format(html->output, "%s%u", i ? "," : "", add_text(html, argument));
	output_string(html->output, "]}");
}

static void put_processes(struct html *html)
{
	const struct trace *trace = html->export->trace;
	const char *comma = "";

	output_string(html->output, "\"processes\":[");
	for (uint32_t i = 0; i < trace->process_count; i++) {
		if (!trace->processes[i] || !filter_process(html->export->filter, trace->processes[i]))
			continue;
		output_string(html->output, comma);
		put_process(html, trace->processes[i]);
		comma = ",\n";
	}
	output_string(html->output, "],\n\"threads\":[");
	for (uint32_t i = 0; i < html->thread_count; i++) {
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
	put_number(html, "memory_interval", trace_memory_interval(trace));
	put_number(html, "alive_only", trace_is_alive_only(trace));
	put_number(html, "top", html->plan.top);
	put_number(html, "floor", html->plan.floor);
	put_number(html, "merged", html_plan_merged(&html->plan, &html->census));
	put_number(html, "shortest", (uint64_t)html->plan.shortest_ns);
	put_number(html, "deep", html->too_deep);
	put_number(html, "instants_left_out", html->moments.instants_left_out);
	put_number(html, "steps_left_out", html->moments.steps_left_out);
	put_number(html, "values_left_out", html->moments.values_left_out);
	output_format(html->output, "\"budget\":%g,", trace_budget(trace));
	put_number(html, "unmatched", html->profile.unmatched);
	put_number(html, "stacks", html->tree.count);
	put_number(html, "stacks_least", html->tree_least_ns);
	put_number(html, "stacks_folded", html->tree.too_many);
	put_number(html, "memory", html->heaps.weights_block);
	put_number(html, "memory_least", html->heaps.weights_least);
	put_number(html, "sites_left_out", html->heaps.sites_left_out);
	put_number(html, "memory_missing", html->heaps.missing);
	put_number(html, "without_native", html->heaps.made_by.without_native_stack);
	put_filter(html);
	put_processes(html);
	output_string(html->output, "\"format\":1}</script>\n");
	return error ? error : write_block(html, html->texts.columns, 2);
}

/* --- all --- */

static int make_table(struct html *html)
{
	const struct profile_options options = {.filter = html->export->filter};

	/* Progress counts the events of all readings. */
	html->progress->total *= trace_records(html->export->trace, "mem") ? 4 : 3;
	return profile_add(&html->profile, html->export->trace, &options, html->progress);
}

static void set_time_range(struct html *html)
{
	const struct trace *trace = html->export->trace;
	const struct filter *filter = html->export->filter;
	int64_t end = trace->end_ns - trace->start_ns;

	html->from_ns = filter_from(filter);
	html->to_ns = filter_to(filter) < end ? filter_to(filter) : end;
	if (html->to_ns < html->from_ns)
		html->to_ns = html->from_ns;
	html->heaps.from_ns = html->from_ns;
	html->heaps.to_ns = html->to_ns;
	html->plan = html_plan_make(NULL, html->to_ns - html->from_ns, 0, 0);
}

static void html_done(struct html *html)
{
	profile_done(&html->profile);
	html_columns_done(html->texts.columns, 2);
	html_functions_done(&html->functions);
	html_tree_done(&html->tree);
	html_moments_done(&html->moments);
	spans_done(&html->spans);
	html_heaps_done(&html->heaps);
	free(html->threads);
}

int export_html(const struct export *export, struct output *output, struct progress *progress)
{
	struct html html = {.export = export,
			    .output = output,
			    .progress = progress,
			    .functions = {.profile = &html.profile, .texts = &html.texts},
			    .moments = {.texts = &html.texts},
			    .spans.in_turn = true,
			    .heaps = {.packer = &html.packer, .blocks = &html.blocks, .progress = progress}};
	int error = make_table(&html), packed;

	set_time_range(&html);
	if (!error)
		error = walk_calls(&html, false);
	if (!error && html.tree.failed)
		error = -ENOMEM;
	if (!error) {
		html.plan = html_plan_make(&html.census, html.to_ns - html.from_ns, CALLS_MAX, SLIVERS_MAX);
		html_page_begin(output);
		error = html_packer_begin(&html.packer, output);
	}
	if (!error)
		error = walk_calls(&html, true);
	if (!error)
		error = write_tables(&html);
	if (!error)
		error = write_meta(&html);
	packed = html_packer_end(&html.packer);
	html_page_end(output);
	html_done(&html);
	return error ? error : packed;
}
