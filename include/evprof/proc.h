/*
 * proc.h - what /proc says of processes, with replacements where it is missing or that of another pid namespace. There,
 * a pid in its paths is that of another process. Any thread; needs no memory; errno may change.
 *
 * Library and collector may be in different time namespaces, so times that both compare are without the offsets of
 * these. This includes the start times of processes, in ticks of the clock "boottime", which distinguish processes that
 * had the same pid.
 */
#ifndef EVPROF_PROC_H
#define EVPROF_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Whether pids in /proc are those of our pid namespace. */
static inline bool proc_is_ours(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && atol(self) == (long)getpid();
}

/* The executable of this process. Returns the length of its path, or -errno. */
static inline ssize_t proc_own_path(char path[PATH_MAX])
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length < 0 && (!started || !realpath(started, path)))
		return -errno;
	if (length >= 0)
		path[length] = 0;
	return (ssize_t)strlen(path);
}

/* Reads a whole small file, NUL-terminated. Returns its length or -errno; a longer file is cut. */
static inline ssize_t proc_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = 0;
	return n < 0 ? -EIO : (ssize_t)used;
}

/* The same of /proc/PID/name, or of /proc/PID/task/TID/name; tid 0: of the process. */
static inline ssize_t proc_read_of(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return proc_read(path, text, size);
}

/*
 * What stands behind a name in /proc/PID/status, or that of the thread: "\nName:". NULL: it cannot be read. text: place
 * for the file.
 */
static inline char *proc_status_of(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char *line = proc_read_of(pid, tid, "status", text, size) > 0 ? strstr(text, name) : NULL;

	return line ? line + strlen(name) : NULL;
}

/* The argument that names the program: a script, a module after -m, or NULL. */
static inline const char *proc_program_argument(const char *arguments, ssize_t size)
{
	for (const char *p = arguments + strlen(arguments) + 1; p < arguments + size; p += strlen(p) + 1) {
		if (p[0] != '-')
			return p;
		if (!strcmp(p, "-m"))
			return p + 3 < arguments + size ? p + 3 : NULL;
		if (!strncmp(p, "-m", 2) && p[2])
			return p + 2;
		if (p[1] == 'c' || !p[1])
			return NULL;
		if (!strcmp(p, "-W") || !strcmp(p, "-X"))
			p += 3; /* its value is the next argument */
	}
	return NULL;
}

/*
 * The script or module of a process for file names: [A-Za-z0-9._-] only. arguments: its /proc/PID/cmdline, as
 * proc_read() gave it; bytes at most 0: it has none.
 */
static inline void proc_program_name(const char *arguments, ssize_t bytes, char *out, size_t size)
{
	const char *program = bytes > 0 ? arguments : "python", *slash;
	size_t used = 0, length;

	slash = strrchr(program, '/');
	program = slash ? slash + 1 : program;
	if (bytes > 0 && !strncmp(program, "python", 6)) {
		const char *script = proc_program_argument(arguments, bytes);

		if (script) {
			slash = strrchr(script, '/');
			program = slash ? slash + 1 : script;
		}
	}
	length = strlen(program);
	if (length > 3 && !strcmp(program + length - 3, ".py"))
		length -= 3;
	for (size_t i = 0; i < length && used < size - 1 && used < 64; i++) {
		char c = program[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			     c == '-' || (c == '.' && i > 0);

		out[used++] = plain ? c : '_';
	}
	if (!used)
		out[used++] = '_';
	out[used] = 0;
}

/* Whether each user has a number in this process's user namespace, as in the first one: 65534 is a user like others. */
static inline bool proc_has_all_users(void)
{
	unsigned long first, stands_for, count;
	char map[256];

	return proc_read("/proc/self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%lu %lu %lu", &first, &stands_for, &count) == 3 && !first && !stands_for &&
	       count == UINT32_MAX;
}

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

	if (!time_namespace_is_known() || proc_read("/proc/self/timens_offsets", text, sizeof(text)) < 0)
		return 0;
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

/* The position before a field of a line of /proc/PID/stat. The second field, the name, may hold anything. */
static inline const char *proc_stat_field(const char *line, int number)
{
	const char *at = strrchr(line, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at;
}

/*
 * When a process started: field 22 of /proc/PID/stat; pid 0: of this process; 0: it cannot be read. state: gets the
 * state letter. exit_code: gets the status of a zombie as wait() returns it; -1: not known. Both may be NULL.
 */
static inline uint64_t proc_start_time(pid_t pid, char *state, int *exit_code)
{
	char path[32] = "/proc/self/stat", line[1024];
	const char *letter, *start, *code;

	if (pid > 0 && !proc_is_ours())
		return 0;
	if (pid > 0)
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (proc_read(path, line, sizeof(line)) <= 0)
		return 0;
	letter = proc_stat_field(line, 2);
	start = proc_stat_field(line, 22);
	code = proc_stat_field(line, 52);
	if (state && letter && letter[1])
		*state = letter[2];
	if (exit_code && (!code || sscanf(code, "%d", exit_code) != 1))
		*exit_code = -1;
	return start ? time_namespace_start(strtoull(start, NULL, 10)) : 0;
}

#endif
