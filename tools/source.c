/*
 * source.c - from co_filename to a file. See source.h.
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"

bool source_is_file(struct text name)
{
	if (!name.length || text_same(name, text_of("~")) || text_same(name, text_of("?")))
		return false;
	return name.at[0] != '<' || name.at[name.length - 1] != '>';
}

/* A trace may name anything: a pipe would block, a device might do something. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int source_open(const struct trace *trace, uint32_t process, struct text name)
{
	char path[2 * PATH_MAX];
	const char *directory = "";
	int fd;

	if (name.length >= PATH_MAX || memchr(name.at, 0, name.length))
		return -EINVAL;
	if (name.at[0] != '/' && process < trace->process_count && trace->processes[process])
		directory = trace_process_text(trace->processes[process], "cwd");
	if (strlen(directory) >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), "%s%s%.*s", directory, *directory ? "/" : "", (int)name.length, name.at);
	fd = open_regular(path);
	if (fd < 0 && *directory)
		fd = open_regular(path + strlen(directory) + 1);
	return fd;
}

bool source_is_newer(const struct trace *trace, int fd)
{
	struct stat status;
	int64_t ended_ns, written_ns;

	if (!trace->clock_count || fstat(fd, &status) < 0)
		return false;
	ended_ns = (int64_t)(trace->clocks[0].realtime_ns - trace->clocks[0].monotonic_ns) + trace->end_ns;
	written_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	return written_ns > ended_ns;
}

/* "evprof VERB: the source NAME REST" */
static void say(const char *verb, struct text name, const char *rest)
{
	struct output shown;

	if (output_open_memory(&shown) < 0)
		return;
	output_line(&shown, name); /* a terminal does what control characters say */
	output_char(&shown, '\0');
	if (!shown.error)
		fprintf(stderr, "evprof %s: the source %s %s\n", verb, shown.buffer, rest);
	output_abandon(&shown);
}

void source_say_newer(const char *verb, struct text name)
{
	say(verb, name, "has changed since the recording: its lines may not be those that ran");
}

void source_say_missing(const char *verb, struct text name, const char *where, int error)
{
	char rest[256];

	snprintf(rest, sizeof(rest), "is not %s: %s", where, error == -EINVAL ? "no regular file" : strerror(-error));
	say(verb, name, rest);
}
