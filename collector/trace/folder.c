/*
 * folder.c - see folder.h. Called by collector.c between rounds, and by trace_output.c before it writes.
 */
#include "trace/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "trace/folder_list.h"

#define PASS_NS UINT64_C(10000000000)
#define SHORT_PASS_NS UINT64_C(1000000000) /* when the disk is short */
#define MORE_PASS_NS UINT64_C(100000000)   /* when more is to be removed */
#define FRESH_NS UINT64_C(5000000000)
#define REMOVALS_MAX 16u /* in a pass: programs wait for us meanwhile */
#define MARGIN_MAX_BYTES (UINT64_C(64) << 20)

static bool has_limits(const struct folder *folder)
{
	return folder->limits.keep_bytes || folder->limits.keep_s || folder->limits.free_bytes;
}

/* What the file system has left; UINT64_MAX: not known. */
static uint64_t disk_free(const struct folder *folder)
{
	struct statvfs disk;

	return statvfs(folder->path, &disk) < 0 ? UINT64_MAX : (uint64_t)disk.f_bavail * disk.f_frsize;
}

/* Traces are removed a little earlier than writing stops. */
static bool is_short(const struct folder *folder, uint64_t free_bytes)
{
	uint64_t least = folder->limits.free_bytes, margin = least / 8;

	return least && free_bytes < least + (margin < MARGIN_MAX_BYTES ? margin : MARGIN_MAX_BYTES);
}

static bool is_old(const struct folder *folder, const struct folder_file *file)
{
	int64_t age_ns = (int64_t)clock_realtime_ns() - file->modified_ns;

	return folder->limits.keep_s && age_ns > 0 && (uint64_t)age_ns / 1000000000 >= folder->limits.keep_s;
}

/* NULL: the trace may stay. */
static const char *reason_to_remove(const struct folder *folder, const struct folder_file *file)
{
	if (is_old(folder, file))
		return "--keep-for";
	if (folder->limits.keep_bytes && folder->bytes > folder->limits.keep_bytes)
		return "--keep";
	return folder->limits.free_bytes && is_short(folder, disk_free(folder)) ? "--min-free" : NULL;
}

/* Oldest first, and traces before other files. */
static int compare_ages(const void *one, const void *other)
{
	const struct folder_file *a = one, *b = other;

	if (a->trace != b->trace)
		return a->trace ? -1 : 1;
	return (a->modified_ns > b->modified_ns) - (a->modified_ns < b->modified_ns);
}

static unsigned remove_oldest(struct folder *folder, struct folder_list *list, int fd)
{
	unsigned removed = 0;
	const char *reason;

	if (list->count)
		qsort(list->files, list->count, sizeof(list->files[0]), compare_ages);
	for (size_t i = 0; i < list->count && removed < REMOVALS_MAX && list->files[i].trace; i++) {
		const struct folder_file *file = &list->files[i];
		int error;

		reason = reason_to_remove(folder, file);
		if (!reason)
			break;
		error = folder_remove(fd, file->path);
		if (error && error != -EBUSY && error != -EINVAL)
			log_warning("cannot remove %s/%s: %s", folder->path, file->path, strerror(-error));
		if (error)
			continue;
		log_info("removed %s/%s: %s", folder->path, file->path, reason);
		folder->bytes -= file->all_bytes < folder->bytes ? file->all_bytes : folder->bytes;
		removed++;
	}
	return removed;
}

/* Measures the folder, and removes what is over a limit if `removes`. */
static void look(struct folder *folder, bool removes, uint64_t now_ns)
{
	int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct folder_list list = {0};
	int error = fd < 0 ? -errno : folder_list_read(&list, fd);
	bool more = false;

	if (error) {
		log_warning("cannot list the folder %s: %s", folder->path, strerror(-error));
	} else {
		folder->bytes = list.bytes;
		more = removes && remove_oldest(folder, &list, fd) == REMOVALS_MAX;
	}
	folder->measured_ns = now_ns;
	if (removes)
		folder->next_ns = now_ns + (more ? MORE_PASS_NS : PASS_NS);
	folder_list_done(&list);
	if (fd >= 0)
		close(fd);
}

void folder_tend(struct folder *folder, uint64_t now_ns)
{
	if (folder->path && has_limits(folder) && now_ns >= folder->next_ns)
		look(folder, true, now_ns);
}

int folder_patience_us(const struct folder *folder, uint64_t now_ns)
{
	if (!folder->path || !has_limits(folder))
		return -1;
	return folder->next_ns > now_ns ? (int)((folder->next_ns - now_ns) / 1000) : 0;
}

uint64_t folder_bytes(struct folder *folder, uint64_t now_ns)
{
	if (folder->path && (!folder->measured_ns || now_ns - folder->measured_ns >= FRESH_NS))
		look(folder, false, now_ns);
	return folder->bytes;
}

uint64_t folder_room(struct folder *folder, uint64_t now_ns)
{
	uint64_t least = folder->limits.free_bytes, free_bytes;

	if (!folder->path || !least)
		return UINT64_MAX;
	free_bytes = disk_free(folder);
	if (is_short(folder, free_bytes) && now_ns - folder->measured_ns >= SHORT_PASS_NS) {
		look(folder, true, now_ns);
		free_bytes = disk_free(folder);
	}
	if (free_bytes == UINT64_MAX)
		return free_bytes;
	return free_bytes > least ? free_bytes - least : 0;
}
