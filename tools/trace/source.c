/*
 * source.c - from co_filename to a file. See source.h.
 */
#include "trace/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/output.h"

#define SOURCE_MAX_BYTES (16 << 20)

bool source_is_file(struct text name)
{
	if (!name.length || text_same(name, text_of("~")) || text_same(name, text_of("?")))
		return false;
	return name.at[0] != '<' || name.at[name.length - 1] != '>';
}

/* Whether the kernel generates the file on reading, such as the environment of the reader. */
static bool is_kernels(int fd)
{
	struct statfs system;

	if (fstatfs(fd, &system) < 0)
		return true;
	switch (system.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
		return true;
	}
	return false;
}

/* Checks the file itself, not a link to it, which may have any name. */
static bool has_pythons_ending(int fd)
{
	static const char *const endings[] = {".py", ".pyw", ".pyx", ".pxd", ".pxi", ".pyi"};
	char link[32], path[PATH_MAX];
	ssize_t length;
	const char *dot;
	size_t i;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	dot = strrchr(path, '.');
	for (i = 0; dot && i < sizeof(endings) / sizeof(*endings); i++)
		if (strcmp(dot, endings[i]) == 0)
			return true;
	return false;
}

static bool names_python(const char *line)
{
	const char *end = strchrnul(line, '\n'), *name = strstr(line, "python");

	return line[0] == '#' && line[1] == '!' && name && name < end;
}

/* Checks the whole file: text has no NUL byte. Returns 0 or -errno. */
static int check_content(int fd, bool any)
{
	char bytes[1 << 14];
	bool first = true;
	ssize_t length;
	off_t at = 0;

	while ((length = pread(fd, bytes, sizeof(bytes) - 1, at)) > 0) {
		bytes[length] = 0;
		if (strlen(bytes) != (size_t)length)
			return -EILSEQ;
		if (first && !any && !names_python(bytes) && !has_pythons_ending(fd))
			return -ENOEXEC;
		first = false;
		at += length;
	}
	return length < 0 ? -errno : 0;
}

/*
 * A trace may name any file. A pipe would block, a device may have side effects, and a file that is not source code may
 * hold what its owner does not want in output that is passed on.
 */
static int open_checked(const char *path, bool any)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = 0;
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || is_kernels(fd))
		error = -EINVAL;
	else if (status.st_size > SOURCE_MAX_BYTES)
		error = -EFBIG;
	else
		error = check_content(fd, any);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int source_open(const struct trace *trace, uint32_t process, struct text name, bool any)
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
	fd = open_checked(path, any);
	if (fd < 0 && *directory)
		fd = open_checked(path + strlen(directory) + 1, any);
	return fd;
}

bool source_is_newer(const struct trace *trace, int fd)
{
	struct stat status;
	int64_t ended_ns, written_ns;

	if (!trace->clock_count || fstat(fd, &status) < 0)
		return false;
	ended_ns = trace_realtime_offset(trace) + trace->end_ns;
	written_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	return written_ns > ended_ns;
}

static const char *error_text(int error)
{
	if (error == -EINVAL)
		return "not a regular file";
	if (error == -EILSEQ)
		return "not text";
	if (error == -ENOEXEC)
		return "neither its name nor its first line is Python's; --all-sources includes it";
	return strerror(-error);
}

/* Prints "evprof VERB: the source NAME REST". */
static void print_source_message(const char *verb, struct text name, const char *rest)
{
	struct output shown;

	if (output_open_memory(&shown) < 0)
		return;
	output_line(&shown, name); /* escaped, because a terminal obeys control characters */
	output_char(&shown, '\0');
	if (!shown.error)
		output_message("evprof %s: the source %s %s", verb, shown.buffer, rest);
	output_abandon(&shown);
}

void source_warn_newer(const char *verb, struct text name)
{
	print_source_message(verb, name, "has changed since the recording: its lines may not be those that ran");
}

void source_warn_missing(const char *verb, struct text name, const char *where, int error)
{
	char rest[256];

	snprintf(rest, sizeof(rest), "is not %s: %s", where, error_text(error));
	print_source_message(verb, name, rest);
}
