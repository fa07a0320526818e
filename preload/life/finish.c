/*
 * finish.c - the end of the process image, or of its recording: the last event, the wait for the trace, the summary
 * line.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/own_stack.h"
#include "base/seccomp.h"
#include "evprof/proc.h"
#include "evprof/shown_text.h"
#include "join/handshake.h"
#include "life/life.h"
#include "life/mappings.h"
#include "ring/clock.h"
#include "ring/exchange.h"
#include "ring/process.h"
#include "ring/wait.h"
#include "ring/watch.h"

#define TURN_MS 50	       /* of one futex wait for the trace */
#define SUMMARY_STALL_MS 5000  /* the summary line waits this long for a sign of life of the collector ... */
#define SUMMARY_WAIT_MS 60000  /* ... and this long in all */
#define FORMATS_WAIT_MS 600000 /* ... or this long, if the collector also writes other formats */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static int is_final(uint32_t state)
{
	return state == RING_COLLECTOR_REFUSED || state == RING_COLLECTOR_FAILED || state == RING_COLLECTOR_DRAINED ||
	       state == RING_COLLECTOR_FINISHED;
}

/*
 * Waits until the collector has finished with this process. Returns its state, or RING_COLLECTOR_NONE if it went
 * silent. The program's signals may cut waits short, so the clock counts; where the clock does not move for the
 * program, waits of full length count.
 */
static uint32_t wait_for_collector(void)
{
	struct ring_header *header = process->header;
	const struct timespec step = {.tv_nsec = TURN_MS * 1000000};
	uint32_t beat = atomic_load(&header->heartbeat), state;
	struct watch watch = watch_begin();
	uint64_t now_us = process_now_us(), beat_us = now_us, before_us;
	uint64_t end_us = now_us + (uint64_t)(config.formats[0] ? FORMATS_WAIT_MS : SUMMARY_WAIT_MS) * 1000;

	while (now_us < end_us && now_us - beat_us < (uint64_t)SUMMARY_STALL_MS * 1000) {
		state = atomic_load(&header->collector_state);
		if (is_final(state))
			return state;
		if (watch_is_gone(&watch) || wait_was_in_vain())
			break;
		before_us = process_now_us();
		now_us += futex(&header->collector_state, FUTEX_WAIT, state, &step) < 0 && errno == ETIMEDOUT
			      ? TURN_MS * 1000
			      : process_now_us() - before_us;
		if (beat != atomic_load(&header->heartbeat))
			beat_us = now_us;
		beat = atomic_load(&header->heartbeat);
	}
	state = atomic_load(&header->collector_state);
	return is_final(state) ? state : RING_COLLECTOR_NONE;
}

static void print_summary(uint32_t state)
{
	const struct ring_header *header = process->header;
	unsigned running = atomic_load(&header->summary_running), processes = atomic_load(&header->summary_processes);
	static char text[SHOWN_PATH_BYTES];
	unsigned unsampled = atomic_load(&header->summary_unsampled);
	char said[RING_TEXT_BYTES], still[80] = "", kept[64];
	const char *path;

	/* The text is the collector's: it may lack its terminator. */
	memcpy(said, header->text, sizeof(said));
	said[sizeof(said) - 1] = 0;
	path = seccomp_active() ? said : shown_path(said, text);

	if (state == RING_COLLECTOR_NONE) {
		log_line(LOG_ERROR, "the collector does not answer; the trace file holds what it wrote so far");
	} else if (state == RING_COLLECTOR_REFUSED || state == RING_COLLECTOR_FAILED) {
		log_line(LOG_ERROR, "%s", said);
	} else if (!*said) {
		log_line(LOG_ERROR, "%llu events of %u process%s, %llu lost; no trace is kept (" ENV_OUTPUT "=none)",
			 (unsigned long long)atomic_load(&header->summary_events), processes,
			 processes == 1 ? "" : "es", (unsigned long long)atomic_load(&header->summary_lost));
	} else {
		setting_keep_text(&config.keep, kept, sizeof(kept));
		if (running)
			snprintf(still, sizeof(still), " (%u still running; complete when they end)", running);
		log_line(LOG_ERROR, "%s%llu events of %u process%s, %llu lost, in %s%s; show it with: evprof %s %s",
			 kept, (unsigned long long)atomic_load(&header->summary_events), processes,
			 processes == 1 ? "" : "es", (unsigned long long)atomic_load(&header->summary_lost), path,
			 still, setting_verb(config.events), path);
		if (unsampled)
			log_line(LOG_WARNING, "the sampler of %u process%s was killed; later samples are missing",
				 unsampled, unsampled == 1 ? "" : "es");
	}
}

/* Whether this image has something to finish. */
static bool begin_to_finish(void)
{
	uint32_t now;

	if (!process || process->pid != getpid())
		return false;
	now = atomic_load(&process->status);
	if (now != PROCESS_JOINED && now != PROCESS_STOPPED)
		return false;
	rejoin_if_lost(WIRE_EXIT, REJOIN_AT_END);
	return true;
}

/* A line of /proc/self/status, "VmRSS:	  1234 kB", in bytes; 0: there is none. */
static uint64_t status_bytes(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

static void write_mappings(struct ring_header *header)
{
	struct mappings mappings = {.bytes = {0}};

	if (!mappings_read(&mappings))
		return;
	for (unsigned i = 0; i < RING_RESIDENTS; i++)
		atomic_store(&header->resident[i], mappings.bytes[i]);
	atomic_store(&header->resident_ticks, clock_now());
}

/*
 * What of this process is resident, the pages of its ring among it. getrusage() has the peak of the image before an
 * exec, too.
 */
static void write_resident(struct ring_header *header)
{
	char text[2048];

	if (seccomp_active() || proc_read("/proc/self/status", text, sizeof(text)) <= 0)
		return;
	atomic_store(&header->peak_rss_bytes, status_bytes(text, "\nVmHWM:"));
	if (config.events & EVENT_MALLOC && status_bytes(text, "\nVmRSS:") <= MAPPINGS_RESIDENT_MAX)
		write_mappings(header);
}

/* number: the signal by which the image ends; 0: it exits, or goes on without recording. */
static void end_recording(int number)
{
	bool locked = process_lock_at_end(); /* a rejoin in another thread changes status and header, too */

	process->ended = true;
	process_set_status(PROCESS_OFF);
	write_resident(process->header);
	atomic_store(&process->header->ending_signal, (uint32_t)number);
	atomic_store(&process->header->target_state, RING_TARGET_EXITING);
	if (locked)
		process_unlock();
}

static uint32_t wait_for_trace(void)
{
	uint64_t begin_us = process_now_us();
	uint32_t state;

	process_poke_collector();
	state = wait_for_collector();
	log_line(LOG_DEBUG, "waited %llu us for the collector", (unsigned long long)(process_now_us() - begin_us));
	return state;
}

static void finish_with(int number)
{
	end_recording(number);
	if (session.owner == process->pid)
		print_summary(wait_for_trace());
}

static void finish_by_exit(void *status)
{
	const int *known = status;

	if (!begin_to_finish())
		return;
	writer_put_rare(WIRE_EXIT, *known == LIFE_STATUS_UNKNOWN ? 0 : WIRE_EXIT_KNOWN | ((uint32_t)*known & 0xff));
	finish_with(0);
}

static void finish_by_signal(void *number)
{
	if (begin_to_finish())
		finish_with(*(const int *)number);
}

void life_finish(int status)
{
	own_stack_call(finish_by_exit, &status);
}

void life_finish_by_signal(int number)
{
	own_stack_call(finish_by_signal, &number);
}

/* Lock held. */
static bool leave(void)
{
	uint32_t status = atomic_load(&process->status);
	bool left;

	if (status != PROCESS_JOINED && status != PROCESS_STOPPED)
		return false;
	process_set_status(PROCESS_MOVING);
	write_resident(process->header);
	left = !exchange_leave();
	process_set_status(left ? PROCESS_LEFT : status);
	return left;
}

bool life_leave(void)
{
	int saved_errno = errno;
	bool left;

	process_lock();
	left = leave();
	if (left) {
		process_forget_ids();
		handshake_poke();
		session.id[0] = 0;
	}
	process_unlock();
	errno = saved_errno;
	return left;
}

bool process_detach(void)
{
	uint32_t state;

	if (!begin_to_finish())
		return false;
	end_recording(0);
	state = wait_for_trace();
	return state == RING_COLLECTOR_DRAINED || state == RING_COLLECTOR_FINISHED;
}
