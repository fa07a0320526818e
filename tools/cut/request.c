/* request.c - see request.h. */
#include "cut/cut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

#define SUFFIX ".evp"

static bool fits_together(const struct cut_request *request)
{
	bool times = request->filter->from_given || request->filter->to_given;

	return times + (request->since_ns || request->until_ns) + (request->mark_begin != NULL) +
		   (request->span != NULL) <=
	       1;
}

static int find_all(const struct cut_request *request, struct trace *trace, struct cut_list *list)
{
	*list = (struct cut_list){0};
	if (request->mark_begin)
		return cut_of_marks(list, trace, request->filter, request->mark_begin, request->mark_end);
	if (request->span)
		return cut_of_spans(list, trace, request->filter, request->span, NULL);
	if (grow_by_one(&list->at, &list->allocated, 0, sizeof(*list->at)))
		return -ENOMEM;
	list->at[list->count] = (struct cut_found){.stretch = cut_of_times(trace, request->filter)};
	if (request->since_ns)
		list->at[list->count].stretch.from.ns = request->since_ns;
	if (request->until_ns)
		list->at[list->count].stretch.to.ns = request->until_ns;
	list->at[list->count].stretch.from.byte = (uint64_t)request->since_byte;
	list->at[list->count].stretch.to.byte = (uint64_t)request->until_byte;
	list->count++;
	return 0;
}

static int take_number(const struct cut_request *request, struct cut_list *list, const char *what, const char *name,
		       char *why, size_t why_bytes)
{
	uint64_t number = (uint64_t)request->number;

	if (!number && (list->count == 1 || request->each))
		return 0;
	if (!number)
		snprintf(why, why_bytes, "there are %zu %s \"%.200s\": give the number of one, or cut each",
			 list->count, what, name);
	else if (number > list->count)
		snprintf(why, why_bytes, "there are only %zu %s \"%.200s\"", list->count, what, name);
	if (!number || number > list->count)
		return -EINVAL;
	list->at[0] = list->at[number - 1];
	list->count = 1;
	return 0;
}

static int check_paths(const struct cut_request *request, const struct trace *trace, const struct cut_list *list,
		       char *why, size_t why_bytes)
{
	int error = 0;

	for (size_t i = 0; request->to && i < list->count && !error; i++) {
		char *path = cut_path(request->to, i);

		error = path ? 0 : -ENOMEM;
		if (path && trace_is_at(trace, path)) {
			error = -EINVAL;
			snprintf(why, why_bytes, "%s is the trace itself; give the cut another name", path);
		}
		free(path);
	}
	return error;
}

int cut_request_find(const struct cut_request *request, struct trace *trace, struct cut_list *list, char *why,
		     size_t why_bytes)
{
	const char *what = request->span ? "spans" : "stretches between the marks", *name = request->span;
	char marks[200];
	int error = -EINVAL;

	*list = (struct cut_list){0};
	snprintf(marks, sizeof(marks), "%.90s,%.90s", request->mark_begin ? request->mark_begin : "",
		 request->mark_end ? request->mark_end : "");
	name = name ? name : marks;
	if (!fits_together(request)) {
		snprintf(why, why_bytes, "times, marks and a span exclude each other");
		return error;
	}
	if ((request->since_byte && !request->since_ns) || (request->until_byte && !request->until_ns)) {
		snprintf(why, why_bytes, "--since-byte goes with --since, --until-byte with --until");
		return error;
	}
	error = find_all(request, trace, list);
	if (error)
		return error;
	if (list->count == 0) {
		snprintf(why, why_bytes, "there are no %s \"%.200s\"", what, name);
		return -EINVAL;
	}
	error = take_number(request, list, what, name, why, why_bytes);
	return error ? error : check_paths(request, trace, list, why, why_bytes);
}

char *cut_path(const char *path, size_t number)
{
	size_t length = strlen(path), suffix = strlen(SUFFIX);
	char *made = NULL;

	if (number == 0)
		return strdup(path);
	if (length <= suffix || strcmp(path + length - suffix, SUFFIX) != 0)
		suffix = 0;
	return asprintf(&made, "%.*s-%zu%s", (int)(length - suffix), path, number + 1, path + length - suffix) < 0
		   ? NULL
		   : made;
}
