/*
 * pending_rejoin.c - see pending_rejoin.h. Called by the collector and the session.
 */
#include "session/pending_rejoin.h"

#include <sys/syscall.h>
#include <unistd.h>

void pending_rejoin_done(struct pending_rejoin *awaited)
{
	if (!awaited->loop)
		return;
	loop_remove(awaited->loop, &awaited->source);
	close(awaited->source.fd);
	awaited->loop = NULL;
}

static void awaited_ended(struct loop_source *source, uint32_t events)
{
	(void)events;
	pending_rejoin_done(LOOP_OWNER(source, struct pending_rejoin, source));
}

void pending_rejoin_init(struct pending_rejoin *awaited, struct loop *loop, pid_t pid)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	*awaited = (struct pending_rejoin){.source = {.fd = fd, .ready = awaited_ended}, .pid = pid};
	if (fd >= 0 && loop_add(loop, &awaited->source) == 0)
		awaited->loop = loop;
	else if (fd >= 0)
		close(fd);
}

void pending_rejoin_joined(struct pending_rejoin *awaited, pid_t pid)
{
	if (pid == awaited->pid)
		pending_rejoin_done(awaited);
}

bool pending_rejoin_any(const struct pending_rejoin *awaited)
{
	return awaited->loop != NULL;
}
