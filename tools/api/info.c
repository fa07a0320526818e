/*
 * info.c - what a trace is of, as JSON for the package: processes and threads by number, with what the trace says of
 * them. See trace_texts.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/trace_texts.h"

static json_t *counts_of(const struct trace *trace, const uint64_t *counts)
{
	json_t *object;

	if (!counts)
		return json_null();
	object = json_object();
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		if (counts[kind])
			json_object_set_new(object, trace->kind_names[kind], json_integer((json_int_t)counts[kind]));
	return object;
}

/* A text of the trace as valid JSON. */
static json_t *name_of(const char *name)
{
	return name ? json_string(name) : json_null();
}

static json_t *thread_of(const struct trace *trace, const struct trace_thread *thread)
{
	json_t *name = name_of(thread->name);

	return json_pack("{s:i, s:I, s:o, s:b, s:b, s:o, s:o}", "number", (int)thread->number, "tid",
			 (json_int_t)thread->tid, "name", name ? name : json_string("?"), "ended", thread->ended,
			 "sampled", thread->sampled, "events", counts_of(trace, thread->events), "lost",
			 counts_of(trace, thread->lost));
}

static json_t *process_of(const struct trace *trace, const struct trace_process *process)
{
	json_t *threads = json_array(), *meta = process->meta ? json_incref(process->meta) : json_object();
	json_t *end = process->end ? json_incref(process->end) : json_null();
	json_t *account = trace_process_account_json(process);

	for (size_t i = 0; i < process->thread_count; i++)
		json_array_append_new(threads, thread_of(trace, trace->threads[process->threads[i]]));
	return json_pack("{s:i, s:I, s:I, s:s, s:o, s:o, s:o, s:o}", "number", (int)process->number, "pid",
			 (json_int_t)process->pid, "ppid", (json_int_t)process->ppid, "title",
			 trace_process_text(process, "title"), "meta", meta, "end", end, "account",
			 account ? account : json_null(), "threads", threads);
}

static int write_info(const struct trace *trace, struct output *output)
{
	json_t *processes = json_array(), *info;
	char *text;

	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i])
			json_array_append_new(processes, process_of(trace, trace->processes[i]));
	info = json_pack("{s:I, s:I, s:I, s:b, s:I, s:o}", "start_ns", (json_int_t)trace->start_ns, "end_ns",
			 (json_int_t)trace->end_ns, "realtime_offset_ns", (json_int_t)trace_realtime_offset(trace),
			 "complete", !trace->damage.bad_end, "bytes", (json_int_t)trace->size_bytes, "processes",
			 processes);
	text = info ? json_dumps(info, JSON_COMPACT) : NULL;
	json_decref(info);
	if (!text)
		return -ENOMEM;
	output_string(output, text);
	free(text);
	return 0;
}

int text_info(struct request *request, struct output *output)
{
	return write_info(request->trace, output);
}

int text_counted_info(struct request *request, struct output *output)
{
	struct trace *trace = request->trace;

	if (!request->call.handle->checked)
		trace_check(trace, NULL, NULL);
	request->call.handle->checked = true;
	for (uint32_t i = 0; i < trace->thread_count; i++)
		if (trace->threads[i] && trace_count_events(trace, trace->threads[i]) < 0)
			return -ENOMEM;
	return write_info(trace, output);
}
