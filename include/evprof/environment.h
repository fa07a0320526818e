/*
 * environment.h - the variables that a private collector and its samplers inherit. All others are meant for the
 * program: a library that LD_LIBRARY_PATH finds for it, or a setting of its loader or allocator, could crash a
 * collector.
 */
#ifndef EVPROF_ENVIRONMENT_H
#define EVPROF_ENVIRONMENT_H

#include <stdbool.h>
#include <string.h>

static inline bool environment_is_collectors(const char *variable)
{
	static const char *const names[] = {"TZ=",	     "TZDIR=",	       "TMPDIR=",	"ASAN_OPTIONS=",
					    "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "GCOV_PREFIX="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/*
 * Copies those of a process's environment (NULL after clearenv()) to out, with a NULL at the end. room: pointers in
 * out.
 */
static inline void environment_copy(char *const *environment, char **out, size_t room)
{
	size_t count = 0;

	for (; environment && *environment && count + 1 < room; environment++)
		if (environment_is_collectors(*environment))
			out[count++] = *environment;
	out[count] = NULL;
}

#endif
