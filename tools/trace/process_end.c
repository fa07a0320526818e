/*
 * process_end.c - how recorded processes ended. See process_end.h.
 */
#include "trace/process_end.h"
#include "util/output.h"

#include <stdio.h>
#include <string.h>

#define SAID_MAX 8

/* The name as in kill -l. NULL if the C library has none. */
static const char *signal_name(int number)
{
#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 32)
	static char name[32];
	const char *short_name = sigabbrev_np(number);

	if (!short_name)
		return NULL;
	snprintf(name, sizeof(name), "SIG%s", short_name);
	return name;
#else
	(void)number;
	return NULL;
#endif
}

static const json_t *signal_number(const struct trace_process *process)
{
	const json_t *number = json_object_get(process->end, "signal");

	return json_is_integer(number) ? number : NULL;
}

const char *process_end_signal(const struct trace_process *process)
{
	const json_t *number = signal_number(process);

	return number ? signal_name((int)json_integer_value(number)) : NULL;
}

int64_t process_end_peak_rss(const struct trace_process *process)
{
	const json_t *bytes = json_object_get(process->end, "peak_rss_bytes");

	return json_is_integer(bytes) && json_integer_value(bytes) >= 0 ? json_integer_value(bytes) : -1;
}

int64_t process_peak_rss(const struct trace_process *process)
{
	int64_t at_end = process_end_peak_rss(process);

	if (at_end >= 0 || !process->resident_peak_bytes)
		return at_end;
	return (int64_t)process->resident_peak_bytes;
}

void process_end_print(const struct trace_process *process, struct output *output)
{
	const char *how = json_string_value(json_object_get(process->end, "how"));
	const json_t *status = json_object_get(process->end, "status");
	const json_t *number = signal_number(process);
	const char *name = process_end_signal(process);

	output_line(output, text_of(how ? how : "?"));
	if (json_is_integer(status))
		output_format(output, ", status %lld", (long long)json_integer_value(status));
	if (name)
		output_format(output, " by %s (signal %lld)", name, (long long)json_integer_value(number));
	else if (number)
		output_format(output, " by signal %lld", (long long)json_integer_value(number));
	else if (how && strcmp(how, "killed") == 0)
		output_string(output, " (by which signal is not known)");
}

static bool was_killed(const struct trace_process *process)
{
	const char *how = json_string_value(json_object_get(process->end, "how"));

	return how && strcmp(how, "killed") == 0;
}

static void print_end(const struct trace *trace, const struct trace_process *process)
{
	struct output piece;

	if (output_open_memory(&piece) < 0)
		return;
	process_end_print(process, &piece);
	output_message("evprof: %s: process %lld (%s) was %.*s", trace->path, (long long)process->pid,
		       trace_process_name(process), (int)piece.used, piece.buffer);
	output_abandon(&piece);
}

static void warn_unsampled(const struct trace *trace, const struct trace_process *process)
{
	if (json_object_get(process->end, "sampler"))
		output_message("evprof: %s: the sampler of process %lld (%s) was killed; later samples are missing",
			       trace->path, (long long)process->pid, trace_process_name(process));
}

void process_end_warn(const struct trace *trace)
{
	uint32_t killed = 0, i;

	for (i = 0; i < trace->process_count; i++) {
		if (trace->processes[i])
			warn_unsampled(trace, trace->processes[i]);
		if (!trace->processes[i] || !was_killed(trace->processes[i]))
			continue;
		if (killed++ < SAID_MAX)
			print_end(trace, trace->processes[i]);
	}
	if (killed > SAID_MAX)
		output_message("evprof: %s: and %u more processes were killed; evprof info lists all", trace->path,
			       killed - SAID_MAX);
}
