/*
 * awaited.c - see awaited.h. Called by the collector and the session.
 */
#include "awaited.h"

#include <sys/syscall.h>
#include <unistd.h>

void awaited_done(struct awaited *awaited)
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
	awaited_done(LOOP_OWNER(source, struct awaited, source));
}

void awaited_init(struct awaited *awaited, struct loop *loop, pid_t pid)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	*awaited = (struct awaited){.source = {.fd = fd, .ready = awaited_ended}, .pid = pid};
	if (fd >= 0 && loop_add(loop, &awaited->source) == 0)
		awaited->loop = loop;
	else if (fd >= 0)
		close(fd);
}

void awaited_joined(struct awaited *awaited, pid_t pid)
{
	if (pid == awaited->pid)
		awaited_done(awaited);
}

bool awaited_any(const struct awaited *awaited)
{
	return awaited->loop != NULL;
}
