/*
 * title.c - reads /proc/PID/cmdline repeatedly. See title.h.
 *
 * Its contents are the process's own memory, and not trusted: text_or_null() (meta.c) makes it valid text, and readers
 * escape it like all text of a trace. A dead process has none.
 */
#include "session/title.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/control.h"
#include "evprof/proc.h"
#include "evprof/wire.h"

#define TITLE_MAX_BYTES 4096
#define FIRST_LOOK_NS UINT64_C(20000000)
#define LONGEST_PAUSE_NS UINT64_C(5000000000)

/* The arguments, each with a zero at its end, with spaces between them; not the zeros after a shorter title. */
static char *text_of(char *text, size_t length)
{
	while (length > 0 && (text[length - 1] == 0 || text[length - 1] == ' '))
		length--;
	if (!length)
		return NULL;
	text[length] = 0;
	for (char *zero = text; (zero = memchr(zero, 0, (size_t)(text + length - zero)));)
		*zero = ' ';
	return strdup(text);
}

/* NULL: none. */
static char *read_command(pid_t pid)
{
	char text[TITLE_MAX_BYTES];
	ssize_t length = pid > 0 ? proc_read_of(pid, 0, "cmdline", text, sizeof(text)) : 0;

	return length > 0 ? text_of(text, (size_t)length) : NULL;
}

/*
 * What read_command() would have returned when the process sent its request to join: by the time that it is read here,
 * the process may have a title. Where the request has not all of the bytes as they were: what it returns now.
 */
static char *command_of(const json_t *argv, pid_t pid)
{
	char text[TITLE_MAX_BYTES];
	const json_t *argument;
	size_t length = 0, i;

	json_array_foreach(argv, i, argument)
	{
		size_t bytes = json_string_length(argument) + 1;

		if (bytes >= sizeof(text) - length || strstr(json_string_value(argument), "\xef\xbf\xbd"))
			return read_command(pid);
		memcpy(text + length, json_string_value(argument), bytes);
		length += bytes;
	}
	return length ? text_of(text, length) : read_command(pid);
}

static bool is_empty(const json_t *argument)
{
	return json_string_length(argument) == 0;
}

/*
 * Removes empty arguments at the end, for a process that has changed its command line. At the start of a program they
 * may be real.
 */
static void cut_empty(json_t *argv)
{
	while (json_array_size(argv) && is_empty(json_array_get(argv, json_array_size(argv) - 1)))
		json_array_remove(argv, json_array_size(argv) - 1);
}

void title_begin(struct title *title, const struct control_message *join, pid_t pid, const struct title *parent,
		 uint64_t now_ns)
{
	bool forked = parent && parent->command;

	if (join->start != WIRE_START_EXEC)
		cut_empty(join->argv);
	title->argv = json_incref(forked ? parent->argv : join->argv);
	title->command = forked ? strdup(parent->command) : command_of(join->argv, pid);
	title->text = title->command ? strdup(title->command) : NULL;
	title->pause_ns = FIRST_LOOK_NS;
	title->due_ns = forked ? now_ns : now_ns + FIRST_LOOK_NS;
}

const char *title_shown(const struct title *title)
{
	return strcmp(title->text, title->command) ? title->text : NULL;
}

static bool has_changed(struct title *title, pid_t pid)
{
	char *text = read_command(pid);

	if (!text || strcmp(text, title->text) == 0) {
		free(text);
		return false;
	}
	free(title->text);
	title->text = text;
	return true;
}

bool title_look(struct title *title, pid_t pid, bool ends, uint64_t now_ns)
{
	bool last = title->due_ns != UINT64_MAX && ends, changed;

	if (!title->text || (now_ns < title->due_ns && !last))
		return false;
	changed = has_changed(title, pid);
	title->due_ns = last ? UINT64_MAX : now_ns + title->pause_ns;
	title->pause_ns = title->pause_ns < LONGEST_PAUSE_NS / 2 ? title->pause_ns * 2 : LONGEST_PAUSE_NS;
	return changed;
}

void title_done(struct title *title)
{
	json_decref(title->argv);
	free(title->command);
	free(title->text);
}
