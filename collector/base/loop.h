/*
 * loop.h - waits for descriptors: a thin layer over epoll.
 *
 * A source is a member of the struct that it belongs to. After loop_remove() its callback is not called again, not even
 * for an event that was already fetched, so its owner may be freed at once.
 */
#ifndef COLLECTOR_LOOP_H
#define COLLECTOR_LOOP_H

#include <stddef.h>
#include <sys/epoll.h>

#define LOOP_BATCH 64

struct loop_source {
	int fd;
	void (*ready)(struct loop_source *source);
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

/* Calls source->ready while source->fd is readable or at its end. */
int loop_add(struct loop *loop, struct loop_source *source);
/* Calls source->ready while source->fd takes data instead, for a source that was added. */
int loop_await_room(struct loop *loop, struct loop_source *source);
void loop_remove(struct loop *loop, struct loop_source *source);

/* Waits once, at most timeout_us (-1: without limit), and calls ready sources. 0 or -errno; -EINTR counts as 0. */
int loop_wait(struct loop *loop, int timeout_us);

#endif
