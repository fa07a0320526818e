/*
 * host.c - follows the traces of all collectors. See host.h.
 */
#include "watch/host.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory_estimate.h"
#include "control/collectors.h"
#include "util/grow.h"

#define ANSWER_MS 5000
/* What is read is the newest second, which no trace drops. One that keeps its last stretch must not grow meanwhile. */
#define HOLD_MS 1

/* A process of a followed trace. */
struct followed {
	struct watch_process top;
	uint32_t *numbers; /* by key: function number + 1; 0: not looked up yet */
	uint32_t number_count;
	uint8_t *focus; /* by key */
	uint32_t focus_count;
	uint32_t focus_number; /* that it was made for */
	uint64_t lost_since;
	bool is_asked_for; /* in the last answer */
};

/* A followed trace. */
struct watch_source {
	char *path;
	struct trace *trace;
	struct followed **processes;
	size_t process_count, processes_allocated;
	uint32_t seen;	  /* processes of the trace at the last refresh */
	int64_t until_ns; /* of the last refresh */
	bool is_asked_for;
};

/* --- sources --- */

static void free_followed(struct followed *followed)
{
	watch_process_done(&followed->top);
	free(followed->numbers);
	free(followed->focus);
	free(followed);
}

static void free_source(struct watch_source *source)
{
	for (size_t i = 0; i < source->process_count; i++)
		free_followed(source->processes[i]);
	free(source->processes);
	trace_close(source->trace);
	free(source->path);
	free(source);
}

static struct watch_source *find_source(const struct watch_host *host, const char *path)
{
	for (size_t i = 0; i < host->source_count; i++)
		if (strcmp(host->sources[i]->path, path) == 0)
			return host->sources[i];
	return NULL;
}

/* NULL: it cannot be read, which host->problem says, or no memory. */
static struct watch_source *open_source(struct watch_host *host, const char *path)
{
	struct watch_source *source = calloc(1, sizeof(*source));
	char error[4600];

	if (!source ||
	    grow_by_one(&host->sources, &host->sources_allocated, host->source_count, sizeof(*host->sources))) {
		free(source);
		return NULL;
	}
	source->path = strdup(path);
	if (!source->path || trace_open(&source->trace, path, error, sizeof(error)) < 0) {
		snprintf(host->problem, sizeof(host->problem), "%.300s", source->path ? error : "out of memory");
		host->unread++;
		free(source->path);
		free(source);
		return NULL;
	}
	host->sources[host->source_count++] = source;
	return source;
}

static struct followed *find_followed(const struct watch_source *source, const struct trace_process *process)
{
	for (size_t i = 0; i < source->process_count; i++)
		if (source->processes[i]->top.process == process)
			return source->processes[i];
	return NULL;
}

static int follow_process(struct watch_source *source, const struct trace_process *process, int64_t from_ns)
{
	struct followed *followed = find_followed(source, process);
	int error;

	if (followed) {
		followed->is_asked_for = true;
		return 0;
	}
	if (grow_by_one(&source->processes, &source->processes_allocated, source->process_count,
			sizeof(*source->processes)))
		return -ENOMEM;
	followed = calloc(1, sizeof(*followed));
	if (!followed)
		return -ENOMEM;
	followed->focus_number = UINT32_MAX;
	followed->is_asked_for = true;
	error =
	    watch_process_begin(&followed->top, source->trace, process, from_ns ? trace_ticks(process, from_ns) : 0);
	if (error) {
		free_followed(followed);
		return error;
	}
	source->processes[source->process_count++] = followed;
	return 0;
}

static bool has_pid(const json_t *pids, int64_t pid)
{
	size_t i;
	const json_t *one;

	json_array_foreach(pids, i, one)
	{
		if (json_integer_value(one) == pid)
			return true;
	}
	return false;
}

/*
 * Those that run, and of all processes those, too, that have begun and ended since the last refresh. from_ns: when the
 * first stretch of new ones begins; 0: at their start.
 */
static int follow_processes(const struct watch_host *host, struct watch_source *source, const json_t *pids,
			    int64_t from_ns)
{
	const struct trace *trace = source->trace;
	bool all = strcmp(host->target, "all") == 0;
	int error = 0;

	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];
		bool is_new = !from_ns && i >= source->seen;

		if (process && process->known && (process->ended ? all && is_new : has_pid(pids, process->pid)))
			error = follow_process(source, process, from_ns);
	}
	source->seen = trace->process_count;
	return error;
}

/* Those that have ended since the last refresh were counted for the last time. */
static void forget_processes(struct watch_source *source)
{
	size_t kept = 0;

	for (size_t i = 0; i < source->process_count; i++) {
		struct followed *followed = source->processes[i];

		if (followed->is_asked_for && !followed->top.process->ended)
			source->processes[kept++] = followed;
		else
			free_followed(followed);
	}
	source->process_count = kept;
}

static void forget_sources(struct watch_host *host)
{
	size_t kept = 0;

	for (size_t i = 0; i < host->source_count; i++) {
		struct watch_source *source = host->sources[i];

		if (source->is_asked_for) {
			forget_processes(source);
			host->sources[kept++] = source;
		} else {
			free_source(source);
		}
	}
	host->source_count = kept;
}

/* --- rows --- */

static struct watch_times times_of(const struct trace_process *process, const struct watch_count *count)
{
	return (struct watch_times){.calls = count->calls,
				    .own_ns = trace_span_ns(process, count->own),
				    .total_ns = trace_span_ns(process, count->total),
				    .allocations = estimate_whole(count->allocations),
				    .bytes = count->bytes};
}

static void add_times(struct watch_times *into, const struct watch_times *times)
{
	into->calls += times->calls;
	into->own_ns += times->own_ns;
	into->total_ns += times->total_ns;
	into->allocations += times->allocations;
	into->bytes += times->bytes;
}

/* The function number of a key; UINT32_MAX: no memory. */
static uint32_t number_of(struct watch_host *host, struct followed *followed, uint32_t key)
{
	uint32_t number;

	if (grow_for(&followed->numbers, &followed->number_count, key, sizeof(*followed->numbers)) < 0)
		return UINT32_MAX;
	if (followed->numbers[key])
		return followed->numbers[key] - 1;
	number = labels_find(&host->labels, followed->top.process, key / 2, key & 1);
	if (number == UINT32_MAX || grow_for(&host->functions, &host->allocated, number, sizeof(*host->functions)) < 0)
		return UINT32_MAX;
	followed->numbers[key] = number + 1;
	return number;
}

static int add_functions(struct watch_host *host, struct followed *followed)
{
	const struct watch_process *top = &followed->top;

	for (uint32_t key = 0; key < top->keys; key++) {
		const struct watch_count *count = &top->counts[key];
		struct watch_times times;
		uint32_t number;

		if (!count->calls && !count->total && !count->own && !count->allocations)
			continue;
		number = number_of(host, followed, key);
		if (number == UINT32_MAX)
			return -ENOMEM;
		times = times_of(top->process, count);
		add_times(&host->functions[number].now, &times);
		add_times(&host->functions[number].since, &times);
	}
	return 0;
}

static int add_edges(struct watch_host *host, struct followed *followed)
{
	for (uint32_t i = 0; i < followed->top.edge_count; i++) {
		const struct watch_edge *edge = &followed->top.edges[i];
		struct watch_times times = times_of(followed->top.process, &edge->count);
		uint32_t number = number_of(host, followed, edge->key);
		struct watch_function *function;

		if (number == UINT32_MAX)
			return -ENOMEM;
		function = &host->functions[number];
		add_times(edge->is_callee ? &function->callee : &function->caller, &times);
		*(edge->is_callee ? &function->is_callee : &function->is_caller) = true;
	}
	return 0;
}

static int add_threads(struct watch_host *host, struct followed *followed)
{
	const struct watch_process *top = &followed->top;

	for (size_t i = 0; i < top->thread_count; i++) {
		const struct watch_thread *thread = top->threads[i];
		struct watch_thread_row *row;

		if (grow_by_one(&host->threads, &host->threads_allocated, host->thread_count, sizeof(*host->threads)))
			return -ENOMEM;
		row = &host->threads[host->thread_count++];
		*row = (struct watch_thread_row){.pid = top->process->pid,
						 .tid = thread->thread->tid,
						 .top = UINT32_MAX,
						 .now = times_of(top->process, &thread->count)};
		snprintf(row->name, sizeof(row->name), "%s", thread->thread->name ? thread->thread->name : "");
		if (thread->top != WATCH_NO_KEY)
			row->top = number_of(host, followed, thread->top);
	}
	return 0;
}

static int add_process(struct watch_host *host, struct followed *followed)
{
	const struct watch_process *top = &followed->top;
	struct watch_process_row *row;

	if (grow_by_one(&host->processes, &host->processes_allocated, host->process_count, sizeof(*host->processes)))
		return -ENOMEM;
	followed->lost_since += top->lost;
	row = &host->processes[host->process_count++];
	*row = (struct watch_process_row){.pid = top->process->pid,
					  .sampled = trace_process_sample_rate(top->process) > 0,
					  .events = top->events,
					  .lost = top->lost,
					  .lost_since = followed->lost_since,
					  .threads = (uint32_t)top->thread_count,
					  .tasks = top->tasks,
					  .now = times_of(top->process, &top->sum)};
	snprintf(row->name, sizeof(row->name), "%s", trace_process_name(top->process));
	host->events += top->events;
	host->lost += top->lost;
	if (top->interval)
		host->interval = top->interval;
	return 0;
}

static int add_rows(struct watch_host *host, struct followed *followed)
{
	bool is_shown = !host->only || host->only == followed->top.process->pid;
	int error = add_process(host, followed);

	if (!error && is_shown)
		error = add_functions(host, followed);
	if (!error && is_shown)
		error = add_edges(host, followed);
	if (!error && is_shown)
		error = add_threads(host, followed);
	return error;
}

/* Marks the keys of the function that is looked at. New keys may be of it, too. */
static int set_focus(struct watch_host *host, struct followed *followed)
{
	uint32_t keys = replay_keys_of(followed->top.process);
	uint32_t known = followed->focus_number == host->focus ? followed->focus_count : 0;

	if (host->focus == UINT32_MAX) {
		followed->top.focus = NULL;
		followed->focus_number = UINT32_MAX;
		return 0;
	}
	if (grow_zeroed(&followed->focus, &followed->focus_count, keys, sizeof(*followed->focus)) < 0)
		return -ENOMEM;
	for (uint32_t key = known; key < followed->focus_count; key++) {
		uint32_t number = key < keys ? number_of(host, followed, key) : UINT32_MAX;

		if (key < keys && number == UINT32_MAX)
			return -ENOMEM;
		followed->focus[key] = number == host->focus;
	}
	followed->focus_number = host->focus;
	followed->top.focus = followed->focus;
	followed->top.focus_count = followed->focus_count;
	return 0;
}

/* --- a refresh --- */

static int count_source(struct watch_host *host, struct watch_source *source, int64_t until_ns)
{
	uint64_t stretch_ns = source->until_ns ? (uint64_t)(until_ns - source->until_ns) : 0;
	int error = 0;

	for (size_t i = 0; i < source->process_count && !error; i++) {
		struct followed *followed = source->processes[i];

		error = set_focus(host, followed);
		if (!error)
			error = watch_process_next(&followed->top, trace_ticks(followed->top.process, until_ns));
		if (!error)
			error = add_rows(host, followed);
	}
	source->until_ns = until_ns;
	if (stretch_ns > host->stretch_ns)
		host->stretch_ns = stretch_ns;
	return error;
}

/* A trace that the answer of a collector names. */
static int take_trace(struct watch_host *host, const json_t *described)
{
	const char *path = json_string_value(json_object_get(described, "path"));
	int64_t until_ns = json_integer_value(json_object_get(described, "until_ns"));
	const json_t *pids = json_object_get(described, "pids");
	struct watch_source *source = path ? find_source(host, path) : NULL;
	bool is_new = !source;
	int error = 0;

	if (!path || until_ns <= 0)
		return 0;
	if (source)
		error = trace_follow(source->trace);
	else
		source = open_source(host, path);
	if (!source)
		return 0;
	source->is_asked_for = true;
	if (!error)
		error = follow_processes(host, source, pids, is_new ? until_ns : 0);
	return error ? error : count_source(host, source, until_ns);
}

static int take_answers(struct watch_host *host, const struct control_collectors *collectors)
{
	const json_t *described;
	size_t k;
	int error = 0;

	for (size_t i = 0; i < collectors->count; i++) {
		const struct control_collector *collector = &collectors->at[i];

		if (!collector->answer && !collector->ended && !host->problem[0])
			snprintf(host->problem, sizeof(host->problem), "collector %d: %.250s", (int)collector->pid,
				 collector->error);
		json_array_foreach(json_object_get(collector->answer, "traces"), k, described)
		{
			if (!error)
				error = take_trace(host, described);
		}
	}
	return error;
}

static void begin_refresh(struct watch_host *host)
{
	host->process_count = host->thread_count = host->unread = 0;
	host->events = host->lost = host->stretch_ns = 0;
	host->problem[0] = '\0';
	for (size_t i = 0; i < host->source_count; i++) {
		host->sources[i]->is_asked_for = false;
		for (size_t k = 0; k < host->sources[i]->process_count; k++)
			host->sources[i]->processes[k]->is_asked_for = false;
	}
	for (uint32_t i = 0; i < host->allocated; i++)
		host->functions[i] = (struct watch_function){.since = host->functions[i].since};
}

int watch_host_refresh(struct watch_host *host)
{
	struct control_collectors collectors = {0};
	json_t *message = json_pack("{s:s, s:s, s:i}", "type", "snapshot", "target", host->target, "hold_ms", HOLD_MS);
	int error = message ? 0 : -ENOMEM;

	begin_refresh(host);
	if (!error && control_collectors_find(NULL, host->socket, &collectors) == 0) {
		control_collectors_ask(&collectors, message, ANSWER_MS);
		error = take_answers(host, &collectors);
	}
	control_collectors_done(&collectors);
	json_decref(message);
	if (error)
		return error;
	forget_sources(host);
	if (!host->process_count && !host->problem[0])
		snprintf(host->problem, sizeof(host->problem),
			 "%s%.200s is recorded; evprof status lists those that are",
			 strcmp(host->target, "all") ? "no process " : "no process",
			 strcmp(host->target, "all") ? host->target : "");
	return (int)host->process_count;
}

void watch_host_done(struct watch_host *host)
{
	for (size_t i = 0; i < host->source_count; i++)
		free_source(host->sources[i]);
	free(host->sources);
	free(host->functions);
	free(host->processes);
	free(host->threads);
	labels_done(&host->labels);
}
