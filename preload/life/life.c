/*
 * life.c - joins a collector: at the start of the process image, and in the child of a fork at its first event.
 */
#include "life/life.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/own_stack.h"
#include "base/seccomp.h"
#include "definitions/thread_names.h"
#include "join/handshake.h"
#include "join/peer.h"
#include "life/sampler.h"
#include "life/thin.h"
#include "ring/exchange.h"
#include "ring/memory.h"
#include "ring/process.h"
#include "ring/watch.h"

/* Whether this image was recorded before and left its collector: its threads have places in the memory. */
static bool has_left(void)
{
	return atomic_load(&process->status) == PROCESS_LEFT;
}

/* Makes a ring and hands it to a collector. */
static int join_with_ring(int start, void *scratch)
{
	int fd = has_left() ? exchange_return() : memory_make(), connection, r;

	if (fd < 0) {
		handshake_absent(fd == -EPERM || fd == -ENOSYS ? "a filter refuses memfd_create()"
							       : "no shared memory for events",
				 fd);
		return fd;
	}
	r = connection = handshake_connect(start, scratch);
	if (connection >= 0) {
		process->listener = watch_listener(connection);
		r = handshake_send(connection, fd, start, scratch);
		if (r == 0)
			sampler_follow(fd, scratch);
		close(connection);
	}
	close(fd);
	if (r < 0 && !has_left())
		memory_forget_inherited();
	return r;
}

static int join_collector(int start)
{
	uint64_t begin_us = process_now_us();
	uint8_t *inherited = has_left() ? NULL : memory_keep_inherited();
	void *scratch;
	int r;

	process->pid = getpid();
	clock_enter_namespace();
	if (inherited)
		peer_of_parent((const struct ring_header *)inherited);
	seccomp_inherited();
	if (seccomp_active()) {
		log_line(LOG_WARNING, "a seccomp filter is on; this process is not recorded");
		r = -EPERM;
		goto left;
	}
	scratch = mmap(NULL, HANDSHAKE_SCRATCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scratch == MAP_FAILED) {
		r = -ENOMEM;
		handshake_absent("no memory to join a collector", r);
		goto left;
	}
	r = join_with_ring(start, scratch);
	munmap(scratch, HANDSHAKE_SCRATCH_BYTES);
left:
	if (r == 0 && inherited) /* with the handlers of its parent (start/requests.h) */
		atomic_store(&process->header->follows, atomic_load(&((struct ring_header *)inherited)->follows) != 0);
	if (inherited)
		munmap(inherited, (size_t)sysconf(_SC_PAGESIZE));
	if (r == 0) {
		if (!has_left())
			ids_begin(&process->ids);
		atomic_store(&process->stalled_heartbeat, 0);
		process->watch = watch_begin();
		process->rejoin_after_us = process->watch.since_us + REJOIN_EVERY_US;
	}
	log_line(LOG_DEBUG, "joined %s in %llu us", session.socket, (unsigned long long)(process_now_us() - begin_us));
	return r;
}

void life_begin_again(void)
{
	uint32_t status;

	process_lock();
	status = atomic_load(&process->status);
	if (status == PROCESS_JOINED || status == PROCESS_STOPPED || status == PROCESS_LEFT) {
		process_set_status(PROCESS_MOVING);
		process_forget_ids();
		process_set_status(status);
	}
	process_unlock();
}

/* Lock held. */
static bool join(int start)
{
	bool again = has_left(), joined = !join_collector(start);
	uint32_t status = joined ? PROCESS_JOINED : again ? PROCESS_LEFT : PROCESS_OFF;

	if (again && !joined)
		session.id[0] = 0;
	if (again && joined)
		process_expect_stacks();
	/* Release: a thread that sees JOINED sees the ring. */
	atomic_store_explicit(&process->status, status, memory_order_release);
	return joined;
}

int life_join(int start)
{
	int saved_errno = errno;
	bool joined = false;
	struct writer *writer;

	/* Memory that joining allocates or frees is not the program's. */
	thread_self.nesting++;
	process_lock();
	if (atomic_load(&process->status) == PROCESS_UNJOINED || has_left())
		joined = join(start);
	process_unlock();
	writer = joined ? writer_reserve(WIRE_PROCESS_START) : NULL; /* takes the lock for its ring */
	if (writer)
		writer_put_number(writer, WIRE_PROCESS_START, (uint64_t)start);
	if (writer && start == WIRE_START_FORK)
		thread_names_define_inherited();
	thread_self.nesting--;
	errno = saved_errno;
	return atomic_load(&process->status) == PROCESS_JOINED ? 0 : -ENOTCONN;
}

int life_join_child(void)
{
	if (!session.id[0])
		return 0;
	if (!config.children && getpid() != session.first) {
		atomic_store(&process->status, PROCESS_OFF);
		memory_forget_inherited();
		return 0;
	}
	return !life_join(WIRE_START_FORK);
}

int life_recording(void)
{
	uint32_t status;

	if (!process)
		return 0;
	status = atomic_load_explicit(&process->status, memory_order_acquire);
	if (status == PROCESS_MOVING) {
		process_lock();
		process_unlock();
		status = atomic_load_explicit(&process->status, memory_order_acquire);
	}
	if (likely(status == PROCESS_JOINED))
		return 1;
	if (status != PROCESS_UNJOINED || process_is_stopped_child())
		return 0;
	return life_join_child(); /* at its first event */
}

void life_forked(void)
{
	/* The kernel has cleared the other state of the image. */
	thread_self.nesting = 0;
	thread_self.writing = 0;
	thread_self.lost_block = NULL;
	thread_self.unslotted = 0;
	thread_self.stopped = thread_self.thin_due = false;
	thin_forget();
	own_stack_forked();
	sampler_forget();
}
