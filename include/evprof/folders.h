/*
 * folders.h - makes the folders of a trace's path: evprof run before the program starts, a collector before it creates
 * the trace.
 */
#ifndef EVPROF_FOLDERS_H
#define EVPROF_FOLDERS_H

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Makes the folders above the last slash of a path. Returns 0 or -errno. */
static inline int folders_make(const char *path)
{
	char folder[PATH_MAX];
	size_t length = strlen(path);
	const char *last = strrchr(path, '/');
	struct stat status;

	if (length >= sizeof(folder))
		return -ENAMETOOLONG;
	for (const char *slash = strchr(path, '/'); last && slash <= last; slash = strchr(slash + 1, '/')) {
		length = (size_t)(slash - path);
		memcpy(folder, path, length);
		folder[length] = 0;
		if (length && stat(folder, &status) < 0 && mkdir(folder, 0777) < 0 && errno != EEXIST)
			return -errno;
		if (slash == last)
			break;
	}
	return 0;
}

#endif
