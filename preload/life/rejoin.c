/*
 * rejoin.c - moves a process whose collector is gone to the collector that has replaced it.
 *
 * The program keeps no descriptor of the shared memory, so the new collector gets new memory, mapped at the same
 * address (ring/exchange.c).
 */
#include "life/life.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/seccomp.h"
#include "join/handshake.h"
#include "life/sampler.h"
#include "python/python.h"
#include "ring/exchange.h"
#include "ring/memory.h"
#include "ring/process.h"
#include "ring/wait.h"
#include "ring/watch.h"

#define WANTED 0 /* replaces the time of the next check: a thread waited in vain and could not check itself */

static uint64_t coarse_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool is_hosts(void)
{
	return config.socket[0] && !strcmp(config.socket, session.socket);
}

/*
 * Whether the collector is gone. A host's daemon that closed the session was stopped or is being restarted. A private
 * collector that closed it was stopped on purpose; no other one is wanted.
 */
static bool is_gone(enum rejoin_when when)
{
	uint32_t state = atomic_load(&process->header->collector_state);

	if (!session.id[0] || seccomp_active())
		return false;
	if (state == RING_COLLECTOR_FINISHED)
		return is_hosts();
	if (state != RING_COLLECTOR_ATTACHED && state != RING_COLLECTOR_NONE)
		return false;
	return watch_is_gone(&process->watch) || (when != REJOIN_AT_TIMES && watch_has_ended());
}

static bool has_all_definitions(void)
{
	return atomic_load(&process->header->definitions_head) <= process->layout.definitions_bytes;
}

/*
 * Whether the listener is the collector that has left, and still runs: systemd keeps its socket for the next one, and
 * nobody reads until that has begun.
 */
static bool is_leaving(pid_t listener)
{
	const struct ring_header *header = process->header;
	uint32_t state = atomic_load(&header->collector_state);
	pid_t left = state == RING_COLLECTOR_NONE ? process->listener.pid : (pid_t)atomic_load(&header->collector_pid);

	return (state == RING_COLLECTOR_NONE || state == RING_COLLECTOR_FINISHED) && listener > 0 && listener == left &&
	       !watch_has_ended();
}

/* connection: to the new collector. */
static bool move_to(int connection, void *scratch)
{
	struct watch_listener listener = watch_listener(connection);
	bool all = has_all_definitions(), left = is_leaving(listener.pid), joined = false;
	int memfd;

	process_set_status(PROCESS_MOVING);
	memfd = exchange_memory(all);
	if (memfd >= 0) {
		if (!all)
			process_forget_ids();
		process_expect_stacks(); /* the new collector has none */
		atomic_store(&process->stalled_heartbeat, 0);
		if (left)
			wait_give_up(atomic_load(&process->header->heartbeat));
		process->watch = watch_begin();
		process->listener = listener;
		joined = !handshake_send(connection, memfd, WIRE_START_REJOIN, scratch);
		if (joined)
			sampler_follow(memfd, scratch);
		close(memfd);
	}
	process_set_status(PROCESS_JOINED);
	return joined;
}

static void log_no_rejoin(const char *why)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		log_line(LOG_WARNING, "the collector is gone; this process %s, and is not recorded further", why);
}

static bool join_again(void)
{
	void *scratch;
	bool joined = false;
	int connection;

	if (memory_check_file_size(process->layout.size_bytes) < 0) { /* no collector is started in vain */
		log_no_rejoin("has a limit of file sizes that its ring does not fit");
		return false;
	}
	scratch = mmap(NULL, HANDSHAKE_SCRATCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scratch == MAP_FAILED) {
		log_no_rejoin("has no memory to join another one");
		return false;
	}
	connection = handshake_connect(WIRE_START_REJOIN, scratch);
	if (connection >= 0) {
		joined = move_to(connection, scratch);
		close(connection);
	}
	if (joined)
		log_line(LOG_INFO, "joined the collector that now answers at %s", session.socket);
	munmap(scratch, HANDSHAKE_SCRATCH_BYTES);
	return joined;
}

/*
 * Whether the memory may be exchanged now. If definitions are lost, all ids are assigned anew, and no thread may be
 * about to write an event with an old one. That requires the GIL, so the next call or return does it. Without a GIL it
 * is impossible.
 */
static bool may_move(unsigned kind)
{
	return has_all_definitions() || (kind < WIRE_EXCEPTION && !python.free_threaded);
}

/* Lock held. */
static bool rejoin_if_due(unsigned kind, enum rejoin_when when, uint64_t now_us)
{
	bool may = may_move(kind), joined;

	if (process->rejoin_after_us == WANTED && when == REJOIN_AT_TIMES)
		when = REJOIN_NOW;
	if (!may && python.free_threaded && is_gone(when))
		log_no_rejoin("has more definitions than a free-threaded one can take to another");
	if (may || python.free_threaded)
		process->rejoin_after_us = now_us + REJOIN_EVERY_US;
	else if (when == REJOIN_NOW)
		process->rejoin_after_us = WANTED;
	if (!may || atomic_load(&process->status) != PROCESS_JOINED || !is_gone(when))
		return false;
	thread_self.nesting++; /* its memory is not the program's */
	joined = join_again();
	thread_self.nesting--;
	return joined;
}

bool rejoin_if_lost(unsigned kind, enum rejoin_when when)
{
	uint64_t now_us = coarse_us();
	bool joined = false;

	if (when == REJOIN_AT_TIMES && now_us < process->rejoin_after_us)
		return false;
	if (when == REJOIN_AT_END && !process_lock_at_end())
		return false;
	if (when != REJOIN_AT_END)
		process_lock();
	if (when != REJOIN_AT_TIMES || now_us >= process->rejoin_after_us)
		joined = rejoin_if_due(kind, when, now_us);
	process_unlock();
	return joined;
}
