/*
 * symbols_open.c - see symbols_open.h. Part of evprof-symbols.
 *
 * The path is walked here, name by name. The kernel never gets ".." and never follows a link, so no path leads above
 * the root, even if files are renamed meanwhile. openat2() does the same from Linux 5.6 on, but its flags are invisible
 * to a seccomp filter.
 */
#include "symbols/symbols_open.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 128
#define LINKS_MAX 40 /* as in the kernel */

struct walk {
	int steps[1 + DEPTH_MAX]; /* the root, and the folders from it to the current one */
	unsigned depth;
	unsigned links;
	char path[PATH_MAX]; /* the rest of the path; the whole path until the first link */
};

static void step_back(struct walk *walk)
{
	if (walk->depth)
		close(walk->steps[walk->depth--]);
}

/* Puts the target of a link in front of the rest of the path. */
static bool follow_link(struct walk *walk, int link, const char *rest)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(link, "", text, sizeof(text));

	if (length <= 0 || ++walk->links > LINKS_MAX || (size_t)length + 1 + strlen(rest) >= sizeof(walk->path))
		return false;
	memmove(walk->path + length + 1, rest, strlen(rest) + 1);
	memcpy(walk->path, text, (size_t)length);
	walk->path[length] = '/';
	while (text[0] == '/' && walk->depth)
		step_back(walk);
	return true;
}

/* Walks one name further. rest: the path after the name; set anew after a link. */
static bool enter_component(struct walk *walk, const char *name, const char **rest)
{
	int fd = openat(walk->steps[walk->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	bool done;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISLNK(status.st_mode)) {
		done = follow_link(walk, fd, *rest);
		close(fd);
		*rest = walk->path;
		return done;
	}
	if (walk->depth == DEPTH_MAX) {
		close(fd);
		return false;
	}
	walk->steps[++walk->depth] = fd;
	return true;
}

static bool walk_path(struct walk *walk)
{
	const char *rest = walk->path;
	char name[NAME_MAX + 1];

	while (*(rest += strspn(rest, "/"))) {
		size_t length = strcspn(rest, "/");

		if (length >= sizeof(name))
			return false;
		memcpy(name, rest, length);
		name[length] = '\0';
		rest += length;
		if (!strcmp(name, ".."))
			step_back(walk);
		else if (strcmp(name, ".") != 0 && !enter_component(walk, name, &rest))
			return false;
	}
	return true;
}

/* Checks the type before opening the file: opening a device may have effects. */
static int open_found(int found, struct stat *status)
{
	char name[64];

	if (fstat(found, status) < 0 || !S_ISREG(status->st_mode))
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int symbols_open(int root, const char *path, struct stat *status)
{
	struct walk walk = {.steps = {root}};
	int fd = -1;

	if (strlen(path) < sizeof(walk.path)) {
		strcpy(walk.path, path);
		if (walk_path(&walk) && walk.depth)
			fd = open_found(walk.steps[walk.depth], status);
	}
	while (walk.depth)
		step_back(&walk);
	return fd;
}
