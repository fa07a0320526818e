/*
 * places.c - see places.h. Called by cmd/run.c.
 */
#include "run/places.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/proc.h"

#define LIBRARY "libevprof.so"
#define COLLECTOR "evprof-collector"

static char *own_directory(void)
{
	char path[PATH_MAX];
	char *slash = proc_own_path(path) < 0 ? NULL : strrchr(path, '/');

	if (!slash)
		return NULL;
	*slash = 0;
	return strdup(path);
}

/* The real path of directory/relative if it is accessible with that mode; else NULL. */
static char *usable_path(const char *directory, const char *relative, int mode)
{
	char *path = NULL;
	char *real = NULL;

	if (asprintf(&path, "%s/%s", directory, relative) < 0)
		return NULL;
	if (access(path, mode) == 0)
		real = realpath(path, NULL);
	free(path);
	return real;
}

/*
 * Whether LD_PRELOAD can hold the path. ld.so splits it at spaces and colons and expands words after '$', without a way
 * to quote.
 */
static int preloadable(const char *path)
{
	return path[strcspn(path, " :$\t\n")] == 0;
}

static const char *place_for_link(void)
{
	static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *place = getenv(variables[i]);

		if (place && place[0] == '/' && preloadable(place) && access(place, W_OK | X_OK) == 0)
			return place;
	}
	return "/tmp";
}

static int make_link(struct run_places *places)
{
	char *directory;

	if (asprintf(&directory, "%s/evprof-XXXXXX", place_for_link()) < 0)
		return -ENOMEM;
	if (!mkdtemp(directory)) { /* mode 0700: no other user can put another library there */
		int error = -errno;

		free(directory);
		return error;
	}
	places->directory = directory;
	if (asprintf(&places->preload, "%s/" LIBRARY, places->directory) < 0) {
		places->preload = NULL;
		return -ENOMEM;
	}
	return symlink(places->library, places->preload) < 0 ? -errno : 0;
}

static int make_preload(struct run_places *places)
{
	int error;

	if (preloadable(places->library)) {
		places->preload = strdup(places->library);
		return places->preload ? 0 : -1;
	}
	error = make_link(places);
	if (!error)
		return 0;
	fprintf(
	    stderr,
	    "evprof run: the path of %s has a space, a colon or a dollar sign, and no link to it could be made: %s; "
	    "set TMPDIR to a writable directory\n",
	    places->library, strerror(-error));
	return -1;
}

int run_places_find(struct run_places *places)
{
	char *directory = own_directory();

	memset(places, 0, sizeof(*places));
	if (directory) {
		places->library = usable_path(directory, LIBRARY, R_OK);
		if (!places->library)
			places->library = usable_path(directory, "../lib/evprof/" LIBRARY, R_OK);
		places->collector = usable_path(directory, COLLECTOR, X_OK);
	}
	if (places->library && places->collector) {
		free(directory);
		return make_preload(places);
	}
	if (directory)
		fprintf(stderr, "evprof run: there is no %s in %s%s; build or install evprof anew\n",
			places->library ? COLLECTOR : LIBRARY, directory,
			places->library ? "" : " or its ../lib/evprof");
	else
		fprintf(stderr, "evprof run: without /proc its own folder is not known; start it by its path\n");
	free(directory);
	return -1;
}

void run_places_done(struct run_places *places, int keep)
{
	if (places->directory && !keep) {
		if (places->preload)
			unlink(places->preload);
		rmdir(places->directory);
	}
	free(places->library);
	free(places->collector);
	free(places->preload);
	free(places->directory);
	memset(places, 0, sizeof(*places));
}
