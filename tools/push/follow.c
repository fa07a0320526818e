/*
 * follow.c - see follow.h.
 */
#include "push/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "evprof/proc.h"
#include "export/deflate.h"
#include "push/resource.h"
#include "util/clock.h"
#include "util/grow.h"

/* --- requests --- */

void push_target_init(struct push_target *target, struct sender *sender, const struct push_settings *settings)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	*target = (struct push_target){.sender = sender, .gzip = settings->gzip, .body = {.form = settings->form}};
	if (fd < 0 || read(fd, target->id, sizeof(target->id)) != (ssize_t)sizeof(target->id))
		target->id[0] = (uint64_t)time_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
	if (fd >= 0)
		close(fd);
	target->id[1] &= UINT64_MAX >> 8; /* counts up; the last byte is the encoder's */
}

void push_target_done(struct push_target *target)
{
	push_body_done(&target->body);
}

static int queue_packed(struct push_target *target, const struct protobuf *request)
{
	z_stream gzip = {0};
	struct output output;
	size_t length;
	char *packed;
	int error;

	if (!deflate_begin_gzip(&gzip))
		return -ENOMEM;
	error = output_open_memory(&output);
	if (!error)
		deflate_put(&gzip, &output, request->bytes, request->used, Z_FINISH);
	deflateEnd(&gzip);
	packed = error ? NULL : output_close_memory(&output, &length);
	if (!packed)
		return -ENOMEM;
	sender_add(target->sender, packed, length);
	free(packed);
	return 0;
}

/* Losses are the sender's to count. */
static int queue(struct push_target *target, const struct protobuf *request)
{
	if (target->gzip)
		return queue_packed(target, request);
	sender_add(target->sender, request->bytes, request->used);
	return 0;
}

static int finish_request(struct push_target *target, struct push_interval *interval)
{
	struct protobuf request = {0};
	int error;

	interval->id[0] = target->id[0];
	interval->id[1] = ++target->id[1] & UINT64_MAX >> 8;
	error = push_body_finish(&target->body, interval, &request);
	if (!error)
		error = queue(target, &request);
	protobuf_done(&request);
	return error;
}

static int queue_stacks(struct push_process *process, struct push_target *target, struct push_interval *interval)
{
	struct push_counts *counts = &process->counts;
	bool any = false;
	int error = 0;

	push_body_begin(&target->body, counts);
	for (uint32_t stack = 0; stack < counts->stacks.count && !error; stack++) {
		struct push_values values;

		if (!push_counts_take(counts, stack, &values))
			continue;
		any = true;
		error = push_body_add(&target->body, stack, &values);
		if (error || !push_body_is_full(&target->body))
			continue;
		error = finish_request(target, interval);
		any = false;
		push_body_begin(&target->body, counts);
	}
	if (!error && any)
		error = finish_request(target, interval);
	push_body_clear(&target->body);
	return error;
}

/* --- a process --- */

struct push_process *push_process_new(struct trace *trace, const struct trace_process *known, int64_t from_ns)
{
	struct push_process *process = calloc(1, sizeof(*process));
	uint64_t from = from_ns ? trace_ticks(known, from_ns) : 0;

	if (!process)
		return NULL;
	process->begin_ns = from_ns ? from_ns : trace_ns(known, known->start_ticks);
	resource_put(&process->resource, known);
	if (!process->resource.error && push_counts_begin(&process->counts, trace, known, from) == 0)
		return process;
	push_process_free(process);
	return NULL;
}

int push_process_emit(struct push_process *process, struct push_target *target, int64_t until_ns, bool has_live)
{
	struct push_counts *counts = &process->counts;
	const struct trace *trace = counts->trace;
	int64_t length_ns = until_ns > process->begin_ns ? until_ns - process->begin_ns : 0;
	bool has_times = trace_process_has_times(counts->process);
	struct push_interval interval = {
	    .begin_ns = (uint64_t)(process->begin_ns + trace_realtime_offset(trace)),
	    .length_ns = (uint64_t)length_ns,
	    .known = {[PUSH_CALLS] = has_times && !trace_process_sample_rate(counts->process),
		      [PUSH_WALL_NS] = has_times,
		      [PUSH_CPU_NS] = counts->has_cpu,
		      [PUSH_OFF_CPU_NS] = counts->has_cpu,
		      [PUSH_ALLOCATIONS] = counts->has_memory,
		      [PUSH_ALLOCATED_BYTES] = counts->has_memory,
		      [PUSH_LIVE_BLOCKS] = counts->has_memory && has_live,
		      [PUSH_LIVE_BYTES] = counts->has_memory && has_live},
	    .resource = &process->resource,
	};
	int error = push_counts_end_interval(counts, trace_ticks(counts->process, until_ns));

	if (!error)
		error = queue_stacks(process, target, &interval);
	process->begin_ns += length_ns;
	target->intervals++;
	return error;
}

void push_process_free(struct push_process *process)
{
	push_counts_done(&process->counts);
	push_resource_done(&process->resource);
	free(process);
}

/* --- a whole trace --- */

#define STRETCH_NS INT64_C(1000000000) /* what is read of one thread before the next one's turn */
#define STRETCHES_MAX 100000	       /* a damaged trace may last for ages */

static int push_intervals(struct push_process *process, struct push_target *target, int64_t interval_ns,
			  const volatile bool *stop)
{
	struct push_counts *counts = &process->counts;
	const struct trace_process *known = counts->process;
	int64_t end_ns = counts->trace->end_ns, least_ns = (end_ns - process->begin_ns) / STRETCHES_MAX;
	int64_t now_ns = process->begin_ns, stretch_ns = least_ns > STRETCH_NS ? least_ns : STRETCH_NS;
	int64_t next_ns = now_ns + (interval_ns > least_ns ? interval_ns : least_ns);
	int error = 0;

	do {
		int64_t to_ns = now_ns + stretch_ns < next_ns ? now_ns + stretch_ns : next_ns;
		uint64_t to = to_ns < end_ns ? trace_ticks(known, to_ns) : UINT64_MAX;

		now_ns = to_ns;
		error = push_counts_next(counts, to, to);
		if (error || now_ns < next_ns || now_ns >= end_ns)
			continue;
		error = push_process_emit(process, target, now_ns, true);
		next_ns = now_ns + (interval_ns > least_ns ? interval_ns : least_ns);
	} while (!error && !*stop && now_ns < end_ns);
	return error ? error : push_process_emit(process, target, end_ns, true);
}

int push_whole(struct trace *trace, struct push_target *target, int64_t interval_ns, const volatile bool *stop)
{
	int error = 0;

	trace_warn_of_budget(trace);
	for (uint32_t i = 0; i < trace->process_count && !error && !*stop; i++) {
		struct push_process *process;

		if (!trace->processes[i] || !trace->processes[i]->known)
			continue;
		process = push_process_new(trace, trace->processes[i], 0);
		if (!process)
			return -ENOMEM;
		error = push_intervals(process, target, interval_ns, stop);
		push_process_free(process);
	}
	return error;
}

/* --- a trace that is being written --- */

static int add_process(struct push_source *source, const struct trace_process *known, int64_t from_ns)
{
	if (grow_by_one(&source->processes, &source->processes_allocated, source->process_count,
			sizeof(*source->processes)))
		return -ENOMEM;
	if (!source->has_budget && trace_process_budget(known) > 0) {
		source->has_budget = true;
		trace_warn_of_budget(source->trace);
	}
	source->processes[source->process_count] = push_process_new(source->trace, known, from_ns);
	return source->processes[source->process_count++] ? 0 : -ENOMEM;
}

static const struct push_process *find_process(const struct push_source *source, const struct trace_process *known)
{
	for (size_t i = 0; i < source->process_count; i++)
		if (source->processes[i]->counts.process == known)
			return source->processes[i];
	return NULL;
}

/* A process is known from its definition on. from_ns: those that have ended before are left out. */
static int find_processes(struct push_source *source, int64_t from_ns)
{
	const struct trace *trace = source->trace;
	int error = 0;

	while (source->seen < trace->process_count && !error) {
		const struct trace_process *known = trace->processes[source->seen];

		if (known && !known->known)
			break;
		if (known && !(from_ns && known->ended) && !find_process(source, known))
			error = add_process(source, known, from_ns);
		source->seen += !error;
	}
	return error;
}

int push_source_open(struct push_source **opened, const char *path, int64_t began_ns, int64_t now_ns)
{
	struct push_source *source = calloc(1, sizeof(*source));
	int error = source ? 0 : -ENOMEM;
	bool is_older = false;
	char why[4600];

	*opened = NULL;
	if (!error && !(source->path = strdup(path)))
		error = -ENOMEM;
	if (!error)
		error = trace_open(&source->trace, path, why, sizeof(why));
	if (!error && !source->trace->start_ns && now_ns == INT64_MAX)
		error = -EINVAL;
	if (!error) {
		source->trace->no_ahead = true;
		is_older = source->trace->start_ns < began_ns;
	}
	if (!error && !(is_older && now_ns == INT64_MAX)) {
		error = find_processes(source, is_older ? now_ns : 0);
		*opened = error ? NULL : source;
	}
	if (source && !*opened)
		push_source_free(source);
	return error;
}

/* After its last event. What it freed while the interpreter ended is no news of its memory. */
static int finish_process(struct push_source *source, size_t at, struct push_target *target)
{
	struct push_process *process = source->processes[at];
	const struct trace_process *known = process->counts.process;
	int64_t end_ns = known->end_ticks ? trace_ns(known, known->end_ticks) : source->trace->end_ns;
	int error = push_process_emit(process, target, end_ns, false);

	push_process_free(process);
	source->processes[at] = source->processes[--source->process_count];
	return error;
}

int push_source_count(struct push_source *source, struct push_target *target, int64_t until_ns)
{
	int error = find_processes(source, 0);
	size_t i = 0;

	source->until_ns = until_ns < INT64_MAX ? until_ns : source->until_ns;
	while (i < source->process_count && !error) {
		struct push_counts *counts = &source->processes[i]->counts;
		uint64_t until = until_ns == INT64_MAX ? UINT64_MAX : trace_ticks(counts->process, until_ns);

		error = push_counts_next(counts, UINT64_MAX, counts->process->ended ? UINT64_MAX : until);
		push_counts_expect_more(counts);
		if (!error && counts->process->ended)
			error = finish_process(source, i, target);
		else
			i++;
	}
	return error;
}

int push_source_emit(struct push_source *source, struct push_target *target)
{
	int64_t until_ns = source->until_ns ? source->until_ns : source->trace->end_ns;
	int error = 0;

	for (size_t i = 0; i < source->process_count && !error; i++)
		error = push_process_emit(source->processes[i], target, until_ns, true);
	return error;
}

void push_source_free(struct push_source *source)
{
	for (size_t i = 0; i < source->process_count; i++)
		if (source->processes[i])
			push_process_free(source->processes[i]);
	free(source->processes);
	trace_close(source->trace);
	free(source->path);
	free(source);
}
