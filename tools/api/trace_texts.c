/*
 * trace_texts.c - evprof_trace_text(): which texts there are. See api.h.
 */
#include "api/trace_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERDICT_BYTES 1024

static int text_damage(struct evprof_trace *handle, const struct options *options, struct output *output,
		       const struct why *why)
{
	char verdict[VERDICT_BYTES];

	(void)options;
	(void)why;
	trace_verdict(handle->trace, verdict, sizeof(verdict));
	output_string(output, verdict);
	return 0;
}

static const struct {
	const char *name;
	make_text *make;
} text_kinds[] = {
    {"info", text_info},     {"counted-info", text_counted_info},
    {"damage", text_damage}, {"folded", text_folded},
    {"html", text_html},     {"cut", text_cut},
};

static int make(struct evprof_trace *handle, const char *what, const char *const *pairs, struct output *output,
		const struct why *why)
{
	struct options options;
	int error = options_parse(&options, pairs, why);
	size_t i = 0;

	while (i < sizeof(text_kinds) / sizeof(text_kinds[0]) && strcmp(text_kinds[i].name, what) != 0)
		i++;
	if (!error && i == sizeof(text_kinds) / sizeof(text_kinds[0]))
		error = why_set(why, -EINVAL, "evprof: \"%s\" is none of the texts", what);
	if (!error)
		error = options_check(&options, handle->trace, why);
	if (!error) {
		handle->trace->clock = options.filter.clock;
		error = text_kinds[i].make(handle, &options, output, why);
	}
	options_done(&options);
	return error ? error : output->error;
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

static int make_in_memory(struct evprof_trace *trace, const char *what, const char *const *options, char **text,
			  size_t *length, const struct why *why)
{
	struct handle_call call;
	struct output output;
	int error = handle_enter(&call, trace, why);

	if (error)
		return error;
	error = output_open_memory(&output);
	if (!error) {
		error = make(trace, what, options, &output, why);
		if (!error)
			error = take_bytes(&output, text, length);
		output_abandon(&output);
	}
	handle_leave(&call);
	return error;
}

int evprof_trace_text(struct evprof_trace *trace, const char *what, const char *const *options, char **text,
		      size_t *length, char *error, size_t error_bytes)
{
	const struct why why = {error, error_bytes};
	int result;

	if (error_bytes)
		error[0] = 0;
	result = make_in_memory(trace, what, options, text, length, &why);
	if (result && error_bytes && !error[0])
		why_set(&why, result, "evprof: %s", strerror(-result));
	return result;
}

void evprof_text_free(char *text)
{
	free(text);
}
