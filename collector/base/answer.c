/*
 * answer.c - see answer.h. Called by the server, and by whoever has taken over the connection of a request.
 *
 * A short answer is the message. A long one would fill the socket's buffer, or find no room in it, so it is in a memfd
 * that the message carries.
 */
#include "base/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "evprof/control.h"
#include "evprof/system_calls.h"

#define NO_MEMORY "the collector has no memory left"

/* memfd: -1: none. */
static int send_message(int fd, const char *text, size_t bytes, int memfd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = bytes};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *first;

	if (memfd >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		first = CMSG_FIRSTHDR(&header);
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		first->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(first), &memfd, sizeof(int));
	}
	return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* A memfd that nobody can change. A descriptor or -errno. */
static int sealed_copy(const char *text, size_t bytes)
{
	int fd = system_memfd_create("evprof-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	error = system_write_all(fd, text, bytes);
	if (!error && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		error = -errno;
	if (error)
		close(fd);
	return error ? error : fd;
}

static int send_attached(int fd, const char *text, size_t bytes)
{
	int memfd = bytes <= CONTROL_ANSWER_MAX_BYTES ? sealed_copy(text, bytes) : -EMSGSIZE;
	char message[96];
	int length, error;

	if (memfd < 0)
		return memfd;
	length = snprintf(message, sizeof(message), "{\"evprof\":%d,\"type\":\"answer\",\"attached\":%zu}",
			  CONTROL_VERSION, bytes);
	error = send_message(fd, message, (size_t)length, memfd);
	close(memfd);
	return error;
}

static int send_text(int fd, const char *text)
{
	size_t bytes = strlen(text);

	return bytes <= CONTROL_ANSWER_INLINE_BYTES ? send_message(fd, text, bytes, -1)
						    : send_attached(fd, text, bytes);
}

static void send_failure(int fd, int error)
{
	char message[256];
	int length =
	    snprintf(message, sizeof(message), "{\"evprof\":%d,\"type\":\"answer\",\"error\":\"the answer: %s\"}",
		     CONTROL_VERSION, error == -ENOMEM ? NO_MEMORY : strerror(-error));

	send_message(fd, message, (size_t)length, -1);
}

void answer_send(int fd, json_t *answer)
{
	char *text = NULL;
	int error = -ENOMEM;

	if (answer && json_object_set_new(answer, "evprof", json_integer(CONTROL_VERSION)) == 0 &&
	    json_object_set_new(answer, "type", json_string("answer")) == 0)
		text = json_dumps(answer, JSON_COMPACT);
	if (text)
		error = send_text(fd, text);
	if (error && error != -EPIPE && error != -ECONNRESET) {
		log_warning("a control request has no answer: %s", strerror(-error));
		send_failure(fd, error);
	}
	free(text);
	json_decref(answer);
	close(fd);
}

void answer_send_error(int fd, const char *error)
{
	answer_send(fd, json_pack("{s:s}", "error", error));
}
