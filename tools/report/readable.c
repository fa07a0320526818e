/*
 * readable.c - see readable.h.
 */
#include "report/readable.h"

#include <limits.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

/* --- paths --- */

static struct text behind(struct text file, const char *at)
{
	return (struct text){at, (size_t)(file.at + file.length - at)};
}

/* What is behind the last such folder; length 0: there is none. */
static struct text behind_folder(struct text file, const char *folder)
{
	struct text found = {0}, rest = file;
	const char *at;

	while ((at = rest.length ? memmem(rest.at, rest.length, folder, strlen(folder)) : NULL))
		found = rest = behind(file, at + strlen(folder));
	return found;
}

/* Behind "lib/python3.11/". */
static struct text behind_library(struct text file, const char *folder)
{
	struct text found = behind_folder(file, folder);
	const char *slash = found.length ? memchr(found.at, '/', found.length) : NULL;

	return slash ? behind(file, slash + 1) : (struct text){0};
}

static struct text behind_working_directory(struct text file)
{
	char folder[PATH_MAX];
	size_t length = getcwd(folder, sizeof(folder)) ? strlen(folder) : 0;

	if (length < 2 || file.length <= length + 1 || memcmp(file.at, folder, length) != 0 || file.at[length] != '/')
		return (struct text){0};
	return behind(file, file.at + length + 1);
}

/* Of "<frozen importlib._bootstrap>" the module. */
static struct text frozen_module(struct text file)
{
	static const char begin[] = "<frozen ";
	size_t length = strlen(begin);

	if (file.length <= length + 1 || memcmp(file.at, begin, length) != 0)
		return (struct text){0};
	return (struct text){file.at + length, file.length - length - 1};
}

struct text readable_path(struct text file)
{
	const struct text ends[] = {behind_folder(file, "/site-packages/"), behind_folder(file, "/dist-packages/"),
				    behind_library(file, "/lib/python3"),   behind_library(file, "/lib64/python3"),
				    behind_working_directory(file),	    frozen_module(file)};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends[i].length)
			return ends[i];
	return file;
}

/* --- names --- */

int readable_init(struct readable *readable)
{
	*readable = (struct readable){0};
	return output_open_memory(&readable->bytes);
}

void readable_done(struct readable *readable)
{
	output_abandon(&readable->bytes);
}

static struct text name_of(const struct readable *readable)
{
	return (struct text){readable->bytes.buffer, readable->name_bytes};
}

static struct text place_of(const struct readable *readable)
{
	return (struct text){readable->bytes.buffer + readable->name_bytes,
			     readable->bytes.used - readable->name_bytes};
}

void readable_set(struct readable *readable, struct text name, struct text file, uint32_t line)
{
	struct output *bytes = &readable->bytes;

	bytes->used = 0;
	output_line(bytes, name);
	readable->name_bytes = bytes->used;
	if (!text_same(file, text_of("~")) && !text_same(file, text_of("?"))) {
		output_line(bytes, readable_path(file));
		if (line)
			output_format(bytes, ":%u", line);
	}
	readable->name_width = terminal_width(name_of(readable));
	readable->place_width = terminal_width(place_of(readable));
}

void readable_set_label(struct readable *readable, const struct label *label)
{
	if (!label->name.length) { /* a module */
		readable_set(readable, readable_path(label->file), text_of("~"), 0);
		return;
	}
	readable_set(readable, label->display.length ? label->display : label->name, label->file, label->line);
}

/* A place that does not fit begins with a whole folder, if it has one that fits. */
static void put_place(struct output *output, struct text place, unsigned columns)
{
	struct text tail = terminal_tail(place, columns > 3 ? columns - 3 : 0);
	const char *slash = tail.length ? memchr(tail.at, '/', tail.length) : NULL;

	if (terminal_width(place) > columns && slash) {
		output_string(output, "...");
		output_put(output, slash, (size_t)(tail.at + tail.length - slash));
	} else {
		terminal_put_tail(output, place, columns);
	}
}

void readable_put(struct readable *readable, const struct terminal *terminal, struct output *output,
		  unsigned name_columns, unsigned columns)
{
	unsigned width = readable->place_width ? MIN(name_columns, columns) : columns;
	unsigned used = terminal_put_tail(output, name_of(readable), width);

	if (!readable->place_width || columns < name_columns + 2 + 4)
		return;
	terminal_put_spaces(output, name_columns + 2 - used);
	terminal_style(terminal, output, TERMINAL_DIM);
	put_place(output, place_of(readable), columns - name_columns - 2);
	terminal_style(terminal, output, TERMINAL_PLAIN);
}

unsigned readable_name_columns(unsigned name_width, unsigned place_width, unsigned columns)
{
	unsigned place = MIN(place_width, columns / 2);

	if (name_width + 2 + place_width <= columns)
		return name_width;
	return MIN(name_width, columns > place + 2 ? columns - place - 2 : columns);
}
