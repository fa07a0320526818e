/*
 * arguments.c - see arguments.h.
 */
#include "trace/arguments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int add_text(struct arguments *arguments, struct argument *argument, const uint64_t *words, unsigned count)
{
	size_t bytes = strnlen((const char *)words, count * sizeof(*words));

	if (argument->text_length + bytes > WIRE_TEXT_MAX_BYTES)
		return 0;
	if (arguments->used + bytes > arguments->allocated) {
		size_t allocated = 2 * (arguments->used + bytes);
		char *grown = realloc(arguments->text, allocated);

		if (!grown)
			return -ENOMEM;
		arguments->text = grown;
		arguments->allocated = allocated;
	}
	if (bytes)
		memcpy(arguments->text + arguments->used, words, bytes);
	arguments->used += bytes;
	argument->text_length += (uint32_t)bytes;
	return 0;
}

int arguments_take(struct arguments *arguments, uint32_t head, const uint64_t *extra)
{
	unsigned type = head >> WIRE_VALUE_SHIFT & ~(unsigned)WIRE_ARGUMENT_CUT, words = wire_extra_words(head);
	struct argument *argument = arguments->count ? &arguments->at[arguments->count - 1] : NULL;

	if (words < 1 || (words < 2 && type != WIRE_ARGUMENT_TEXT) || type < WIRE_ARGUMENT_TEXT ||
	    type > WIRE_ARGUMENT_BOOL)
		return 0;
	if (!*extra && (!argument || argument->type != WIRE_ARGUMENT_TEXT))
		return 0;
	if (*extra) {
		if (arguments->count == WIRE_ARGUMENTS_MAX)
			return 0;
		argument = &arguments->at[arguments->count++];
		*argument =
		    (struct argument){.key = (uint32_t)*extra, .type = type, .text_at = (uint32_t)arguments->used};
	}
	if (type == WIRE_ARGUMENT_TEXT)
		return add_text(arguments, argument, extra + 1, words - 1);
	argument->word = extra[1];
	return 0;
}

static void put_value(struct output *output, const struct arguments *arguments, const struct argument *argument)
{
	double number = wire_double(argument->word);

	if (argument->type == WIRE_ARGUMENT_BOOL) {
		output_string(output, argument->word ? "true" : "false");
	} else if (argument->type == WIRE_ARGUMENT_INT) {
		output_i64(output, wire_int(argument->word));
	} else if (argument->type == WIRE_ARGUMENT_DOUBLE) {
		output_format(output, isfinite(number) ? "%.17g" : "\"%f\"", number);
	} else {
		output_char(output, '"');
		output_json(output, argument_text(arguments, argument));
		output_char(output, '"');
	}
}

void arguments_text(struct output *output, const struct trace_process *process, const struct arguments *arguments)
{
	for (unsigned i = 0; i < arguments->count; i++) {
		const struct wire_definition *key = trace_name(&process->marks, arguments->at[i].key);
		struct text name = key ? trace_string(key, 1) : text_of("?");
		struct text value = argument_text(arguments, &arguments->at[i]);

		output_string(output, i ? ", " : "");
		output_put(output, name.at, name.length);
		output_char(output, '=');
		if (arguments->at[i].type == WIRE_ARGUMENT_TEXT)
			output_put(output, value.at, value.length);
		else
			put_value(output, arguments, &arguments->at[i]);
	}
}

char *arguments_shown(const struct trace_process *process, const struct arguments *arguments, size_t most)
{
	struct output output;
	size_t length;
	char *text;

	if (!arguments->count || output_open_memory(&output) < 0)
		return NULL;
	arguments_text(&output, process, arguments);
	output_char(&output, 0);
	text = output_close_memory(&output, &length);
	if (text && length - 1 > most)
		text[most] = 0;
	return text;
}

void arguments_json(struct output *output, const struct trace_process *process, const struct arguments *arguments)
{
	for (unsigned i = 0; i < arguments->count; i++) {
		const struct wire_definition *key = trace_name(&process->marks, arguments->at[i].key);

		output_string(output, i ? ",\"" : "\"");
		output_json(output, key ? trace_string(key, 1) : text_of("?"));
		output_string(output, "\":");
		put_value(output, arguments, &arguments->at[i]);
	}
}

void arguments_done(struct arguments *arguments)
{
	free(arguments->text);
	*arguments = (struct arguments){0};
}
