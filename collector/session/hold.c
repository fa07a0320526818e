/*
 * hold.c - hold connections. Called by the session that owns them.
 */
#include "session/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/process.h"

static void hold_ready(struct loop_source *source, uint32_t events)
{
	struct hold *hold = LOOP_OWNER(source, struct hold, source);
	char ignored[64];
	ssize_t count = recv(source->fd, ignored, sizeof(ignored), MSG_DONTWAIT);

	(void)events;
	if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	loop_remove(hold->loop, source);
	hold->closing = true;
	hold->closed_ns = clock_now_ns();
}

int hold_new(struct loop *loop, int fd, struct hold **result)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	struct ucred who;
	socklen_t length = sizeof(who);
	int error;

	if (!hold)
		return -ENOMEM;
	hold->source = (struct loop_source){.fd = fd, .ready = hold_ready};
	hold->loop = loop;
	hold->init = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid == PROCESS_INIT;
	error = loop_add(loop, &hold->source);
	if (error) {
		free(hold);
		return error;
	}
	*result = hold;
	return 0;
}

void hold_answer(struct hold *hold, const struct meta_summary *summary)
{
	char *text = meta_summary(summary);

	if (text)
		send(hold->source.fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	if (!hold->closing)
		loop_remove(hold->loop, &hold->source);
	close(hold->source.fd);
	free(hold);
}
