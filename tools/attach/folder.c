/* folder.c - see folder.h. */
#include "attach/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "evprof/system_calls.h"

#define TRIES 16

/* The folder /tmp of the process. Returns a descriptor or -errno. */
static int open_tmp(const struct target *target)
{
	struct open_how how = {.flags = O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char root[64];
	int fd, tmp;

	if (target->same_root)
		snprintf(root, sizeof(root), "/");
	else
		snprintf(root, sizeof(root), "/proc/%d/root", (int)target->pid);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	tmp = (int)syscall(SYS_openat2, fd, "tmp", &how, sizeof(how));
	if (tmp < 0)
		tmp = -errno;
	close(fd);
	return tmp;
}

int folder_make(struct folder *folder, const struct target *target)
{
	int tmp = open_tmp(target), r = -EEXIST;
	uint32_t random;

	*folder = (struct folder){.fd = -1};
	for (int i = 0; tmp >= 0 && r == -EEXIST && i < TRIES; i++) {
		if (system_getrandom(&random, sizeof(random), 0) != sizeof(random))
			break;
		snprintf(folder->path, sizeof(folder->path), "/tmp/evprof-attach-%08x", random);
		r = mkdirat(tmp, folder->path + 5, 0711) < 0 ? -errno : 0;
	}
	if (tmp >= 0 && r == 0)
		folder->fd = openat(tmp, folder->path + 5, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tmp >= 0 && r == 0 && folder->fd < 0)
		r = -errno;
	if (r == 0 && fchmod(folder->fd, 0711) < 0) /* whatever the umask is */
		r = -errno;
	if (tmp >= 0)
		close(tmp);
	if (target->same_root)
		snprintf(folder->here, sizeof(folder->here), "%s", folder->path);
	else
		snprintf(folder->here, sizeof(folder->here), "/proc/%d/root%s", (int)target->pid, folder->path);
	return tmp < 0 ? tmp : r;
}

static int make_file(const struct folder *folder, const char *name, mode_t mode)
{
	int fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd >= 0)
		fchmod(fd, mode);
	return fd < 0 ? -errno : fd;
}

int folder_write(const struct folder *folder, const struct target *target, const char *name, const char *text,
		 size_t bytes)
{
	int fd = make_file(folder, name, 0600), r = 0;

	if (fd < 0)
		return fd;
	if ((bytes && write(fd, text, bytes) != (ssize_t)bytes) ||
	    (geteuid() != target->user && fchown(fd, target->user, target->group) < 0))
		r = -EIO;
	close(fd);
	return r;
}

int folder_copy(const struct folder *folder, const char *name, const char *from)
{
	int source = open(from, O_RDONLY | O_CLOEXEC), fd = source < 0 ? -errno : make_file(folder, name, 0755), r = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0)
		n = sendfile(fd, source, NULL, 1 << 20);
	if (fd < 0 || n < 0)
		r = fd < 0 ? fd : -errno;
	if (fd >= 0)
		close(fd);
	if (source >= 0)
		close(source);
	return r;
}

int folder_read(const struct folder *folder, const char *name, char *text, size_t bytes)
{
	int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);
	int r = n < 0 ? -errno : (int)n;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return r;
}

void folder_remove(struct folder *folder)
{
	static const char *const names[] = {FOLDER_ANSWER, FOLDER_SCRIPT, FOLDER_LIBRARY};

	if (folder->fd < 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(folder->fd, names[i], 0);
	close(folder->fd);
	folder->fd = -1;
	rmdir(folder->here);
}
