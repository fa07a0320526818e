/*
 * folder_list.c - see folder_list.h.
 *
 * Other users may make files in a shared folder at any time. So every step goes from a folder's descriptor to a name in
 * it, links are not followed, and what is removed is looked at once more by the descriptor that was checked.
 */
#include "trace/folder_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/trace.h"

#define DEPTH_MAX 16 /* of folders, which --output may have in it */
#define TRACE_ENDING_BYTES (sizeof(FOLDER_TRACE_ENDING) - 1)

static const char *const suffixes[] = CONTROL_FORMAT_SUFFIXES;

#define SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

static bool is_ours(const struct stat *status)
{
	return S_ISREG(status->st_mode) && status->st_uid == geteuid();
}

/* The bytes of the path without the ending of a trace; 0: it has not that ending. */
static size_t stem_bytes(const char *path)
{
	size_t length = strlen(path);

	if (length <= TRACE_ENDING_BYTES || strcmp(path + length - TRACE_ENDING_BYTES, FOLDER_TRACE_ENDING) != 0)
		return 0;
	return length - TRACE_ENDING_BYTES;
}

/* A trace that keeps its last stretch is sparse. Room may be reserved beyond the end of a file. */
static uint64_t bytes_of(const struct stat *status)
{
	uint64_t on_disk = (uint64_t)status->st_blocks * 512, bytes = (uint64_t)status->st_size;

	return on_disk < bytes ? on_disk : bytes;
}

static bool is_export(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < SUFFIXES; i++) {
		size_t bytes = strlen(suffixes[i]);

		if (length > bytes + 1 && name[length - bytes - 1] == '.' &&
		    strcmp(name + length - bytes, suffixes[i]) == 0)
			return true;
	}
	return false;
}

/* --- listing --- */

static int add_file(struct folder_list *list, const char *path, const struct stat *status)
{
	struct folder_file *files = list->files, *file;

	if ((list->count & (list->count - 1)) == 0)
		files = realloc(files, (list->count ? 2 * list->count : 1) * sizeof(*files));
	if (!files)
		return -ENOMEM;
	list->files = files;
	file = &files[list->count];
	*file =
	    (struct folder_file){.path = strdup(path),
				 .bytes = bytes_of(status),
				 .modified_ns = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec,
				 .trace = stem_bytes(path) > 0};
	if (!file->path)
		return -ENOMEM;
	list->count++;
	return 0;
}

static int list_folder(struct folder_list *list, int fd, const char *prefix, unsigned depth);

/* Folders of other users and other file systems are left out. */
static int list_entry(struct folder_list *list, int fd, const char *prefix, const char *name, unsigned depth)
{
	struct stat status, above;
	char path[PATH_MAX];
	int next;

	if (snprintf(path, sizeof(path), "%s%s", prefix, name) >= (int)sizeof(path) - 1 ||
	    fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || status.st_uid != geteuid())
		return 0;
	if (S_ISREG(status.st_mode) && (stem_bytes(name) || is_export(name)))
		return add_file(list, path, &status);
	if (!S_ISDIR(status.st_mode) || depth >= DEPTH_MAX || fstat(fd, &above) < 0 || above.st_dev != status.st_dev)
		return 0;
	next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	strcat(path, "/");
	return next < 0 ? 0 : list_folder(list, next, path, depth + 1);
}

/* Takes the descriptor. */
static int list_folder(struct folder_list *list, int fd, const char *prefix, unsigned depth)
{
	DIR *entries = fdopendir(fd);
	struct dirent *entry;
	int error = 0;

	if (!entries) {
		error = -errno;
		close(fd);
		return error;
	}
	while (!error && (entry = readdir(entries))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = list_entry(list, fd, prefix, entry->d_name, depth);
	}
	closedir(entries);
	return error;
}

static int compare_paths(const void *one, const void *other)
{
	return strcmp(((const struct folder_file *)one)->path, ((const struct folder_file *)other)->path);
}

/* The bytes of the export of a trace with that suffix; 0: there is none. */
static uint64_t export_bytes(const struct folder_list *list, const char *trace, const char *suffix)
{
	char path[PATH_MAX + 32];
	struct folder_file key = {.path = path};
	const struct folder_file *found;

	snprintf(path, sizeof(path), "%.*s.%s", (int)stem_bytes(trace), trace, suffix);
	found = bsearch(&key, list->files, list->count, sizeof(key), compare_paths);
	return found ? found->bytes : 0;
}

int folder_list_read(struct folder_list *list, int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;

	*list = (struct folder_list){0};
	if (fd < 0)
		return -errno;
	error = list_folder(list, fd, "", 0);
	if (error || !list->count)
		return error;
	qsort(list->files, list->count, sizeof(list->files[0]), compare_paths);
	for (size_t i = 0; i < list->count; i++) {
		struct folder_file *file = &list->files[i];

		if (!file->trace)
			continue;
		file->all_bytes = file->bytes;
		for (size_t k = 0; k < SUFFIXES; k++)
			file->all_bytes += export_bytes(list, file->path, suffixes[k]);
		list->bytes += file->all_bytes;
	}
	return 0;
}

void folder_list_done(struct folder_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->files[i].path);
	free(list->files);
	*list = (struct folder_list){0};
}

/* --- removing --- */

/* Opens the folder that has the last part of the path. Sets *name to that part. A descriptor or -errno. */
static int open_parent(int folder, const char *path, const char **name)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		char part[NAME_MAX + 1];
		int next;

		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = next;
		path = slash + 1;
	}
	*name = path;
	return fd < 0 ? -errno : fd;
}

/* By the file itself: its owner, its magic, and the lock of its writer. */
static int check_trace(int fd, struct stat *status)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	char magic[sizeof(TRACE_MAGIC) - 1];

	if (fstat(fd, status) < 0)
		return -errno;
	if (!is_ours(status) || pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
	    memcmp(magic, TRACE_MAGIC, sizeof(magic)) != 0)
		return -EINVAL;
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	return lock.l_type == F_UNLCK ? 0 : -EBUSY;
}

static void remove_exports(int parent, const char *trace)
{
	for (size_t i = 0; i < SUFFIXES; i++) {
		char name[NAME_MAX + 32];
		struct stat status;

		snprintf(name, sizeof(name), "%.*s.%s", (int)stem_bytes(trace), trace, suffixes[i]);
		if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && is_ours(&status))
			unlinkat(parent, name, 0);
	}
}

/* status: of the file that was checked. */
static int remove_checked(int parent, const char *name, const struct stat *status)
{
	struct stat now;

	if (fstatat(parent, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (now.st_ino != status->st_ino || now.st_dev != status->st_dev)
		return -EINVAL;
	remove_exports(parent, name);
	return unlinkat(parent, name, 0) < 0 ? -errno : 0;
}

int folder_remove(int folder, const char *path)
{
	const char *name;
	int parent = open_parent(folder, path, &name), fd, error;
	struct stat status;

	if (parent < 0)
		return parent;
	fd = stem_bytes(name) ? openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	error = fd < 0 ? -EINVAL : check_trace(fd, &status);
	if (!error)
		error = remove_checked(parent, name, &status);
	if (fd >= 0)
		close(fd);
	close(parent);
	return error;
}
