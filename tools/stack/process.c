/* process.c - see process.h. */
#include "stack/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "util/grow.h"

static int open_memory(struct process *process, char *why, size_t bytes)
{
	pid_t pid = process->target.pid;
	char path[64];

	process->remote = calloc(1, sizeof(*process->remote));
	if (!process->remote) {
		snprintf(why, bytes, "no memory");
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	process->remote->fd = open(path, O_RDONLY | O_CLOEXEC);
	remote_refresh(process->remote);
	if (process->remote->fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		snprintf(why, bytes,
			 "the kernel forbids access to process %d: run evprof as root, or sysctl "
			 "kernel.yama.ptrace_scope=0; in a container give it --cap-add SYS_PTRACE",
			 (int)pid);
	else
		snprintf(why, bytes, "cannot read the memory of process %d: %s", (int)pid, strerror(errno));
	return -1;
}

/* --- ranges --- */

static int add_range(struct process *process, const struct process_range *range)
{
	if (grow_by_one(&process->ranges, &process->range_room, process->range_count, sizeof(*range)) < 0)
		return -ENOMEM;
	process->ranges[process->range_count++] = *range;
	return 0;
}

/*
 * A line of /proc/PID/maps. *end: of Python's file, and of the memory without a file that continues it. That has
 * Python's zeroed variables, then the heap, in the same line or the next one, where it is not at a random address.
 */
static int read_range(struct process *process, const char *line, uint64_t *end)
{
	uint64_t inode, python_end = process->target.python_end;
	struct process_range range = {0};
	char rights[8];
	int r = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &range.start, &range.end, rights, &inode) != 4)
		return 0;
	range.python = inode ? inode == process->target.python.inode : range.start == *end && range.start < python_end;
	if (range.python)
		*end = range.end;
	if (rights[1] != 'w')
		return 0;
	if (range.python && !inode && range.end > python_end) {
		r = add_range(process, &(struct process_range){range.start, python_end, true});
		range = (struct process_range){python_end, range.end, false};
	}
	return r == 0 ? add_range(process, &range) : r;
}

static int read_ranges(struct process *process)
{
	char path[64], *line = NULL;
	size_t size = 0;
	uint64_t end = 0;
	FILE *maps;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)process->target.pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (r == 0 && getline(&line, &size, maps) > 0)
		r = read_range(process, line, &end);
	free(line);
	fclose(maps);
	return r;
}

const struct process_range *process_range_of(const struct process *process, uint64_t address)
{
	size_t low = 0, high = process->range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (process->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->range_count && process->ranges[low].start <= address ? &process->ranges[low] : NULL;
}

/* --- threads --- */

static int add_thread(struct process *process, pid_t tid)
{
	struct process_thread thread = {.own = (uint32_t)tid, .tid = tid};

	if (process->target.own_pid != process->target.pid)
		thread.own = (uint32_t)target_own_id(process->target.pid, tid);
	if (grow_by_one(&process->threads, &process->thread_room, process->thread_count, sizeof(thread)) < 0)
		return -ENOMEM;
	process->threads[process->thread_count++] = thread;
	return 0;
}

static int read_threads(struct process *process)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process->target.pid);
	tasks = opendir(path);
	if (!tasks)
		return -errno;
	while (r == 0 && (entry = readdir(tasks)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			r = add_thread(process, (pid_t)atol(entry->d_name));
	closedir(tasks);
	return r;
}

pid_t process_tid(const struct process *process, uint32_t own)
{
	for (size_t i = 0; i < process->thread_count; i++)
		if (process->threads[i].own == own)
			return process->threads[i].tid;
	return 0;
}

/* --- both --- */

int process_open(struct process *process, pid_t pid, char *why, size_t bytes)
{
	int r;

	*process = (struct process){0};
	if (target_look(&process->target, pid, why, bytes) < 0 || open_memory(process, why, bytes) < 0)
		return -1;
	r = read_ranges(process);
	if (r == 0)
		r = read_threads(process);
	if (r == 0)
		return 0;
	snprintf(why, bytes, "cannot read /proc/%d: %s", (int)pid, strerror(-r));
	return -1;
}

void process_close(struct process *process)
{
	if (process->remote && process->remote->fd >= 0)
		close(process->remote->fd);
	free(process->remote);
	free(process->ranges);
	free(process->threads);
	*process = (struct process){0};
}
