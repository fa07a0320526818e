/*
 * spool.c - see spool.h.
 */
#include "push/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/system_calls.h"
#include "util/grow.h"

#define NAME_BYTES 32
#define TEMPORARY "new.tmp"

static void name_of(const struct push_spool *spool, uint64_t number, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%020" PRIu64 ".%s", number, spool->kind);
}

static int append(struct push_spool *spool, struct push_spool_item item)
{
	if (spool->first > spool->count / 2) {
		spool->count -= spool->first;
		memmove(spool->items, spool->items + spool->first, spool->count * sizeof(*spool->items));
		spool->first = 0;
	}
	if (grow_by_one(&spool->items, &spool->allocated, spool->count, sizeof(*spool->items)))
		return -ENOMEM;
	spool->items[spool->count++] = item;
	spool->bytes += item.bytes;
	return 0;
}

static bool is_empty(const struct push_spool *spool)
{
	return spool->first == spool->count;
}

static void remove_first(struct push_spool *spool, bool was_sent)
{
	struct push_spool_item *item = &spool->items[spool->first++];
	char name[NAME_BYTES];

	name_of(spool, item->number, name);
	if (!item->body)
		unlinkat(spool->folder_fd, name, 0);
	free(item->body);
	spool->bytes -= item->bytes;
	spool->dropped += !was_sent;
	spool->dropped_bytes += was_sent ? 0 : item->bytes;
}

/* Drops the oldest one that is not being sent. False: there is none. */
static bool drop_oldest(struct push_spool *spool)
{
	struct push_spool_item *oldest = spool->items + spool->first;

	if (is_empty(spool))
		return false;
	if (oldest->number == spool->sending) {
		struct push_spool_item sending = oldest[0];

		if (spool->count - spool->first < 2)
			return false;
		oldest[0] = oldest[1];
		oldest[1] = sending;
	}
	remove_first(spool, false);
	return true;
}

/* --- what an earlier process left --- */

static int compare_items(const void *a, const void *b)
{
	return compare_u64(((const struct push_spool_item *)a)->number, ((const struct push_spool_item *)b)->number);
}

static int take_file(struct push_spool *spool, const char *name)
{
	struct stat status;
	uint64_t number;
	char again[NAME_BYTES];

	if (sscanf(name, "%20" SCNu64, &number) != 1 || number == UINT64_MAX)
		return 0;
	name_of(spool, number, again);
	if (strcmp(name, again) != 0 || fstatat(spool->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(status.st_mode))
		return 0;
	spool->next = number >= spool->next ? number + 1 : spool->next;
	return append(spool, (struct push_spool_item){.number = number, .bytes = (size_t)status.st_size});
}

static int find_files(struct push_spool *spool)
{
	int fd = dup(spool->folder_fd), error = 0;
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder)
		return -errno;
	while (!error && (entry = readdir(folder)))
		error = take_file(spool, entry->d_name);
	closedir(folder);
	if (spool->count)
		qsort(spool->items, spool->count, sizeof(*spool->items), compare_items);
	while (!error && spool->bytes > spool->limit_bytes)
		remove_first(spool, false);
	return error;
}

static bool cannot_open(struct push_spool *spool, const char *folder, int error, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "cannot use the folder %.200s: %s", folder,
		 error == EWOULDBLOCK ? "another evprof push uses it" : strerror(error));
	push_spool_close(spool);
	return false;
}

bool push_spool_open(struct push_spool *spool, const char *folder, const char *kind, size_t limit_bytes, char *why,
		     size_t why_bytes)
{
	int error;

	*spool =
	    (struct push_spool){.kind = kind, .folder_fd = -1, .lock_fd = -1, .limit_bytes = limit_bytes, .next = 1};
	if (!folder)
		return true;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return cannot_open(spool, folder, errno, why, why_bytes);
	spool->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (spool->folder_fd < 0)
		return cannot_open(spool, folder, errno, why, why_bytes);
	spool->lock_fd = openat(spool->folder_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (spool->lock_fd < 0 || flock(spool->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return cannot_open(spool, folder, errno, why, why_bytes);
	error = find_files(spool);
	return error ? cannot_open(spool, folder, -error, why, why_bytes) : true;
}

/* --- requests --- */

static int write_file(const struct push_spool *spool, uint64_t number, const void *body, size_t bytes)
{
	char name[NAME_BYTES];
	int fd, error;

	unlinkat(spool->folder_fd, TEMPORARY, 0);
	fd = openat(spool->folder_fd, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	error = system_write_all(fd, body, bytes);
	if (close(fd) < 0 && !error)
		error = -errno;
	name_of(spool, number, name);
	if (!error && renameat(spool->folder_fd, TEMPORARY, spool->folder_fd, name) < 0)
		error = -errno;
	if (error)
		unlinkat(spool->folder_fd, TEMPORARY, 0);
	return error;
}

static int copy_body(struct push_spool_item *item, const void *body)
{
	item->body = malloc(item->bytes + 1);
	if (!item->body)
		return -ENOMEM;
	memcpy(item->body, body, item->bytes);
	return 0;
}

int push_spool_add(struct push_spool *spool, const void *body, size_t bytes)
{
	struct push_spool_item item = {.number = spool->next++, .bytes = bytes};
	int error = bytes > spool->limit_bytes ? -EFBIG : 0;

	while (!error && spool->bytes + bytes > spool->limit_bytes && drop_oldest(spool))
		;
	if (!error)
		error = spool->folder_fd < 0 ? copy_body(&item, body) : write_file(spool, item.number, body, bytes);
	if (!error)
		error = append(spool, item);
	if (!error)
		return 0;
	free(item.body);
	spool->dropped++;
	spool->dropped_bytes += bytes;
	return error;
}

static uint8_t *read_file(const struct push_spool *spool, const struct push_spool_item *item)
{
	char name[NAME_BYTES];
	uint8_t *body = malloc(item->bytes + 1);
	size_t used = 0;
	ssize_t length = 1;
	int fd;

	name_of(spool, item->number, name);
	fd = body ? openat(spool->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	while (fd >= 0 && used < item->bytes && length > 0) {
		length = read(fd, body + used, item->bytes - used);
		used += length > 0 ? (size_t)length : 0;
	}
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && used == item->bytes)
		return body;
	free(body);
	return NULL;
}

bool push_spool_first(struct push_spool *spool, uint8_t **body, size_t *bytes)
{
	while (!is_empty(spool)) {
		struct push_spool_item *item = &spool->items[spool->first];

		*bytes = item->bytes;
		*body = item->body ? malloc(item->bytes + 1) : read_file(spool, item);
		if (*body && item->body)
			memcpy(*body, item->body, item->bytes);
		spool->sending = item->number;
		if (*body)
			return true;
		remove_first(spool, false);
	}
	return false;
}

void push_spool_remove(struct push_spool *spool, bool was_sent)
{
	spool->sending = 0;
	remove_first(spool, was_sent);
}

void push_spool_keep(struct push_spool *spool)
{
	spool->sending = 0;
}

void push_spool_close(struct push_spool *spool)
{
	while (spool->folder_fd < 0 && !is_empty(spool))
		remove_first(spool, false);
	free(spool->items);
	spool->items = NULL;
	spool->first = spool->count = spool->allocated = 0;
	if (spool->folder_fd >= 0)
		close(spool->folder_fd);
	if (spool->lock_fd >= 0)
		close(spool->lock_fd);
}
