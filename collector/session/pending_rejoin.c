/*
 * pending_rejoin.c - see pending_rejoin.h. Called by the collector and the session.
 */
#include "session/pending_rejoin.h"

#include <sys/syscall.h>
#include <unistd.h>

void pending_rejoin_done(struct pending_rejoin *pending)
{
	if (!pending->loop)
		return;
	loop_remove(pending->loop, &pending->source);
	close(pending->source.fd);
	pending->loop = NULL;
}

static void pending_process_ended(struct loop_source *source, uint32_t events)
{
	(void)events;
	pending_rejoin_done(LOOP_OWNER(source, struct pending_rejoin, source));
}

void pending_rejoin_init(struct pending_rejoin *pending, struct loop *loop, pid_t pid)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	*pending = (struct pending_rejoin){.source = {.fd = fd, .ready = pending_process_ended}, .pid = pid};
	if (fd >= 0 && loop_add(loop, &pending->source) == 0)
		pending->loop = loop;
	else if (fd >= 0)
		close(fd);
}

void pending_rejoin_joined(struct pending_rejoin *pending, pid_t pid)
{
	if (pid == pending->pid)
		pending_rejoin_done(pending);
}

bool pending_rejoin_any(const struct pending_rejoin *pending)
{
	return pending->loop != NULL;
}
