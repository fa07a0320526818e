/* start_time.c - see start_time.h. */
#include "base/start_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "evprof/proc.h"
#include "evprof/time_namespace.h"

uint64_t start_time_of(pid_t pid, char *state)
{
	char path[32] = "/proc/self/stat", line[1024], *at;

	if (pid > 0 && !proc_is_ours())
		return 0;
	if (pid > 0)
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	/* The second field, the name, may hold anything, so count from its last ')'. */
	if (text_read_file(path, line, sizeof(line)) <= 0 || !(at = strrchr(line, ')')) || !at[1])
		return 0;
	if (state)
		*state = at[2];
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? time_namespace_start(strtoull(at, NULL, 10)) : 0;
}
