/* folder.c - see folder.h. */
#include "attach/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "evprof/system_calls.h"
#include "run/session.h"

#define TRIES 16
#define NAME "/tmp/evprof-attach-"
#define NAME_DIGITS 8

/* --- rights --- */

/* What this process had before it took the rights of another user for files. */
struct rights {
	bool taken;
	gid_t *groups;
	int count;
};

static void give_back(struct rights *rights)
{
	if (!rights->taken)
		return;
	setfsuid(geteuid());
	setfsgid(getegid());
	setgroups((size_t)rights->count, rights->groups);
	free(rights->groups);
	rights->taken = false;
}

/* With another file system user than root, the kernel takes root's capabilities for files off, too. 0 or -errno. */
static int take_rights(struct rights *rights, const struct folder *folder)
{
	*rights = (struct rights){.count = getgroups(0, NULL)};
	if (geteuid() == folder->user)
		return 0;
	rights->groups = calloc((size_t)rights->count + 1, sizeof(gid_t));
	if (!rights->groups)
		return -ENOMEM;
	rights->count = getgroups(rights->count, rights->groups);
	if (rights->count < 0 || setgroups(1, &folder->group) < 0) {
		free(rights->groups);
		return -EPERM;
	}
	rights->taken = true;
	setfsgid(folder->group);
	setfsuid(folder->user);
	if ((uid_t)setfsuid((uid_t)-1) == folder->user && (gid_t)setfsgid((gid_t)-1) == folder->group)
		return 0;
	give_back(rights);
	return -EPERM;
}

/* --- the folder --- */

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

static void let_go(struct folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	if (folder->tmp >= 0)
		close(folder->tmp);
	folder->fd = folder->tmp = -1;
}

/* What is at the name now: the process may have put something else there. */
static int open_folder(struct folder *folder)
{
	folder->fd = openat(folder->tmp, folder->path + 5, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return folder->fd < 0 ? -errno : 0;
}

static int make_folder(struct folder *folder)
{
	uint32_t random;
	int r = -EEXIST;

	for (int i = 0; r == -EEXIST && i < TRIES; i++) {
		if (system_getrandom(&random, sizeof(random), 0) != sizeof(random))
			break;
		snprintf(folder->path, sizeof(folder->path), NAME "%0*x", NAME_DIGITS, random);
		r = mkdirat(folder->tmp, folder->path + 5, 0711) < 0 ? -errno : 0;
	}
	if (r == 0)
		r = open_folder(folder);
	if (r == 0 && fchmod(folder->fd, 0711) < 0) /* whatever the umask is */
		r = -errno;
	return r;
}

static int use_folder(struct folder *folder, const struct target *target, int (*use)(struct folder *folder))
{
	struct rights rights;
	int r = take_rights(&rights, folder);

	if (r < 0)
		return r;
	folder->tmp = open_tmp(target);
	r = folder->tmp < 0 ? folder->tmp : use(folder);
	give_back(&rights);
	if (r < 0)
		let_go(folder);
	else if (target->same_root)
		snprintf(folder->here, sizeof(folder->here), "%s", folder->path);
	else
		snprintf(folder->here, sizeof(folder->here), "/proc/%d/root%s", (int)target->pid, folder->path);
	return r;
}

int folder_make(struct folder *folder, const struct target *target)
{
	*folder = (struct folder){.tmp = -1, .fd = -1, .user = target->user, .group = target->group};
	return use_folder(folder, target, make_folder);
}

int folder_find(struct folder *folder, const struct target *target, const char *socket)
{
	const char *path = strstr(socket, NAME), *name = path ? path + strlen(NAME) : "";

	*folder = (struct folder){.tmp = -1, .fd = -1, .user = target->user, .group = target->group};
	if (strspn(name, "0123456789abcdef") != NAME_DIGITS || strcmp(name + NAME_DIGITS, "/" FOLDER_SOCKET) != 0)
		return -ENOENT;
	snprintf(folder->path, sizeof(folder->path), NAME "%.*s", NAME_DIGITS, name);
	return use_folder(folder, target, open_folder);
}

static int make_file(const struct folder *folder, const char *name, mode_t mode)
{
	struct rights rights;
	int fd = take_rights(&rights, folder);

	if (fd < 0)
		return fd;
	fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		fd = -errno;
	else
		fchmod(fd, mode);
	give_back(&rights);
	return fd;
}

int folder_write(const struct folder *folder, const char *name, const char *text, size_t bytes)
{
	int fd = make_file(folder, name, 0600), r = 0;

	if (fd < 0)
		return fd;
	if (bytes && write(fd, text, bytes) != (ssize_t)bytes)
		r = -EIO;
	close(fd);
	return r;
}

/*
 * The name of the socket is its path, by which evprof detach finds it. Where the process has led that path elsewhere,
 * the folder has no socket.
 */
int folder_listen(const struct folder *folder)
{
	struct rights rights;
	struct stat status;
	char path[128];
	int fd = take_rights(&rights, folder);

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "%s/" FOLDER_SOCKET, folder->here);
	fd = run_socket_listen(path);
	if (fd >= 0 && (fstatat(folder->fd, FOLDER_SOCKET, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISSOCK(status.st_mode) || status.st_uid != folder->user)) {
		close(fd);
		fd = -ENOENT;
	}
	give_back(&rights);
	return fd;
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

int folder_open(const struct folder *folder, const char *name)
{
	int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void folder_drop(const struct folder *folder, const char *name)
{
	struct rights rights;

	if (take_rights(&rights, folder) < 0)
		return;
	unlinkat(folder->fd, name, 0);
	give_back(&rights);
}

void folder_remove(struct folder *folder)
{
	static const char *const names[] = {FOLDER_ANSWER, FOLDER_SCRIPT, FOLDER_LIBRARY, FOLDER_SOCKET};
	struct rights rights;

	if (folder->fd < 0)
		return;
	if (take_rights(&rights, folder) == 0) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			unlinkat(folder->fd, names[i], 0);
		unlinkat(folder->tmp, folder->path + 5, AT_REMOVEDIR);
		give_back(&rights);
	}
	let_go(folder);
}
