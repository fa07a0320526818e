/*
 * shown_path.h - a path as the user would type it, for the closing line. It is relative if below the working directory,
 * quoted where a shell needs it, and $'...' where a terminal would not show it unchanged. So the command in the closing
 * line can be copied.
 */
#ifndef EVPROF_SHOWN_PATH_H
#define EVPROF_SHOWN_PATH_H

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "evprof/shown_text.h"

#define SHOWN_PATH_BYTES (4 * PATH_MAX)

static inline const char *shown_path_relative(const char *path)
{
	static char directory[PATH_MAX];
	size_t length;

	if (!getcwd(directory, sizeof(directory)))
		return path;
	length = strlen(directory);
	return length > 1 && strncmp(path, directory, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

/* text has SHOWN_PATH_BYTES. Returns text, or part of path where that is too long. */
static inline const char *shown_path(const char *path, char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
	char *to = text;
	bool shows;

	path = shown_path_relative(path);
	if (strlen(path) >= PATH_MAX - 2)
		return path;
	if (path[strspn(path, plain)] == 0) {
		sprintf(text, "%s%s", path[0] == '-' ? "./" : "", path);
		return text;
	}
	shows = shown_is_plain(path, strlen(path));
	to = stpcpy(to, shows ? "'" : "$'");
	if (path[0] == '-')
		to = stpcpy(to, "./");
	for (; *path; path++) {
		if (!shows && !strchr(plain, *path))
			to += sprintf(to, "\\x%02x", (unsigned char)*path);
		else if (*path == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *path;
	}
	strcpy(to, "'");
	return text;
}

#endif
