/*
 * loop.c - the epoll set of a collector. Called by main.c, server.c and process.c.
 */
#include "loop.h"

#include <errno.h>
#include <unistd.h>

int loop_init(struct loop *loop)
{
	*loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	return loop->epoll_fd < 0 ? -errno : 0;
}

void loop_done(struct loop *loop)
{
	close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

int loop_add(struct loop *loop, struct loop_source *source)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = loop->next; i < loop->count; i++) {
		if (loop->batch[i].data.ptr == source)
			loop->batch[i].data.ptr = NULL;
	}
}

int loop_wait(struct loop *loop, int timeout_ms)
{
	loop->next = 0;
	loop->count = epoll_wait(loop->epoll_fd, loop->batch, LOOP_BATCH, timeout_ms);
	if (loop->count < 0) {
		loop->count = 0;
		return errno == EINTR ? 0 : -errno;
	}
	while (loop->next < loop->count) {
		struct epoll_event *event = &loop->batch[loop->next++];
		struct loop_source *source = event->data.ptr;

		if (source)
			source->ready(source, event->events);
	}
	loop->count = 0;
	return 0;
}
