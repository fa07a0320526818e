/*
 * ring_read.c - copies bytes out of a ring. See ring_read.h.
 */
#include "ring/ring_read.h"

#include <errno.h>
#include <unistd.h>

/* Reads exactly `bytes` bytes with pread(2). */
static int read_fully(int fd, void *to, size_t bytes, uint64_t offset)
{
	char *at = to;

	while (bytes > 0) {
		ssize_t count = pread(fd, at, bytes, (off_t)offset);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count < 0 ? -errno : -EIO;
		at += count;
		bytes -= (size_t)count;
		offset += (uint64_t)count;
	}
	return 0;
}

int ring_read(int fd, void *to, size_t bytes, uint64_t base, uint64_t ring_bytes, uint64_t position)
{
	uint64_t place = position & (ring_bytes - 1);
	size_t first = bytes < ring_bytes - place ? bytes : (size_t)(ring_bytes - place);
	int error = read_fully(fd, to, first, base + place);

	if (!error && first < bytes)
		error = read_fully(fd, (char *)to + first, bytes - first, base);
	return error;
}
