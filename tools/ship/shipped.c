/* shipped.c - see shipped.h. */
#include "ship/shipped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/grow.h"

#define SHIPPED_NEW SHIPPED_FILE ".new"

struct shipped_one *shipped_find(struct shipped *shipped, const char *name, uint64_t size_bytes, int64_t changed_ns)
{
	struct shipped_one *one;

	for (size_t i = 0; i < shipped->count; i++) {
		one = &shipped->at[i];
		if (one->size_bytes == size_bytes && one->changed_ns == changed_ns && strcmp(one->name, name) == 0)
			return one;
	}
	if (grow_by_one(&shipped->at, &shipped->allocated, shipped->count, sizeof(*shipped->at)) < 0)
		return NULL;
	one = &shipped->at[shipped->count];
	*one = (struct shipped_one){.name = strdup(name), .size_bytes = size_bytes, .changed_ns = changed_ns};
	shipped->count += one->name != NULL;
	return one->name ? one : NULL;
}

static void load_line(struct shipped *shipped, const char *line)
{
	struct shipped_one *one;
	uint64_t size_bytes;
	int64_t changed_ns;
	int at = 0;

	if (sscanf(line, "%" SCNu64 " %" SCNd64 " %n", &size_bytes, &changed_ns, &at) < 2 || !at || !line[at])
		return;
	one = shipped_find(shipped, line + at, size_bytes, changed_ns);
	if (one)
		one->done = true;
}

int shipped_load(struct shipped *shipped, int folder)
{
	int fd = openat(folder, SHIPPED_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t allocated = 0;
	ssize_t length;

	if (!file && fd >= 0)
		close(fd);
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while ((length = getline(&line, &allocated, file)) > 0) {
		line[length - 1] = line[length - 1] == '\n' ? 0 : line[length - 1];
		load_line(shipped, line);
	}
	free(line);
	fclose(file);
	return 0;
}

static int write_lines(const struct shipped *shipped, FILE *file)
{
	for (size_t i = 0; i < shipped->count; i++) {
		const struct shipped_one *one = &shipped->at[i];

		/* A name with a line end would be two lines: it is shipped again after a restart. */
		if (one->done && one->there && !strchr(one->name, '\n'))
			fprintf(file, "%" PRIu64 " %" PRId64 " %s\n", one->size_bytes, one->changed_ns, one->name);
	}
	return ferror(file) ? -EIO : 0;
}

int shipped_save(const struct shipped *shipped, int folder)
{
	int fd = openat(folder, SHIPPED_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int error;

	if (!file) {
		error = -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	error = write_lines(shipped, file);
	if (fclose(file) && !error)
		error = -errno;
	if (!error && renameat(folder, SHIPPED_NEW, folder, SHIPPED_FILE) < 0)
		error = -errno;
	return error;
}

void shipped_done(struct shipped *shipped)
{
	for (size_t i = 0; i < shipped->count; i++)
		free(shipped->at[i].name);
	free(shipped->at);
	*shipped = (struct shipped){0};
}
