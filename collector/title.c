/*
 * title.c - reads /proc/PID/cmdline repeatedly. See title.h.
 *
 * Its contents are the process's own memory, and not trusted: text_or_null() (meta.c) makes it valid text, and readers
 * escape it like all text of a trace. A dead process has none.
 */
#include "title.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meta.h"
#include "process.h"
#include "session.h"

#define TITLE_MAX_BYTES 4096
#define FIRST_LOOK_NS UINT64_C(20000000)
#define LONGEST_PAUSE_NS UINT64_C(5000000000)

/* The arguments with spaces between them, without the zeros after a shorter title. NULL: none. */
static char *read_command(pid_t pid)
{
	char path[32], text[TITLE_MAX_BYTES];
	ssize_t length;
	int fd;

	if (pid <= 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	while (length > 0 && (text[length - 1] == 0 || text[length - 1] == ' '))
		length--;
	if (length <= 0)
		return NULL;
	for (ssize_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : ' ';
	text[length] = 0;
	return strdup(text);
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

void title_begin(struct process *process, const struct control_message *join, const struct process *parent,
		 uint64_t now_ns)
{
	struct title *title = &process->title;
	bool forked = parent && parent->title.command;

	if (join->start != WIRE_START_EXEC)
		cut_empty(join->argv);
	title->argv = json_incref(forked ? parent->title.argv : join->argv);
	title->command = forked ? strdup(parent->title.command) : read_command(process->pid);
	title->text = title->command ? strdup(title->command) : NULL;
	title->pause_ns = FIRST_LOOK_NS;
	title->due_ns = forked ? now_ns : now_ns + FIRST_LOOK_NS;
}

static bool ends(const struct process *process)
{
	return atomic_load_explicit(&process->header->target_state, memory_order_relaxed) != RING_TARGET_RUNNING;
}

static void look(struct process *process)
{
	struct title *title = &process->title;
	char *text = read_command(process->pid);

	if (!text || strcmp(text, title->text) == 0) {
		free(text);
		return;
	}
	free(title->text);
	title->text = text;
	session_write_json(process->session, process->number, TRACE_NOBODY,
			   meta_title(process->number, strcmp(text, title->command) ? text : NULL));
}

void title_look(struct process *process, uint64_t now_ns)
{
	struct title *title = &process->title;
	bool last = title->due_ns != UINT64_MAX && ends(process);

	/* The pid of a dead process may be reused. */
	if (!title->text || process->dead || (now_ns < title->due_ns && !last))
		return;
	look(process);
	title->due_ns = last ? UINT64_MAX : now_ns + title->pause_ns;
	title->pause_ns = title->pause_ns < LONGEST_PAUSE_NS / 2 ? title->pause_ns * 2 : LONGEST_PAUSE_NS;
}

void title_done(struct title *title)
{
	json_decref(title->argv);
	free(title->command);
	free(title->text);
}
