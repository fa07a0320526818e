/*
 * ring_read.h - copies bytes out of a ring in a memfd, with pread(2): nothing that its owner does to the file can fault
 * the collector.
 */
#ifndef COLLECTOR_RING_READ_H
#define COLLECTOR_RING_READ_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads exactly `bytes` bytes at a position of a ring of ring_bytes (a power of two) that begins at `base` in the file.
 * position: the count of bytes since the ring's first use. Returns 0 or -errno; -EIO: the file is shorter.
 */
int ring_read(int fd, void *to, size_t bytes, uint64_t base, uint64_t ring_bytes, uint64_t position);

#endif
