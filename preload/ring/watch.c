/*
 * watch.c - checks whether the collector of this image still exists.
 *
 * A collector that reads this process's rings is alive, wherever it runs: its heartbeat moves. A silent one is frozen
 * or dead. Its pid decides, if the collector has published one, which it does only to processes of its own pid
 * namespace. Before that, the pid of the process that listened when this image connected is used. A zombie is dead, and
 * a pid with another start time is another process. If the pid decides nothing (another namespace, no /proc), the
 * socket does, together with the silence: the socket's name alone may mean nothing in this network namespace or root. A
 * listener there may be a frozen collector or the next one, so only a long silence counts then.
 *
 * Called by threads that wait for the collector (wait.c) or search for another (rejoin.c).
 */
#include "ring/watch.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/seccomp.h"
#include "evprof/proc.h"
#include "join/handshake.h"
#include "ring/process.h"

#define SILENT_US 100000       /* a collector without a heartbeat for this long may be dead ... */
#define SILENT_AGAIN_US 500000 /* ... and is checked again after this long */
#define SILENT_LONG_US 10000000
#define NS UINT64_C(1000000000)

enum evidence { UNKNOWN, THERE, GONE };

struct watch_listener watch_listener(int connection)
{
	struct ucred who;
	socklen_t length = sizeof(who);
	struct timespec now;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length))
		return (struct watch_listener){0};
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (struct watch_listener){.pid = who.pid,
				       .met_ns = (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec -
						 (uint64_t)time_namespace_offset("boottime")};
}

/* Whether a process exists. *found: its start time, 0 if unknown. */
static enum evidence ask_for(pid_t pid, uint64_t *found)
{
	char state = 0;

	*found = 0;
	if (pid <= 0 || seccomp_active())
		return UNKNOWN;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return GONE;
	*found = proc_start_time(pid, &state, NULL);
	return state == 'Z' || state == 'X' ? GONE : *found ? THERE : UNKNOWN;
}

/*
 * The listener may have passed the socket to the collector and ended, or may still run after that. Only its end is
 * evidence.
 */
static enum evidence ask_for_listener(void)
{
	uint64_t found, ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	enum evidence evidence = ask_for(process->listener.pid, &found);

	/* A process that started a tick after the connection is another one. */
	if (evidence == THERE && (found - 1) * (NS / ticks) > process->listener.met_ns)
		evidence = GONE;
	return evidence == GONE ? GONE : UNKNOWN;
}

static enum evidence ask_number(void)
{
	const struct ring_header *header = process->header;
	uint64_t start_time = atomic_load(&header->collector_start_time), found;
	enum evidence evidence;

	if (atomic_load(&header->collector_state) == RING_COLLECTOR_NONE)
		return ask_for_listener();
	evidence = ask_for(atomic_load(&header->collector_pid), &found);
	if (evidence == THERE && !start_time)
		return UNKNOWN;
	return evidence == THERE && !time_namespace_same_start(found, start_time) ? GONE : evidence;
}

struct watch watch_begin(void)
{
	return (struct watch){.beat = atomic_load(&process->header->heartbeat), .since_us = process_now_us()};
}

/* As it has said; it may still run. */
static bool reads_no_more(void)
{
	uint32_t state = atomic_load(&process->header->collector_state);

	return state == RING_COLLECTOR_REFUSED || state == RING_COLLECTOR_FINISHED;
}

bool watch_is_gone(struct watch *watch)
{
	uint32_t beat = atomic_load(&process->header->heartbeat);
	uint64_t now_us = process_now_us();
	enum evidence evidence;

	if (reads_no_more())
		return true;
	if (beat != watch->beat || !watch->since_us)
		*watch = (struct watch){.beat = beat, .since_us = now_us};
	if (now_us - watch->since_us < SILENT_US || now_us < watch->again_us)
		return false;
	watch->again_us = now_us + SILENT_AGAIN_US;
	evidence = ask_number();
	if (evidence == UNKNOWN)
		return handshake_poke() == POKE_NOBODY || now_us - watch->since_us >= SILENT_LONG_US;
	return evidence == GONE;
}

bool watch_has_ended(void)
{
	return ask_number() == GONE;
}
