/*
 * csv_function.c - the options of the table, and the columns of a function. See csv_function.h.
 */
#include "export/csv_function.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/event_stream.h"
#include "trace/labels.h"
#include "util/cli.h"

/* --- options --- */

static bool take_clean(struct export *export, const char *value)
{
	struct csv_clean *clean = realloc(export->cleans, (export->clean_count + 1) * sizeof(*clean));
	char why[128];
	int error = 0;

	if (clean) {
		export->cleans = clean;
		clean += export->clean_count;
		*clean = (struct csv_clean){0};
		if (strncmp(value, "re:", 3) == 0)
			error = regcomp(&clean->expression, value + 3, REG_EXTENDED);
		else
			clean->prefix = strdup(value);
	}
	if (error) {
		regerror(error, &clean->expression, why, sizeof(why));
		cli_misused("export", "\"%s\" is not a regular expression: %s", value + 3, why);
		return false;
	}
	if (!clean || (!clean->prefix && strncmp(value, "re:", 3) != 0)) {
		fprintf(stderr, "evprof export: out of memory\n");
		return false;
	}
	export->clean_count++;
	return true;
}

const struct export_option export_csv_options[] = {
    {"clean-file-name", "PREFIX",
     "                            take this off the front of file names; or re:EXPRESSION: take away what it matches\n"
     "                            first; may come again\n",
     take_clean, 0},
    {"since-start", NULL, "                            times since the start of the trace, not since 1970\n", NULL,
     offsetof(struct export, since_start)},
    {"no-freed-sizes", NULL,
     "                            0 for the sizes of freed blocks: live blocks need not be kept in memory\n"
     "                            As Parquet the same rows are far smaller\n",
     NULL, offsetof(struct export, no_freed_sizes)},
    {0}};

void export_csv_free_options(struct export *export)
{
	for (size_t i = 0; i < export->clean_count; i++) {
		if (!export->cleans[i].prefix)
			regfree(&export->cleans[i].expression);
		free(export->cleans[i].prefix);
	}
	free(export->cleans);
}

/* --- columns --- */

static bool needs_quotes(struct text text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] == '"' || text.at[i] == ',' || text.at[i] == '\n' || text.at[i] == '\r')
			return true;
	return false;
}

static void put_text(struct output *output, struct text text)
{
	bool quotes = needs_quotes(text);

	if (quotes)
		output_char(output, '"');
	while (text.length) {
		uint32_t code;
		struct text valid = text_next_valid(&text, &code);

		if (code == 0)
			valid = text_of("\xef\xbf\xbd");
		output_put(output, valid.at, valid.length);
		if (code == '"')
			output_char(output, '"');
	}
	if (quotes)
		output_char(output, '"');
}

void csv_put_text(struct output *output, const struct wire_definition *definition, unsigned string)
{
	if (definition)
		put_text(output, trace_string(definition, string));
}

/* Writes a comma and the text as a field. */
static void put_field(struct output *output, struct text text)
{
	output_char(output, ',');
	put_text(output, text);
}

/* Removes what each --clean-file-name matches, in order. Changes name in place. */
static void clean_file_name(const struct export *export, char *name)
{
	for (size_t i = 0; i < export->clean_count; i++) {
		const struct csv_clean *clean = &export->cleans[i];
		regmatch_t match = {0};

		if (clean->prefix && strncmp(name, clean->prefix, strlen(clean->prefix)) == 0)
			match.rm_eo = (regoff_t)strlen(clean->prefix);
		else if (clean->prefix || regexec(&clean->expression, name, 1, &match, 0) != 0)
			continue;
		memmove(name + match.rm_so, name + match.rm_eo, strlen(name + match.rm_eo) + 1);
	}
}

static int put_file(const struct export *export, struct output *output, struct text file)
{
	char *name;

	/* A text with a NUL is not a file name. */
	if (!export->clean_count || memchr(file.at, 0, file.length)) {
		put_field(output, file);
		return 0;
	}
	name = strndup(file.at, file.length);
	if (!name)
		return -ENOMEM;
	clean_file_name(export, name);
	put_field(output, text_of(name));
	free(name);
	return 0;
}

static void put_c_function(struct output *output, const struct wire_definition *definition)
{
	char room[LABEL_QUALNAME_BYTES];

	put_field(output, label_qualname(definition, room));
	put_field(output, trace_string(definition, 3));
}

static int put_function(const struct export *export, struct output *output, const struct wire_definition *definition,
			uint32_t key, size_t *line_at)
{
	char unknown[64];
	int error = 0;

	if (!definition) {
		snprintf(unknown, sizeof(unknown), "<unknown %s %u>", key & 1 ? "C function" : "function", key / 2);
		put_field(output, text_of(unknown));
		put_field(output, text_of(key & 1 ? "" : "?"));
	} else if (key & 1) {
		put_c_function(output, definition);
	} else {
		put_field(output, trace_string(definition, 1));
		error = put_file(export, output, trace_string(definition, 0));
	}
	*line_at = output->used;
	if (!(key & 1))
		output_format(output, ",%u", definition ? definition->number : 0);
	return error;
}

int csv_function_make(struct csv_function *function, const struct export *export, const struct trace_process *process,
		      uint32_t key)
{
	struct output piece;
	int error = output_open_memory(&piece);

	if (error)
		return error;
	error = put_function(export, &piece, event_stream_definition(process, key), key, &function->line_at);
	function->bytes = output_close_memory(&piece, &function->length);
	if (error) {
		free(function->bytes);
		function->bytes = NULL;
	}
	return function->bytes ? 0 : -ENOMEM;
}
