/*
 * cuts.c - the text "cut": writes stretches of a trace as traces, and returns their paths, each with a NUL behind it.
 * See trace_texts.h.
 *
 * Which ones: from and to, between, or span, with number or each, to the path output (cut/cut.h). Or several spans
 * in one reading of the trace: span-path, PID:NUMBER=PATH, may come again; spans that are not there are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/trace_texts.h"
#include "cut/cut.h"
#include "util/u64_map.h"

/* Writes a file that appears when it is complete. Nothing of the process is changed, as output.h would for signals. */
static int write_file(struct request *request, const struct cut_found *found, const char *path, struct output *output)
{
	char temporary[PATH_MAX];
	int error = 0, fd = -1;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		error = -ENAMETOOLONG;
	if (!error) {
		fd = mkostemp(temporary, O_CLOEXEC);
		error = fd < 0 ? -errno : 0;
	}
	if (fd >= 0) {
		error = cut_write(request->trace, &found->stretch, &request->options.filter, &request->progress, fd);
		if (!error && rename(temporary, path) < 0)
			error = -errno;
		if (error)
			unlink(temporary);
	}
	if (error)
		return why_set(&request->why, error, "evprof: cannot write %s: %s", path, strerror(-error));
	output_put(output, path, strlen(path) + 1);
	return 0;
}

/* --- several spans --- */

static int parse_span(const char *text, uint64_t *key, const char **path)
{
	unsigned long long pid, number;
	int length = 0;

	if (sscanf(text, "%llu:%llu=%n", &pid, &number, &length) != 2 || !length || !number)
		return -EINVAL;
	*key = cut_span_key((int64_t)pid, number);
	*path = text + length;
	return 0;
}

static int find_spans(const struct request *request, struct u64_map *wanted, struct cut_list *list)
{
	const struct options *options = &request->options;

	for (size_t i = 0; i < options->span_count; i++) {
		uint64_t key, *index;
		const char *path;

		if (parse_span(options->spans[i], &key, &path) < 0)
			return why_set(&request->why, -EINVAL, "evprof: span-path is PID:NUMBER=PATH, not \"%s\"",
				       options->spans[i]);
		if (trace_is_at(request->trace, path))
			return why_set(&request->why, -EINVAL,
				       "evprof: %s is the trace itself; give the cut another name", path);
		index = u64_map_make(wanted, key);
		if (!index)
			return -ENOMEM;
		*index = i + 1;
	}
	return cut_of_spans(list, request->trace, &options->filter, NULL, wanted);
}

static int cut_spans(struct request *request, struct output *output)
{
	const char **spans = request->options.spans;
	struct u64_map wanted = {0};
	struct cut_list list = {0};
	int error = find_spans(request, &wanted, &list);

	for (size_t i = 0; i < list.count && !error; i++) {
		uint64_t key = cut_span_key(list.at[i].process->pid, list.at[i].number), index;
		const char *path;

		/* Another process may have had the pid before. The first one counts. */
		if (u64_map_take(&wanted, key, &index) && !parse_span(spans[index - 1], &key, &path))
			error = write_file(request, &list.at[i], path, output);
	}
	cut_list_done(&list);
	u64_map_done(&wanted);
	return error;
}

/* --- one request --- */

static int cut_one(struct request *request, struct output *output)
{
	const struct options *options = &request->options;
	struct cut_request wanted = {.filter = &options->filter,
				     .mark_begin = options->mark_begin,
				     .mark_end = options->mark_end,
				     .span = options->span,
				     .number = options->number,
				     .each = options->each,
				     .to = options->output};
	struct cut_list list;
	char reason[512] = "";
	int error = cut_request_find(&wanted, request->trace, &list, reason, sizeof(reason));

	if (error && reason[0])
		why_set(&request->why, error, "evprof: %s", reason);
	for (size_t i = 0; !error && i < list.count; i++) {
		char *path = cut_path(options->output, i);

		error = path ? write_file(request, &list.at[i], path, output) : -ENOMEM;
		free(path);
	}
	cut_list_done(&list);
	return error;
}

int text_cut(struct request *request, struct output *output)
{
	const struct options *options = &request->options;
	const struct why *why = &request->why;
	int error = options_need_wall_clock(options, "a cut", why);

	if (error)
		return error;
	if (options->span_count)
		return cut_spans(request, output);
	if (!options->output || !options->output[0])
		return why_set(why, -EINVAL, "evprof: output, the path of the cut, is missing");
	if ((options->mark_begin != NULL) != (options->mark_end != NULL))
		return why_set(why, -EINVAL, "evprof: mark-begin and mark-end are given both, or none");
	return cut_one(request, output);
}
