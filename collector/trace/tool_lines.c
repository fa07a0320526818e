/*
 * tool_lines.c - see tool_lines.h.
 */
#include "trace/tool_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void end_line(struct tool_lines *lines)
{
	lines->line[lines->used] = '\0';
	if (!lines->skips)
		lines->take(lines, lines->line);
	lines->used = 0;
	lines->skips = false;
}

static void take_bytes(struct tool_lines *lines, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n')
			end_line(lines);
		else if (lines->used + 1 < sizeof(lines->line))
			lines->line[lines->used++] = bytes[i];
		else
			lines->skips = true;
	}
}

static void close_source(struct tool_lines *lines)
{
	if (!lines->open)
		return;
	loop_remove(lines->loop, &lines->source);
	close(lines->source.fd);
	lines->open = false;
}

static void lines_ready(struct loop_source *source)
{
	struct tool_lines *lines = LOOP_OWNER(source, struct tool_lines, source);
	char bytes[4096];
	ssize_t count = read(source->fd, bytes, sizeof(bytes));

	if (count > 0)
		take_bytes(lines, bytes, (size_t)count);
	else if (count == 0 || (errno != EAGAIN && errno != EINTR))
		close_source(lines);
}

bool tool_lines_send(struct tool_lines *lines, uint64_t number)
{
	char line[32];
	int length = snprintf(line, sizeof(line), "%llu\n", (unsigned long long)number);

	return lines->input >= 0 && lines->run.running && write(lines->input, line, (size_t)length) == length;
}

void tool_lines_finish(struct tool_lines *lines)
{
	if (lines->started && lines->input >= 0)
		close(lines->input);
	lines->input = -1;
}

/* Both ends of evprof's are closed by the caller; it has copies. */
static int start(struct tool_lines *lines, const char *const *argv, const int input[2], const int output[2])
{
	int error;

	fcntl(output[0], F_SETFL, O_NONBLOCK);
	fcntl(input[1], F_SETFL, O_NONBLOCK);
	lines->source = (struct loop_source){.fd = output[0], .ready = lines_ready};
	error = loop_add(lines->loop, &lines->source);
	if (error)
		return error;
	lines->open = true;
	lines->run.input = input[0];
	lines->run.output = output[1];
	tool_run_start(&lines->run, lines->loop, argv);
	return 0;
}

int tool_lines_start(struct tool_lines *lines, struct loop *loop, const char *const *argv)
{
	int input[2] = {-1, -1}, output[2] = {-1, -1}, error = 0;

	lines->loop = loop;
	lines->input = -1;
	lines->started = true;
	if (pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0)
		error = -errno;
	if (!error)
		error = start(lines, argv, input, output);
	if (!error)
		lines->input = input[1];
	for (int i = 0; i < 4; i++) {
		int fd = i < 2 ? input[i] : output[i - 2];

		if (fd >= 0 && (error || i == 0 || i == 3))
			close(fd);
	}
	return error;
}

bool tool_lines_run(const struct tool_lines *lines)
{
	return lines->open || lines->run.running;
}

void tool_lines_wait(struct tool_lines *lines, int ms)
{
	if (!tool_lines_run(lines))
		return;
	tool_run_wait(&lines->run, ms);
	if (!lines->run.running)
		close_source(lines);
}

void tool_lines_stop(struct tool_lines *lines, bool leave)
{
	if (!lines->started)
		return;
	tool_lines_finish(lines);
	close_source(lines);
	if (leave)
		tool_run_leave(&lines->run);
	else
		tool_run_kill(&lines->run);
}
