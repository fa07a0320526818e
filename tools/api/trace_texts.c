/*
 * trace_texts.c - evprof_trace_text(): which texts there are, and those that exporters of the tool write. See api.h.
 */
#include "api/trace_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

#define VERDICT_BYTES 1024

static int text_damage(struct request *request, struct output *output)
{
	char verdict[VERDICT_BYTES];

	trace_verdict(request->trace, verdict, sizeof(verdict));
	output_string(output, verdict);
	return 0;
}

/* What the tool writes with a note on stderr. */
static int check_weight(const struct request *request, const char *weight)
{
	if (strcmp(weight, "temporary") == 0 && trace_memory_interval(request->trace))
		return why_set(&request->why, -EINVAL,
			       "evprof: memory was sampled, which cannot show temporary allocations");
	if (strcmp(weight, "peak") == 0 && trace_is_alive_only(request->trace))
		return why_set(&request->why, -EINVAL, "evprof: the trace keeps what is alive at its end, and no peak");
	return 0;
}

static int text_folded(struct request *request, struct output *output)
{
	const char *weight = request->options.weight;
	struct export export = {.trace = request->trace, .filter = &request->options.filter, .quiet = true};

	if (weight && !export_folded_weight(&export, weight))
		return why_set(&request->why, -EINVAL,
			       "evprof: weight is time, bytes, allocations, live, peak or temporary, not \"%s\"",
			       weight);
	if (weight && check_weight(request, weight) < 0)
		return -EINVAL;
	if (export.by_order && options_need_wall_clock(&request->options, "that weight", &request->why) < 0)
		return -EINVAL;
	return export_folded(&export, output, &request->progress);
}

static int text_html(struct request *request, struct output *output)
{
	const struct export export = {.trace = request->trace, .filter = &request->options.filter};
	int error = options_need_wall_clock(&request->options, "the page", &request->why);

	return error ? error : export_html(&export, output, &request->progress);
}

static const struct {
	const char *name;
	make_text *make;
} text_kinds[] = {
    {"info", text_info},     {"counted-info", text_counted_info},
    {"damage", text_damage}, {"folded", text_folded},
    {"html", text_html},     {"cut", text_cut},
};

static int make(struct request *request, const char *what, struct output *output)
{
	for (size_t i = 0; i < sizeof(text_kinds) / sizeof(text_kinds[0]); i++) {
		int error;

		if (strcmp(text_kinds[i].name, what) != 0)
			continue;
		error = text_kinds[i].make(request, output);
		return error ? error : output->error;
	}
	return why_set(&request->why, -EINVAL, "evprof: \"%s\" is none of the texts", what);
}

/* Takes the bytes out of the output. */
static int take_bytes(const struct output *output, char **text, size_t *length)
{
	char *bytes = malloc(output->used + 1);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, output->buffer, output->used);
	bytes[output->used] = 0;
	*text = bytes;
	*length = output->used;
	return 0;
}

int evprof_trace_text(struct evprof_trace *trace, const char *what, const char *const *options, char **text,
		      size_t *length, char *error, size_t error_bytes)
{
	struct request request;
	struct output output;
	int result = request_begin(&request, trace, options, error, error_bytes);

	if (!result)
		result = output_open_memory(&output);
	if (!result) {
		result = make(&request, what, &output);
		if (!result)
			result = take_bytes(&output, text, length);
		output_abandon(&output);
	}
	return request_end(&request, result);
}

void evprof_text_free(char *text)
{
	free(text);
}
