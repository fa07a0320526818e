/*
 * output.c - expands the template of an output path and creates the file. Called by the session.
 */
#include "trace/output.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "evprof/folders.h"

#define SUFFIX_MAX (1u << 30)
#define RACES_MAX 100 /* another process takes the free name */

static bool is_plain(char character)
{
	return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
	       (character >= '0' && character <= '9') || character == '.' || character == '_' || character == '-';
}

/* Names come from the target: they must not lead out of a folder or hide the file. */
static void plain_name(const char *name, const char *when_empty, char *plain, size_t plain_bytes)
{
	size_t length = 0;

	if (!name[0])
		name = when_empty;
	for (; length < plain_bytes - 1 && name[length]; length++)
		plain[length] = is_plain(name[length]) ? name[length] : '_';
	plain[length] = '\0';
	if (plain[0] == '.')
		plain[0] = '_';
}

static void local_time(char *text, size_t text_bytes)
{
	time_t now = time(NULL);
	struct tm parts;

	if (!localtime_r(&now, &parts) || strftime(text, text_bytes, "%Y%m%d-%H%M%S", &parts) == 0)
		snprintf(text, text_bytes, "time");
}

/* The text for %<letter>; false: no such letter. */
static bool expand_letter(char letter, const struct output_values *values, char *text, size_t text_bytes)
{
	switch (letter) {
	case 'p':
		snprintf(text, text_bytes, "%d", (int)values->pid);
		return true;
	case 'n':
		plain_name(values->program, "python", text, text_bytes);
		return true;
	case 'h':
		plain_name(values->host, "host", text, text_bytes);
		return true;
	case 't':
		local_time(text, text_bytes);
		return true;
	case '%':
		snprintf(text, text_bytes, "%%");
		return true;
	default:
		return false;
	}
}

int output_expand(const char *template, const struct output_values *values, char *path, size_t path_bytes)
{
	char text[128];
	size_t length = 0;

	for (; *template; template ++) {
		size_t count = 1;

		text[0] = *template;
		if (template[0] == '%' && expand_letter(template[1], values, text, sizeof(text))) {
			count = strlen(text);
			template ++;
		}
		if (count >= path_bytes - length)
			return -ENAMETOOLONG;
		memcpy(path + length, text, count);
		length += count;
	}
	path[length] = '\0';
	return 0;
}

bool output_is_below(const char *template)
{
	if (template[0] == '/' || template[0] == '\0' || template[strlen(template) - 1] == '/')
		return false;
	for (const char *part = template; part; part = strchr(part, '/')) {
		part += part[0] == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
			return false;
	}
	return true;
}

static int create_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/*
 * A link to a file or to nothing is replaced. /dev/stdout and similar links lead to /proc and to descriptors of this
 * process; they belong to the system.
 */
static bool is_replaceable(const char *path)
{
	static const char proc[] = "/proc/";
	char target[sizeof(proc) - 1];
	struct stat status;

	if (lstat(path, &status) < 0 || S_ISREG(status.st_mode))
		return true;
	if (!S_ISLNK(status.st_mode) || (stat(path, &status) == 0 && !S_ISREG(status.st_mode)))
		return false;
	return readlink(path, target, sizeof(target)) < (ssize_t)sizeof(target) ||
	       memcmp(target, proc, sizeof(target)) != 0;
}

/* Whether another collector is writing the trace: it is locked then. */
static bool is_being_written(const char *path)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool locked = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

/* Replaces an existing file. -EAGAIN: it is kept, and the caller needs another name. */
static int replace_file(const char *path)
{
	int fd = create_file(path);

	if (fd != -EEXIST)
		return fd;
	if (!is_replaceable(path))
		return -EEXIST;
	if (is_being_written(path))
		return -EAGAIN;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	return create_file(path);
}

/* Puts "-2" and so on before the extension of the name. */
static int with_suffix(const char *path, unsigned number, char *result, size_t result_bytes)
{
	const char *name = strrchr(path, '/');
	const char *ending = strrchr(name ? name : path, '.');
	int stem = ending ? (int)(ending - path) : (int)strlen(path);
	int length = snprintf(result, result_bytes, "%.*s-%u%s", stem, path, number, ending ? ending : "");

	return length < 0 || (size_t)length >= result_bytes ? -ENAMETOOLONG : 0;
}

/* 1: the name with that number exists. 0: it does not. Or -errno. */
static int is_taken(const char *path, unsigned number)
{
	char other[PATH_MAX];
	struct stat status;
	int error = with_suffix(path, number, other, sizeof(other));

	return error ? error : lstat(other, &status) == 0;
}

/*
 * Finds a free number with a taken one below it: without gaps, the first free one. Takes few lookups for any number of
 * files.
 */
static int free_number(const char *path, unsigned *number)
{
	unsigned low = 1, high = 2;
	int taken;

	while ((taken = is_taken(path, high)) > 0 && high < SUFFIX_MAX) {
		low = high;
		high *= 2;
	}
	while (taken >= 0 && high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		taken = is_taken(path, middle);
		*(taken > 0 ? &low : &high) = middle;
	}
	*number = high;
	return taken < 0 ? taken : 0;
}

int output_create(char *path, size_t path_bytes, enum output_existing existing)
{
	char other[PATH_MAX];
	int error, fd;

	error = folders_make(path);
	if (error)
		return error;
	fd = existing == OUTPUT_REPLACE ? replace_file(path) : create_file(path);
	if (fd == -EEXIST && existing == OUTPUT_REPLACE)
		return fd;
	for (unsigned tries = 0; (fd == -EEXIST || fd == -EAGAIN) && tries < RACES_MAX; tries++) {
		unsigned number;

		error = free_number(path, &number);
		if (!error)
			error = with_suffix(path, number, other, sizeof(other));
		if (error)
			return error;
		fd = create_file(other);
		if (fd >= 0 && strlen(other) < path_bytes)
			memcpy(path, other, strlen(other) + 1);
	}
	return fd;
}

static struct posix_acl_xattr_entry acl_entry(uint16_t tag, uint16_t rights, uint32_t id)
{
	return (struct posix_acl_xattr_entry){htole16(tag), htole16(rights), htole32(id)};
}

int output_let_read(int fd, uid_t uid)
{
	const struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[5];
	} list = {
	    .header = {htole32(POSIX_ACL_XATTR_VERSION)},
	    .entries = {acl_entry(ACL_USER_OBJ, ACL_READ | ACL_WRITE, ACL_UNDEFINED_ID),
			acl_entry(ACL_USER, ACL_READ, uid), acl_entry(ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID),
			acl_entry(ACL_MASK, ACL_READ, ACL_UNDEFINED_ID), acl_entry(ACL_OTHER, 0, ACL_UNDEFINED_ID)},
	};

	return fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0) < 0 ? -errno : 0;
}
