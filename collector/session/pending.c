/*
 * pending.c - see pending.h. Called by the session, and by the collector.
 */
#include "session/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FORK_GRACE_NS UINT64_C(100000000)
#define CHECK_NS UINT64_C(5000000)
#define PENDING_CHILDREN_MAX 4096u

void pending_children_note(struct pending_children *pending, struct process *process, uint64_t now_ns)
{
	uint32_t forks = atomic_load_explicit(&process->header->forks, memory_order_acquire);

	if (forks != process->forks_seen) {
		process->forks_seen = forks;
		process->forks_ns = now_ns;
	}
	/* Children with known pids are pending children. */
	if (!process->complete || forks <= process->children + process->forked_count ||
	    now_ns - process->forks_ns >= FORK_GRACE_NS)
		return;
	pending->missing += forks - process->children - process->forked_count;
	if (process->forks_ns + FORK_GRACE_NS > pending->grace_until_ns)
		pending->grace_until_ns = process->forks_ns + FORK_GRACE_NS;
}

void pending_children_keep(struct pending_children *pending, struct process *process, uint64_t now_ns)
{
	uint32_t forks = atomic_load_explicit(&process->header->forks, memory_order_acquire);
	unsigned before = pending->count, count = before + process->forked_count;
	struct pending_child *grown;
	ino_t inode = process_inode(process);

	if (forks <= process->children || process->forked_count == 0 || !inode || count > PENDING_CHILDREN_MAX)
		return;
	grown = realloc(pending->at, count * sizeof(*grown));
	if (!grown)
		return;
	pending->at = grown;
	for (unsigned i = 0; i < process->forked_count; i++)
		grown[pending->count++] = (struct pending_child){.pid = process->forked[i], .inode = inode};
	process->forked_count = 0;
	pending->check_ns = 0;
	pending->next = pending->count;
	pending->since_ns = pending->since_ns ? pending->since_ns : now_ns;
}

static void remove_pending_child(struct pending_children *pending, unsigned index)
{
	pending->at[index] = pending->at[--pending->count];
}

void pending_children_check(struct pending_children *pending, struct user *user, uint64_t now_ns)
{
	if (pending->count == 0) {
		/* In a later round than the removal: the last one may have just sent its message. */
		pending->since_ns = 0;
		return;
	}
	if (now_ns < pending->check_ns)
		return;
	if (pending->next > pending->count)
		pending->next = pending->count;
	while (pending->next > 0) {
		const struct pending_child *child = &pending->at[pending->next - 1];
		int maps = process_maps(user, child->pid, child->inode);

		if (maps == -EAGAIN)
			return;
		pending->next--;
		if (!process_may_map(maps))
			remove_pending_child(pending, pending->next);
	}
	pending->next = pending->count;
	pending->check_ns = now_ns + CHECK_NS;
}

void pending_children_joined(struct pending_children *pending, struct process *processes,
			     const struct control_message *join)
{
	struct process *parent = NULL;

	if (join->start != WIRE_START_FORK)
		return;
	for (struct process *process = processes; process; process = process->next) {
		if (process->sender_pid != join->ppid)
			continue;
		process_forget_fork(process, join->pid);
		if (!parent && !process->complete)
			parent = process;
	}
	for (unsigned i = pending->count; i-- > 0;) {
		if (pending->at[i].pid == join->pid)
			remove_pending_child(pending, i);
	}
	if (parent)
		parent->children++;
	else if (pending->missing > 0)
		pending->missing--;
}

bool pending_children_expected(const struct pending_children *pending, uint64_t now_ns)
{
	return pending->since_ns || (pending->missing > 0 && now_ns < pending->grace_until_ns);
}

bool pending_children_slow(const struct pending_children *pending, uint64_t now_ns)
{
	return pending->since_ns && now_ns - pending->since_ns >= FORK_GRACE_NS;
}

void pending_rejoin_done(struct pending_rejoin *pending)
{
	if (!pending->loop)
		return;
	loop_remove(pending->loop, &pending->source);
	close(pending->source.fd);
	pending->loop = NULL;
}

static void pending_process_ended(struct loop_source *source)
{
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
