/*
 * request.c - see request.h.
 *
 * The collector is root's or the user's own. It may still be stopped, of another release, or a hostile process of the
 * user, so every wait has an end and every answer is checked.
 */
#include "control/request.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/network.h"
#include "util/clock.h"

int control_connect(const char *name)
{
	struct sockaddr_un address;
	socklen_t length;
	int error = network_address(name, &address, &length);
	int fd;

	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, length) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static void fail(struct control_collector *collector, const char *what)
{
	snprintf(collector->error, sizeof(collector->error), "%s", what);
}

void control_send(struct control_collector *collector, const char *text)
{
	if (send(collector->fd, text, strlen(text), MSG_NOSIGNAL) < 0) {
		collector->closed = errno == EPIPE || errno == ECONNRESET;
		fail(collector, strerror(errno));
	}
}

/* False: no answer came in time. */
static bool wait_until(int fd, int64_t deadline_ns)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	int64_t left_ms;
	int ready;

	do {
		left_ms = (deadline_ns - time_ns(CLOCK_MONOTONIC)) / 1000000;
		ready = poll(&poller, 1, left_ms > 0 ? (int)left_ms : 0);
	} while (ready < 0 && errno == EINTR);
	return ready > 0;
}

/* The first descriptor that came with a message; the others are closed. -1: none. */
static int take_fd(struct msghdr *header)
{
	int first = -1, fd;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			memcpy(&fd, CMSG_DATA(part) + at, sizeof(int));
			if (first >= 0)
				close(fd);
			else
				first = fd;
		}
	}
	return first;
}

static ssize_t read_all(int fd, char *text, size_t bytes)
{
	size_t used = 0;
	ssize_t count = 1;

	while (used < bytes && count > 0) {
		count = pread(fd, text + used, bytes - used, (off_t)used);
		used += count > 0 ? (size_t)count : 0;
	}
	return count < 0 ? -errno : (ssize_t)used;
}

/* Only a regular file, as a memfd is, cannot make us wait. */
static json_t *read_attached(int fd, size_t bytes)
{
	struct stat status;
	json_t *answer = NULL;
	char *text;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || bytes > CONTROL_ANSWER_MAX_BYTES)
		return NULL;
	text = malloc(bytes + 1);
	if (text && read_all(fd, text, bytes) == (ssize_t)bytes)
		answer = json_loadb(text, bytes, 0, NULL);
	free(text);
	return answer;
}

static json_t *read_answer(const char *text, size_t bytes, int fd)
{
	json_t *answer = json_loadb(text, bytes, 0, NULL), *whole = NULL;
	json_t *attached = json_object_get(answer, "attached");

	if (!json_is_integer(attached) || json_integer_value(attached) < 0)
		return answer;
	whole = read_attached(fd, (size_t)json_integer_value(attached));
	json_decref(answer);
	return whole;
}

static void take_answer(struct control_collector *collector, json_t *answer)
{
	const char *error = json_string_value(json_object_get(answer, "error"));
	const char *type = json_string_value(json_object_get(answer, "type"));

	if (type && strcmp(type, "answer") == 0 && !error) {
		collector->answer = answer;
		return;
	}
	fail(collector, error ? error : "its answer is not valid");
	json_decref(answer);
}

void control_receive(struct control_collector *collector, int64_t deadline_ns)
{
	static char text[CONTROL_MESSAGE_MAX_BYTES];
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
	struct msghdr header = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t count;
	int fd;

	if (!wait_until(collector->fd, deadline_ns)) {
		fail(collector, "no answer in time: it is stopped, or very busy");
		return;
	}
	count = recvmsg(collector->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (count <= 0) {
		collector->closed = true;
		fail(collector, count < 0 ? strerror(errno)
					  : "no answer: it has ended, or is of a release that knows no such request");
		return;
	}
	fd = take_fd(&header);
	take_answer(collector, read_answer(text, (size_t)count, fd));
	if (fd >= 0)
		close(fd);
}
