/*
 * time_namespace.h - the offsets of a process's clocks in its time namespace.
 *
 * Library and collector may be in different time namespaces, so times that both compare are without these offsets. This
 * includes the start times of processes in /proc, in ticks of the clock "boottime", which distinguish processes that
 * had the same pid.
 */
#ifndef EVPROF_TIME_NAMESPACE_H
#define EVPROF_TIME_NAMESPACE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TIME_NAMESPACE_FIRST "time:[4026531834]"

/*
 * Whether this process is in a time namespace with known offsets: /proc/self/timens_offsets has those of its future
 * children.
 */
static inline bool time_namespace_is_known(void)
{
	char own[64] = "", next[64] = "";

	return readlink("/proc/self/ns/time", own, sizeof(own) - 1) > 0 && strcmp(own, TIME_NAMESPACE_FIRST) != 0 &&
	       readlink("/proc/self/ns/time_for_children", next, sizeof(next) - 1) > 0 && strcmp(own, next) == 0;
}

/* clock: "monotonic" or "boottime". In ns; 0 outside of a time namespace. */
static inline int64_t time_namespace_offset(const char *clock)
{
	char text[256];
	const char *line;
	long long seconds, ns;
	ssize_t length;
	int fd = time_namespace_is_known() ? open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = 0;
	line = strstr(text, clock);
	if (!line || sscanf(line + strlen(clock), "%lld %lld", &seconds, &ns) != 2)
		return 0;
	return seconds * 1000000000 + ns;
}

/* A start time of /proc/PID/stat without the offset of our time namespace. */
static inline uint64_t time_namespace_start(uint64_t ticks)
{
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);

	return ticks ? ticks - (uint64_t)(time_namespace_offset("boottime") / tick_ns) : 0;
}

/* Start times may differ by a tick: offsets need not be whole ticks. */
static inline bool time_namespace_same_start(uint64_t one, uint64_t other)
{
	return one - other + 1 <= 2;
}

#endif
