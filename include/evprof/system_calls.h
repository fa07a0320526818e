/*
 * system_calls.h - system calls for which old C libraries have no function (glibc before 2.25 to 2.34, manylinux2014's
 * 2.17). Each returns what the function of that name returns, and sets errno. And write() for all bytes.
 */
#ifndef EVPROF_SYSTEM_CALLS_H
#define EVPROF_SYSTEM_CALLS_H

#include <errno.h>
#include <linux/memfd.h>
#include <linux/random.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef STATX_INO /* musl and newer versions of glibc have it in <sys/stat.h> */
#include <linux/stat.h>
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static inline int system_memfd_create(const char *name, unsigned flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}

static inline ssize_t system_getrandom(void *bytes, size_t size, unsigned flags)
{
	return syscall(SYS_getrandom, bytes, size, flags);
}

static inline int system_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int system_statx(int folder, const char *path, int flags, unsigned mask, struct statx *found)
{
	return (int)syscall(SYS_statx, folder, path, flags, mask, found);
}

/*
 * The process's users as the kernel knows them, to be compared with what it says of others (SO_PEERCRED). Those of the
 * C library may be shown by another preloaded library (fakeroot).
 */
static inline uid_t system_getuid(void)
{
	return (uid_t)syscall(SYS_getuid);
}

static inline uid_t system_geteuid(void)
{
	return (uid_t)syscall(SYS_geteuid);
}

/* Writes all bytes to a file. 0 or -errno. */
static inline int system_write_all(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count > 0) {
		ssize_t wrote = write(fd, at, count);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return wrote < 0 ? -errno : -EIO;
		at += wrote;
		count -= (size_t)wrote;
	}
	return 0;
}

#endif
