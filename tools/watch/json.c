/*
 * json.c - see json.h.
 */
#include "watch/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static void put_json_times(struct output *output, const struct watch_times *times)
{
	output_format(output,
		      "\"calls\": %" PRIu64 ", \"own_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
		      ", \"allocations\": %" PRIu64 ", \"bytes\": %" PRIu64,
		      times->calls, times->own_ns, times->total_ns, times->allocations, times->bytes);
}

static void put_json_name(struct output *output, const char *member, struct text name)
{
	output_format(output, "\"%s\": \"", member);
	output_json(output, name);
	output_string(output, "\"");
}

static void put_json_function(struct output *output, const struct label *label)
{
	put_json_name(output, "function", label->display.length ? label->display : label->name);
	output_string(output, ", ");
	put_json_name(output, "file", label->file);
	output_format(output, ", \"line\": %u", label->line);
}

static void put_json_processes(struct output *output, const struct watch_host *host)
{
	for (size_t i = 0; i < host->process_count; i++) {
		const struct watch_process_row *row = &host->processes[i];

		output_format(output, "%s{\"pid\": %" PRId64 ", ", i ? ", " : "", row->pid);
		put_json_name(output, "program", text_of(row->name));
		output_format(output,
			      ", \"sampled\": %s, \"events\": %" PRIu64 ", \"lost\": %" PRIu64
			      ", \"threads\": %u, \"tasks\": %u, ",
			      row->sampled ? "true" : "false", row->events, row->lost, row->threads, row->tasks);
		put_json_times(output, &row->now);
		output_char(output, '}');
	}
}

static void put_json_threads(struct output *output, const struct watch_host *host)
{
	for (size_t i = 0; i < host->thread_count; i++) {
		const struct watch_thread_row *row = &host->threads[i];

		output_format(output, "%s{\"pid\": %" PRId64 ", \"tid\": %u, ", i ? ", " : "", row->pid, row->tid);
		put_json_name(output, "name", text_of(row->name));
		output_string(output, ", ");
		put_json_times(output, &row->now);
		output_string(output, ", \"runs\": ");
		if (row->top == UINT32_MAX) {
			output_string(output, "null}");
			continue;
		}
		output_char(output, '{');
		put_json_function(output, &host->labels.at[row->top]);
		output_string(output, "}}");
	}
}

int watch_json_put(struct output *output, const struct watch_view *view, const struct watch_host *host, size_t rows)
{
	size_t count;
	struct watch_row *sorted =
	    watch_function_rows(view, &host->labels, host->functions, host->allocated, WATCH_ALL, &count);

	if (!sorted)
		return -ENOMEM;
	output_format(output,
		      "{\"stretch_ns\": %" PRIu64 ", \"events\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"processes\": [",
		      host->stretch_ns, host->events, host->lost);
	put_json_processes(output, host);
	output_string(output, "], \"threads\": [");
	put_json_threads(output, host);
	output_string(output, "], \"functions\": [");
	for (size_t i = 0; i < count && i < rows; i++) {
		const struct watch_function *function = &host->functions[sorted[i].number];

		output_string(output, i ? ", {" : "{");
		put_json_function(output, &host->labels.at[sorted[i].number]);
		output_string(output, ", ");
		put_json_times(output, &function->now);
		output_string(output, ", \"since\": {");
		put_json_times(output, &function->since);
		output_string(output, "}}");
	}
	output_string(output, "]}\n");
	free(sorted);
	return output->error;
}
