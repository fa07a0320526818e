/* loop.c - the epoll set of a collector. Called by collector.c, and by all owners of sources. */
#include "base/loop.h"

#include <errno.h>
#include <poll.h>
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

int loop_await_room(struct loop *loop, struct loop_source *source)
{
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0 ? -errno : 0;
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = loop->next; i < loop->count; i++) {
		if (loop->batch[i].data.ptr == source)
			loop->batch[i].data.ptr = NULL;
	}
}

/*
 * epoll_wait() counts in milliseconds, and epoll_pwait2() needs Linux 5.11. Waits for less than 1 ms here. Returns the
 * time left to wait.
 */
static int wait_fraction(struct loop *loop, int timeout_us)
{
	const struct timespec time = {.tv_nsec = timeout_us * 1000L};
	struct pollfd ready = {.fd = loop->epoll_fd, .events = POLLIN};

	if (timeout_us <= 0 || timeout_us >= 1000)
		return timeout_us;
	ppoll(&ready, 1, &time, NULL);
	return 0;
}

int loop_wait(struct loop *loop, int timeout_us)
{
	int left_us = wait_fraction(loop, timeout_us);

	loop->next = 0;
	/* Rounded up: what we wait for is not there before. */
	loop->count = epoll_wait(loop->epoll_fd, loop->batch, LOOP_BATCH, left_us < 0 ? -1 : (left_us + 999) / 1000);
	if (loop->count < 0) {
		loop->count = 0;
		return errno == EINTR ? 0 : -errno;
	}
	while (loop->next < loop->count) {
		struct loop_source *source = loop->batch[loop->next++].data.ptr;

		if (source)
			source->ready(source);
	}
	loop->count = 0;
	return 0;
}
