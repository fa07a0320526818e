/*
 * source.c - from co_filename to a file. See source.h.
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

void source_say_missing(const char *verb, struct text name, const char *where, int error)
{
	struct output shown;

	if (output_open_memory(&shown) < 0)
		return;
	output_line(&shown, name); /* a terminal does what control characters say */
	output_char(&shown, '\0');
	if (!shown.error)
		fprintf(stderr, "evprof %s: the source %s is not %s: %s\n", verb, shown.buffer, where,
			error == -EINVAL ? "no regular file" : strerror(-error));
	output_abandon(&shown);
}
