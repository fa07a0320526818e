/*
 * csv_function.c - the options of the table, and the columns of a function. See csv_function.h.
 */
#include "export/csv_function.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/event_stream.h"
#include "util/cli.h"

/* --- options --- */

static struct csv_options *options_of(struct export *export)
{
	if (!export->options)
		export->options = calloc(1, sizeof(struct csv_options));
	if (!export->options)
		fprintf(stderr, "evprof export: out of memory\n");
	return export->options;
}

static bool take_clean(struct export *export, const char *value)
{
	struct csv_options *options = options_of(export);
	struct csv_clean *clean;
	char why[128];
	int error;

	if (!options)
		return false;
	clean = realloc(options->cleans, (options->clean_count + 1) * sizeof(*clean));
	if (!clean)
		goto out_of_memory;
	options->cleans = clean;
	clean += options->clean_count;
	*clean = (struct csv_clean){0};
	if (strncmp(value, "re:", 3) == 0) {
		error = regcomp(&clean->expression, value + 3, REG_EXTENDED);
		if (error) {
			regerror(error, &clean->expression, why, sizeof(why));
			cli_misused("export", "\"%s\" is not a regular expression: %s", value + 3, why);
			return false;
		}
	} else {
		clean->prefix = strdup(value);
		if (!clean->prefix)
			goto out_of_memory;
	}
	options->clean_count++;
	return true;

out_of_memory:
	fprintf(stderr, "evprof export: out of memory\n");
	return false;
}

static bool take_since_start(struct export *export, const char *value)
{
	struct csv_options *options = options_of(export);

	(void)value;
	if (options)
		options->since_start = true;
	return options;
}

static bool take_no_freed_sizes(struct export *export, const char *value)
{
	struct csv_options *options = options_of(export);

	(void)value;
	if (options)
		options->no_freed_sizes = true;
	return options;
}

const struct export_option export_csv_options[] = {
    {"clean-file-name", "PREFIX",
     "                            take this off the front of file names; or re:EXPRESSION: take away what it matches\n"
     "                            first; may come again\n",
     take_clean},
    {"since-start", NULL, "                            times since the start of the trace, not since 1970\n",
     take_since_start},
    {"no-freed-sizes", NULL,
     "                            0 for the sizes of freed blocks: live blocks need not be kept in memory\n"
     "                            The same table as Parquet, which is far smaller: in Python,\n"
     "                            evprof.load(TRACE).to_parquet(FILE)\n",
     take_no_freed_sizes},
    {NULL, NULL, NULL, NULL},
};

void export_csv_free_options(struct export *export)
{
	struct csv_options *options = export->options;

	for (size_t i = 0; options && i < options->clean_count; i++) {
		if (!options->cleans[i].prefix)
			regfree(&options->cleans[i].expression);
		free(options->cleans[i].prefix);
	}
	if (options)
		free(options->cleans);
	free(options);
	export->options = NULL;
}

/* --- columns --- */

static bool needs_quotes(struct text text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] == '"' || text.at[i] == ',' || text.at[i] == '\n' || text.at[i] == '\r')
			return true;
	return false;
}

/* Writes a comma and the text as a field. */
static void put_field(struct output *output, struct text text)
{
	bool quotes = needs_quotes(text);

	output_string(output, quotes ? ",\"" : ",");
	while (text.length) {
		const char *start = text.at;
		uint32_t code = text_next(&text);

		if (code == TEXT_INVALID || code == 0 || (code >= 0xd800 && code <= 0xdfff))
			output_string(output, "\xef\xbf\xbd");
		else
			output_put(output, start, (size_t)(text.at - start));
		if (code == '"')
			output_char(output, '"');
	}
	if (quotes)
		output_char(output, '"');
}

/* Removes what each --clean-file-name matches, in order. Changes name in place. */
static void clean_file_name(const struct csv_options *options, char *name)
{
	for (size_t i = 0; i < options->clean_count; i++) {
		const struct csv_clean *clean = &options->cleans[i];
		regmatch_t match = {0};

		if (clean->prefix && strncmp(name, clean->prefix, strlen(clean->prefix)) == 0)
			match.rm_eo = (regoff_t)strlen(clean->prefix);
		else if (clean->prefix || regexec(&clean->expression, name, 1, &match, 0) != 0)
			continue;
		memmove(name + match.rm_so, name + match.rm_eo, strlen(name + match.rm_eo) + 1);
	}
}

static int put_file(const struct csv_options *options, struct output *output, struct text file)
{
	char *name;

	/* A text with a NUL is not a file name. */
	if (!options->clean_count || memchr(file.at, 0, file.length)) {
		put_field(output, file);
		return 0;
	}
	name = strndup(file.at, file.length);
	if (!name)
		return -ENOMEM;
	clean_file_name(options, name);
	put_field(output, text_of(name));
	free(name);
	return 0;
}

/* The last part of a type's name: "collections.deque" is deque, as in __qualname__. */
static struct text last_part(struct text name)
{
	size_t i;

	for (i = name.length; i > 0; i--)
		if (name.at[i - 1] == '.')
			break;
	return (struct text){name.at + i, name.length - i};
}

static int put_c_function(struct output *output, const struct wire_definition *definition)
{
	struct text class = last_part(trace_string(definition, 0));
	struct text name = trace_string(definition, 1);
	char *qualified = malloc(class.length + name.length + 1);
	size_t length = class.length;

	if (!qualified)
		return -ENOMEM;
	memcpy(qualified, class.at, length);
	if (length)
		qualified[length++] = '.';
	memcpy(qualified + length, name.at, name.length);
	put_field(output, (struct text){qualified, length + name.length});
	put_field(output, trace_string(definition, 3));
	free(qualified);
	return 0;
}

static int put_function(const struct csv_options *options, struct output *output,
			const struct wire_definition *definition, uint32_t key, uint32_t *line_at)
{
	char unknown[64];
	int error = 0;

	if (!definition) {
		snprintf(unknown, sizeof(unknown), "<unknown %s %u>", key & 1 ? "C function" : "function", key / 2);
		put_field(output, text_of(unknown));
		put_field(output, text_of(key & 1 ? "" : "?"));
	} else if (key & 1) {
		error = put_c_function(output, definition);
	} else {
		put_field(output, trace_string(definition, 1));
		error = put_file(options, output, trace_string(definition, 0));
	}
	*line_at = (uint32_t)output->used;
	if (!(key & 1))
		output_format(output, ",%u", definition ? definition->number : 0);
	return error;
}

int csv_function_make(struct csv_function *function, const struct csv_options *options,
		      const struct trace_process *process, uint32_t key)
{
	struct output piece;
	int error = output_open_memory(&piece);

	if (error)
		return error;
	error = put_function(options, &piece, event_stream_definition(process, key), key, &function->line_at);
	error = error ? error : piece.error;
	function->bytes = error ? NULL : malloc(piece.used + 1);
	if (!function->bytes)
		error = -ENOMEM;
	else
		memcpy(function->bytes, piece.buffer, piece.used);
	function->length = (uint32_t)piece.used;
	output_abandon(&piece);
	return error;
}
