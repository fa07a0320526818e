/*
 * loop.h - waiting for descriptors: a thin layer over epoll.
 *
 * A source is embedded in what it belongs to. After loop_remove() its callback is not called any more, not even for an
 * event that has already been fetched, so its owner may be freed at once.
 */
#ifndef COLLECTOR_LOOP_H
#define COLLECTOR_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_BATCH 64

struct loop_source {
	int fd;
	void (*ready)(struct loop_source *source, uint32_t events);
};

struct loop {
	int epoll_fd;
	int count;
	int next;
	struct epoll_event batch[LOOP_BATCH];
};

#define LOOP_OWNER(source, type, member) ((type *)(void *)((char *)(source)-offsetof(type, member)))

int loop_init(struct loop *loop);
void loop_done(struct loop *loop);

/* Calls source->ready when source->fd is readable or at its end. */
int loop_add(struct loop *loop, struct loop_source *source);
void loop_remove(struct loop *loop, struct loop_source *source);

/* Waits once, at most timeout_us (-1: without bound), and calls what is ready. 0 or -errno; -EINTR counts as 0. */
int loop_wait(struct loop *loop, int timeout_us);

#endif
