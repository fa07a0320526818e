/*
 * host.c - follows the traces of all collectors. See host.h.
 */
#include "watch/host.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/collectors.h"
#include "evprof/proc.h"
#include "util/grow.h"
#include "watch/followed.h"

#define ANSWER_MS 5000
/* What is read is the newest second, which no trace drops. One that keeps its last stretch must not grow meanwhile. */
#define HOLD_MS 1

/* --- sources --- */

/* A program that is run again has another file at its path. */
static struct watch_source *find_source(const struct watch_host *host, const char *path)
{
	for (size_t i = 0; i < host->source_count; i++) {
		const struct trace *trace = host->sources[i]->trace;

		if (strcmp(trace->path, path) == 0 && !trace_is_replaced(trace))
			return host->sources[i];
	}
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
	if (trace_open(&source->trace, path, error, sizeof(error)) < 0) {
		snprintf(host->problem, sizeof(host->problem), "%.300s", error);
		host->unread++;
		free(source);
		return NULL;
	}
	host->sources[host->source_count++] = source;
	return source;
}

static struct watch_followed *find_followed(const struct watch_source *source, const struct trace_process *process)
{
	for (size_t i = 0; i < source->process_count; i++)
		if (source->processes[i]->counted.process == process)
			return source->processes[i];
	return NULL;
}

static int follow_process(struct watch_source *source, const struct trace_process *process, int64_t from_ns)
{
	struct watch_followed *followed = find_followed(source, process);
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
	followed->is_asked_for = true;
	error = watch_process_begin(&followed->counted, source->trace, process,
				    from_ns ? trace_ticks(process, from_ns) : 0);
	if (error) {
		watch_followed_free(followed);
		return error;
	}
	source->processes[source->process_count++] = followed;
	return 0;
}

static bool has_pid(const json_t *shown, int64_t pid)
{
	size_t i;
	const json_t *one;

	json_array_foreach(shown, i, one)
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
static int follow_processes(const struct watch_host *host, struct watch_source *source, const json_t *shown,
			    int64_t from_ns)
{
	const struct trace *trace = source->trace;
	bool all = strcmp(host->target, "all") == 0;
	int error = 0;

	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];
		bool is_new = !from_ns && i >= source->seen;

		if (process && process->known &&
		    (process->ended ? all && is_new : has_pid(shown, trace_process_shown_pid(process))))
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
		struct watch_followed *followed = source->processes[i];

		if (followed->is_asked_for && !followed->counted.process->ended)
			source->processes[kept++] = followed;
		else
			watch_followed_free(followed);
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
			watch_source_free(source);
		}
	}
	host->source_count = kept;
}

/* --- rows --- */

static void add_count(struct watch_count *into, const struct watch_count *count)
{
	into->calls += count->calls;
	into->own += count->own;
	into->total += count->total;
	into->allocations += count->allocations;
	into->bytes += count->bytes;
}

static int add_functions(struct watch_host *host, struct watch_followed *followed)
{
	const struct watch_process *top = &followed->counted;

	if (grow_zeroed(&followed->since, &followed->since_count, top->keys, sizeof(*followed->since)) < 0)
		return -ENOMEM;
	for (uint32_t key = 0; key < top->keys; key++) {
		const struct watch_count *count = &top->counts[key];
		struct watch_times times;
		uint32_t number;

		if (!count->calls && !count->total && !count->own && !count->allocations)
			continue;
		number = watch_number_of(host, followed, key);
		if (number == UINT32_MAX)
			return -ENOMEM;
		times = watch_times_from(top->process, count);
		watch_times_add(&host->functions[number].now, &times);
		watch_times_add(&host->functions[number].since, &times);
		add_count(&followed->since[key], count);
	}
	return 0;
}

static int add_edges(struct watch_host *host, struct watch_followed *followed)
{
	for (uint32_t i = 0; i < followed->counted.edge_count; i++) {
		const struct watch_edge *edge = &followed->counted.edges[i];
		struct watch_times times = watch_times_from(followed->counted.process, &edge->count);
		uint32_t number = watch_number_of(host, followed, edge->key);
		struct watch_function *function;

		if (number == UINT32_MAX)
			return -ENOMEM;
		if (edge->focus != 1)
			continue; /* query.c counts those */
		function = &host->functions[number];
		watch_times_add(edge->is_callee ? &function->callee : &function->caller, &times);
		*(edge->is_callee ? &function->is_callee : &function->is_caller) = true;
	}
	return 0;
}

static int add_threads(struct watch_host *host, struct watch_followed *followed)
{
	const struct watch_process *top = &followed->counted;

	for (size_t i = 0; i < top->thread_count; i++) {
		const struct watch_thread *thread = top->threads[i];
		struct watch_thread_row *row;

		if (grow_by_one(&host->threads, &host->threads_allocated, host->thread_count, sizeof(*host->threads)))
			return -ENOMEM;
		row = &host->threads[host->thread_count++];
		*row = (struct watch_thread_row){.pid = watch_followed_pid(followed),
						 .tid = thread->thread->tid,
						 .top = UINT32_MAX,
						 .now = watch_times_from(top->process, &thread->count)};
		snprintf(row->name, sizeof(row->name), "%s", thread->thread->name ? thread->thread->name : "");
		if (thread->top != WATCH_NO_KEY)
			row->top = watch_number_of(host, followed, thread->top);
	}
	return 0;
}

/* What the kernel knows of a process, where its pid is one of ours. */
static void add_resources(struct watch_followed *followed, struct watch_process_row *row)
{
	int64_t pid = followed->counted.process->seen_pid;
	char path[48], text[1024];
	unsigned long long user, system, pages;
	const char *at;
	uint64_t cpu_ns = 0;

	row->cpu_ns = row->rss_bytes = -1;
	if (!pid || !proc_is_ours())
		return;
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/statm", pid);
	if (proc_read(path, text, sizeof(text)) > 0 && sscanf(text, "%*u %llu", &pages) == 1)
		row->rss_bytes = (int64_t)pages * sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	at = proc_read(path, text, sizeof(text)) > 0 ? proc_stat_field(text, 14) : NULL;
	if (at && sscanf(at, "%llu %llu", &user, &system) == 2)
		cpu_ns = (uint64_t)(user + system) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	if (cpu_ns && followed->cpu_ns && cpu_ns >= followed->cpu_ns)
		row->cpu_ns = (int64_t)(cpu_ns - followed->cpu_ns);
	followed->cpu_ns = cpu_ns ? cpu_ns : 1;
}

static int add_process(struct watch_host *host, struct watch_followed *followed)
{
	const struct watch_process *top = &followed->counted;
	struct watch_process_row *row;

	if (grow_by_one(&host->processes, &host->processes_allocated, host->process_count, sizeof(*host->processes)))
		return -ENOMEM;
	followed->lost_since += top->lost;
	row = &host->processes[host->process_count++];
	*row = (struct watch_process_row){.pid = watch_followed_pid(followed),
					  .sampled = trace_process_sample_rate(top->process) > 0,
					  .events = top->events,
					  .lost = top->lost,
					  .lost_since = followed->lost_since,
					  .threads = (uint32_t)top->thread_count,
					  .tasks = top->task_count,
					  .now = watch_times_from(top->process, &top->sum)};
	snprintf(row->name, sizeof(row->name), "%s", trace_process_name(top->process));
	add_resources(followed, row);
	host->events += top->events;
	host->lost += top->lost;
	if (top->interval)
		host->interval = top->interval;
	return 0;
}

static int add_rows(struct watch_host *host, struct watch_followed *followed)
{
	bool is_shown = !host->only || host->only == watch_followed_pid(followed);
	int error = add_process(host, followed);

	if (!error && is_shown)
		error = add_functions(host, followed);
	if (!error && is_shown)
		error = add_edges(host, followed);
	if (!error && is_shown)
		error = add_threads(host, followed);
	return error;
}

/* The slot of a function + 1; 0: nobody looks at it. */
static uint8_t slot_of(const struct watch_host *host, uint32_t number)
{
	for (unsigned slot = 0; slot < WATCH_FOCI; slot++)
		if (host->foci[slot] == number + 1)
			return (uint8_t)(slot + 1);
	return 0;
}

static bool any_focus(const struct watch_host *host)
{
	for (unsigned slot = 0; slot < WATCH_FOCI; slot++)
		if (host->foci[slot])
			return true;
	return false;
}

/* Marks the keys of the functions that are looked at. New keys may be of them, too. */
static int set_focus(struct watch_host *host, struct watch_followed *followed)
{
	uint32_t keys = replay_keys_of(followed->counted.process);
	bool is_known = memcmp(followed->foci, host->foci, sizeof(host->foci)) == 0;
	uint32_t known = is_known ? followed->focus_count : 0;

	memcpy(followed->foci, host->foci, sizeof(host->foci));
	followed->counted.focus = NULL;
	if (!any_focus(host))
		return 0;
	if (grow_zeroed(&followed->focus, &followed->focus_count, keys, sizeof(*followed->focus)) < 0)
		return -ENOMEM;
	for (uint32_t key = known; key < followed->focus_count; key++) {
		uint32_t number = key < keys ? watch_number_of(host, followed, key) : UINT32_MAX;

		if (key < keys && number == UINT32_MAX)
			return -ENOMEM;
		followed->focus[key] = key < keys ? slot_of(host, number) : 0;
	}
	followed->counted.focus = followed->focus;
	followed->counted.focus_count = followed->focus_count;
	return 0;
}

/* --- a refresh --- */

static int count_source(struct watch_host *host, struct watch_source *source, int64_t until_ns)
{
	uint64_t stretch_ns = source->until_ns ? (uint64_t)(until_ns - source->until_ns) : 0;
	int error = 0;

	for (size_t i = 0; i < source->process_count && !error; i++) {
		struct watch_followed *followed = source->processes[i];

		error = set_focus(host, followed);
		if (!error)
			error =
			    watch_process_next(&followed->counted, trace_ticks(followed->counted.process, until_ns));
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
	const json_t *shown = json_object_get(described, "shown");
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
		error = follow_processes(host, source, shown, is_new ? until_ns : 0);
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

int watch_host_ask(const struct watch_host *host, struct control_collectors *collectors)
{
	json_t *message = json_pack("{s:s, s:s, s:i}", "type", "snapshot", "target", host->target, "hold_ms", HOLD_MS);

	*collectors = (struct control_collectors){0};
	if (!message)
		return -ENOMEM;
	if (control_collectors_find(NULL, host->socket, collectors) == 0)
		control_collectors_ask(collectors, message, ANSWER_MS);
	json_decref(message);
	return 0;
}

int watch_host_take(struct watch_host *host, const struct control_collectors *collectors)
{
	int error;

	begin_refresh(host);
	error = take_answers(host, collectors);
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

int watch_host_refresh(struct watch_host *host)
{
	struct control_collectors collectors;
	int result = watch_host_ask(host, &collectors);

	if (!result)
		result = watch_host_take(host, &collectors);
	control_collectors_done(&collectors);
	return result;
}

void watch_host_done(struct watch_host *host)
{
	for (size_t i = 0; i < host->source_count; i++)
		watch_source_free(host->sources[i]);
	free(host->sources);
	free(host->functions);
	free(host->processes);
	free(host->threads);
	labels_done(&host->labels);
}
