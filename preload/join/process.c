/*
 * process.c - the life of this process image: its memory, joining a collector, forking, ending.
 */
#include "join/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log_line.h"
#include "base/own_stack.h"
#include "base/seccomp_state.h"
#include "base/text.h"
#include "definitions/definitions.h"
#include "evprof/shown_path.h"
#include "join/handshake.h"
#include "join/peer.h"
#include "join/rejoin.h"
#include "join/sampling.h"
#include "join/spawn.h"
#include "join/watch.h"
#include "ring/wait_budget.h"

#define WAIT_STEP_US 100 /* between two checks while waiting */
/*
 * The least part of the bound that must be left to begin waiting: events are then lost in a few long stretches, with
 * complete stretches between them.
 */
#define WAIT_LEAST_PART 8
#define LOCK_AT_END_MS 1000
#define TURN_MS 50 /* of one futex wait for the trace */
#define SLOTS_FEWEST 16
#define DEFINITIONS_BYTES_FREE_THREADED (UINT64_C(32) << 20) /* intact definitions can move to another collector */
#define ADDRESS_SPACE_PART 16  /* the rings take at most this part of a limited address space */
#define SUMMARY_STALL_MS 5000  /* the summary line waits this long for a sign of life of the collector ... */
#define SUMMARY_WAIT_MS 60000  /* ... and this long in all */
#define FORMATS_WAIT_MS 600000 /* ... or this long, if the collector also writes other formats */

struct process *process;

/* Not in the memory that a fork clears: children inherit it. */
static struct wait_budget wait_budget = WAIT_BUDGET_FULL;

/* The ring that a forked child inherits and must unmap unused. Not in the memory that a fork clears. */
static uint8_t *mapped;
static size_t mapped_bytes;

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* For short sections only: copying a definition, setting up a ring once. */
void process_lock(void)
{
	lock_take(&process->lock);
}

bool process_lock_at_end(void)
{
	return lock_take_within(&process->lock, LOCK_AT_END_MS);
}

void process_unlock(void)
{
	lock_give(&process->lock);
}

int process_init(void)
{
	void *memory;

	if (process)
		return 0;
	memory =
	    mmap(NULL, sizeof(*process), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	if (madvise(memory, sizeof(*process), MADV_WIPEONFORK) < 0) {
		int r = -errno;

		munmap(memory, sizeof(*process));
		return r;
	}
	process = memory;
	return 0;
}

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + RING_PAGE_BYTES - 1) & ~(uint64_t)(RING_PAGE_BYTES - 1);
}

/* By how much the address space may still grow, if it were smaller by `without` bytes. */
static uint64_t address_space_left(uint64_t without)
{
	struct rlimit limit;
	char pages[32];
	uint64_t used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	if (text_read_file("/proc/self/statm", pages, sizeof(pages)) <= 0)
		return limit.rlim_cur;
	used = strtoull(pages, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) - without;
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/* Creates the shared memory with this number of slots. Returns the memfd or -errno. */
static int make_ring(uint32_t slots, uint64_t ring_bytes)
{
	uint64_t definitions_bytes =
	    python.free_threaded && slots > SLOTS_FEWEST ? DEFINITIONS_BYTES_FREE_THREADED : RING_DEFINITIONS_BYTES;
	uint64_t slots_offset = RING_PAGE_BYTES + definitions_bytes;
	uint64_t data_offset = page_up(slots_offset + slots * sizeof(struct ring_slot));
	uint64_t size = page_up(data_offset + ring_data_bytes(slots, ring_bytes));
	struct rlimit limit;
	int fd, r;

	/* Above this limit ftruncate() would not fail: a signal would kill the process. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size)
		return -EFBIG;
	/* The limit is meant for the program: nearly all of it is left to the program. */
	if (size > address_space_left(0) / (slots > SLOTS_FEWEST ? ADDRESS_SPACE_PART : ADDRESS_SPACE_PART / 4))
		return -ENOMEM;
	fd = memfd_create("evprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto failed;
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (mapped == MAP_FAILED)
		goto failed;
	mapped_bytes = size;
	madvise(mapped, size, MADV_DONTDUMP); /* smaller cores, and a crash takes less time */
	process->base = mapped;
	process->header = (struct ring_header *)mapped;
	process->slots = (struct ring_slot *)(mapped + slots_offset);
	process->layout = (struct ring_layout){
	    .magic = RING_MAGIC,
	    .version = RING_VERSION,
	    .header_bytes = sizeof(struct ring_header),
	    .size_bytes = size,
	    .definitions_offset = RING_PAGE_BYTES,
	    .definitions_bytes = definitions_bytes,
	    .slots_offset = slots_offset,
	    .slot_count = slots,
	    .slot_bytes = sizeof(struct ring_slot),
	    .clock_kind = clock_kind,
	    .clock_shift = CLOCK_SHIFT,
	    .start_ticks = clock_now(),
	    .ring_bytes = ring_bytes,
	    .data_offset = data_offset,
	};
	process->header->layout = process->layout;
	atomic_store(&process->header->wakes, 1);
	process->mapped_bytes = size;
	return fd;
failed:
	r = -errno;
	close(fd);
	mapped = NULL;
	return r;
}

/* Creates a ring of the configured size, or a smaller one if a limit (address space, file size) forbids that. */
static int make_some_ring(void)
{
	static const uint32_t slots[] = {RING_SLOTS, 256, SLOTS_FEWEST};
	uint64_t ring_bytes = config.ring_bytes;
	int fd = -ENOMEM;

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]) && fd < 0; i++, ring_bytes /= 16)
		fd = make_ring(slots[i], ring_bytes < RING_BYTES_MIN ? RING_BYTES_MIN : ring_bytes);
	return fd;
}

uint32_t process_slots_used(void)
{
	uint32_t own = atomic_load(&process->slots_used), shared = ring_slots_used(&process->layout, process->header);

	return own > shared ? own : shared;
}

/* The offset of a slot's ring. */
static uint64_t slot_offset(uint32_t number)
{
	return ring_extent(&process->layout, number).offset;
}

/* How many slots fit into these bytes; at least those that may be in use. */
static uint32_t slots_within(uint64_t bytes)
{
	uint32_t count = process->layout.slot_count, slots = process_slots_used();

	/* A sampler may be about to claim the next slot, and assumes that all rings have one size. */
	if (config.events & EVENT_SAMPLE)
		slots++;
	else if (!process->layout.first_small)
		process->layout.first_small = slots;
	while (slots < count && slot_offset(slots + 1) <= bytes)
		slots++;
	return slots < count ? slots : count;
}

/*
 * Unmaps the end of the memory. Lock held, so no thread is about to claim a slot. The file keeps its size, because the
 * collector may not have examined it yet; the collector maps none of these rings.
 */
static void shrink_mapping(uint64_t keep)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;

	end = slot_offset(process_slots_used()) + SLOTS_FEWEST * RING_BYTES_MIN;
	if (keep < end)
		keep = end;
	if (keep >= process->mapped_bytes)
		return;
	process->header->layout.slot_count = process->layout.slot_count = slots_within(keep);
	end = (slot_offset(process->layout.slot_count) + page - 1) & ~(page - 1);
	if (end >= process->mapped_bytes || munmap(mapped + end, process->mapped_bytes - end) < 0)
		return;
	process->mapped_bytes = mapped_bytes = end;
}

static void shrink_to(enum process_room room)
{
	uint64_t left = address_space_left(process->mapped_bytes);

	if (room == PROCESS_ROOM_LEAST)
		shrink_mapping(0);
	else if (left != UINT64_MAX)
		shrink_mapping(left / ADDRESS_SPACE_PART);
}

void process_shrink(enum process_room room)
{
	int saved_errno = errno;

	process_lock();
	if (atomic_load(&process->status) == PROCESS_JOINED || atomic_load(&process->status) == PROCESS_STOPPED)
		shrink_to(room);
	process_unlock();
	errno = saved_errno;
}

uint64_t process_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void forget_inherited_ring(void)
{
	if (mapped)
		munmap(mapped, mapped_bytes);
	mapped = NULL;
}

/*
 * The child of a fork keeps one page of its parent's memory until it has joined: by that mapping the collector sees
 * that the child is about to join.
 */
static uint8_t *keep_inherited_page(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *kept = mapped;

	if (mapped)
		munmap(mapped + page, mapped_bytes - page);
	mapped = NULL;
	return kept;
}

static int join(int start)
{
	uint64_t begin_us = process_now_us();
	uint8_t *inherited = keep_inherited_page();
	void *scratch;
	int fd, connection, r;

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
		goto left;
	}
	fd = make_some_ring();
	if (fd < 0) {
		handshake_absent(fd == -EPERM || fd == -ENOSYS ? "a filter refuses memfd_create()"
							       : "no shared memory for events",
				 fd);
		r = fd;
		goto done;
	}
	r = connection = handshake_connect(start, scratch);
	if (connection >= 0) {
		process->listener = watch_listener(connection);
		r = handshake_send(connection, fd, start, scratch);
		if (r == 0)
			sampling_follow(fd, scratch);
		close(connection);
	}
	close(fd);
	if (r < 0)
		forget_inherited_ring();
done:
	munmap(scratch, HANDSHAKE_SCRATCH_BYTES);
left:
	if (inherited)
		munmap(inherited, (size_t)sysconf(_SC_PAGESIZE));
	if (r == 0) {
		ids_begin(&process->ids);
		process->watch = watch_begin();
		process->rejoin_after_us = process->watch.since_us + REJOIN_EVERY_US;
	}
	log_line(LOG_DEBUG, "joined %s in %llu us", session.socket, (unsigned long long)(process_now_us() - begin_us));
	return r;
}

void process_forget_ids(void)
{
	ids_clear(&process->ids);
	lock_take(&process->names.lock);
	for (size_t i = 0; i < 1u << NAMES_BITS; i++)
		atomic_store_explicit(&process->names.at[i].key, 0, memory_order_relaxed);
	lock_give(&process->names.lock);
	native_forget();
}

void process_begin_again(void)
{
	uint32_t status;

	process_lock();
	status = atomic_load(&process->status);
	if (status == PROCESS_JOINED || status == PROCESS_STOPPED) {
		process_set_status(PROCESS_MOVING);
		process_forget_ids();
		process_set_status(status);
	}
	process_unlock();
}

int process_join(int start)
{
	int saved_errno = errno;
	bool joined = false;
	struct writer *writer;

	/* Memory that joining allocates or frees is not the program's. */
	thread_self.nesting++;
	process_lock();
	if (atomic_load(&process->status) == PROCESS_UNJOINED) {
		joined = !join(start);
		/* Release: a thread that sees JOINED sees the ring. */
		atomic_store_explicit(&process->status, joined ? PROCESS_JOINED : PROCESS_OFF, memory_order_release);
	}
	process_unlock();
	writer = joined ? writer_reserve(WIRE_PROCESS_START) : NULL; /* takes the lock for its ring */
	if (writer)
		writer_put(writer, wire_head(WIRE_PROCESS_START, (uint32_t)start));
	if (writer && start == WIRE_START_FORK)
		definitions_inherited_name();
	thread_self.nesting--;
	errno = saved_errno;
	return atomic_load(&process->status) == PROCESS_JOINED ? 0 : -ENOTCONN;
}

int process_recording(void)
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
	if (status != PROCESS_UNJOINED || !session.id[0])
		return 0;
	/* The child of a fork, at its first event. */
	if (!config.children && getpid() != session.first) {
		atomic_store(&process->status, PROCESS_OFF);
		forget_inherited_ring();
		return 0;
	}
	return !process_join(WIRE_START_FORK);
}

void process_forked(void)
{
	/* The kernel has cleared the other state of the image. */
	thread_self.nesting = 0;
	thread_self.lost_block = NULL;
	own_stack_forked();
	sampling_forget();
}

void process_wakes_nobody(void)
{
	if (process && process->header)
		atomic_store(&process->header->wakes, 0);
}

void process_poke_collector(void)
{
	if (handshake_poke() != POKE_WOKEN)
		process_wakes_nobody();
}

void process_wake_collector(void)
{
	int saved_errno = errno;

	/* One thread wakes it for all. */
	if (atomic_load_explicit(&process->header->sleep, memory_order_relaxed) != RING_AWAKE &&
	    atomic_exchange(&process->header->sleep, RING_AWAKE) != RING_AWAKE)
		process_poke_collector();
	errno = saved_errno;
}

/* Whether a thread waited in vain and the heartbeat has not moved since. */
static bool is_stalled(void)
{
	return atomic_load(&process->stalled_heartbeat) == atomic_load(&process->header->heartbeat) + 1;
}

void process_give_up(uint32_t heartbeat)
{
	atomic_store(&process->stalled_heartbeat, heartbeat + 1);
}

static int64_t wait_bound_us(void)
{
	return (int64_t)config.wait_ms * 1000;
}

bool process_may_wait(void)
{
	int64_t bound_us = wait_bound_us();

	return bound_us && !is_stalled() &&
	       wait_budget_left(&wait_budget, (int64_t)process_now_us(), bound_us) >= bound_us / WAIT_LEAST_PART;
}

/*
 * Sleeps one step and returns the time after it. The slept time counts at least, because a library may stop the clock
 * for the program.
 */
static int64_t wait_a_step(int64_t begin_us)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_US * 1000};
	int64_t least_us = clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL) == 0 ? begin_us + WAIT_STEP_US : begin_us;
	int64_t now_us = (int64_t)process_now_us();

	if (now_us < least_us)
		now_us = least_us;
	wait_budget_charge(&wait_budget, begin_us, now_us, wait_bound_us());
	return now_us;
}

int process_wait_unless_gone(int (*done)(const void *what), const void *what)
{
	struct ring_header *header = process->header;
	int64_t begin_us = (int64_t)process_now_us(), now_us = begin_us;
	struct watch watch;
	bool gone = false;

	if (done(what))
		return 1;
	if (!process_may_wait())
		return 0;
	watch = watch_begin();
	process_poke_collector();
	for (unsigned i = 0; !done(what) && !gone && wait_budget_left(&wait_budget, now_us, wait_bound_us()); i++) {
		gone = i % 64 == 63 && watch_is_gone(&watch);
		atomic_store(&header->waiting, 1);
		process_wake_collector(); /* it may have gone to sleep before it could see the flag */
		now_us = wait_a_step(now_us);
	}
	atomic_store(&header->waiting, 0);
	atomic_fetch_add(&header->waits, 1);
	atomic_fetch_add(&header->waited_us, (uint64_t)(now_us - begin_us));
	if (done(what))
		return 1;
	if (gone)
		return -ESRCH;
	process_give_up(atomic_load(&header->heartbeat));
	return 0;
}

int process_wait_for(int (*done)(const void *what), const void *what)
{
	uint32_t heartbeat = atomic_load(&process->header->heartbeat);
	int waited = process_wait_unless_gone(done, what);

	if (waited < 0)
		process_give_up(heartbeat);
	return waited > 0;
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
		if (watch_is_gone(&watch) || is_stalled())
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
	char said[RING_TEXT_BYTES], still[80] = "";
	const char *path;

	/* The text is the collector's: it may lack its terminator. */
	memcpy(said, header->text, sizeof(said));
	said[sizeof(said) - 1] = 0;
	path = seccomp_active() ? said : shown_path(said, text);

	if (state == RING_COLLECTOR_NONE) {
		log_line(LOG_ERROR, "the collector does not answer; the trace file holds what it wrote so far");
	} else if (state == RING_COLLECTOR_REFUSED || state == RING_COLLECTOR_FAILED) {
		log_line(LOG_ERROR, "%s", said);
	} else {
		if (running)
			snprintf(still, sizeof(still), " (%u still running; complete when they end)", running);
		log_line(LOG_ERROR, "%llu events of %u process%s, %llu lost, in %s%s; show it with: evprof report %s",
			 (unsigned long long)atomic_load(&header->summary_events), processes,
			 processes == 1 ? "" : "es", (unsigned long long)atomic_load(&header->summary_lost), path,
			 still, path);
		if (unsampled)
			log_line(LOG_WARNING, "the sampler of %u process%s was killed; later samples are missing",
				 unsampled, unsampled == 1 ? "" : "es");
	}
}

void process_look_again(void)
{
	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++)
		writer_set_room(&process->writers[i], 0, 0);
}

void process_expect_stacks(void)
{
	if (!process->header) /* the child of a fork, before its first event */
		return;
	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++)
		__atomic_store_n(&process->writers[i].asked, 1, __ATOMIC_SEQ_CST);
	process_look_again();
}

void process_set_status(uint32_t status)
{
	/* Status first, then the room: a thread that sets its own room in between reads the status afterwards. */
	atomic_store(&process->status, status);
	process_look_again();
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

/* number: the signal by which the image ends; 0: it exits. */
static void finish(int number)
{
	bool locked = process_lock_at_end(); /* a rejoin in another thread changes status and header, too */

	process_set_status(PROCESS_OFF);
	atomic_store(&process->header->ending_signal, (uint32_t)number);
	atomic_store(&process->header->target_state, RING_TARGET_EXITING);
	if (locked)
		process_unlock();
	if (session.owner == process->pid) {
		uint64_t begin_us = process_now_us();
		uint32_t state;

		process_poke_collector();
		state = wait_for_collector();
		log_line(LOG_DEBUG, "waited %llu us for the collector",
			 (unsigned long long)(process_now_us() - begin_us));
		print_summary(state);
	}
}

static void finish_by_exit(void *status)
{
	struct writer *writer;

	if (!begin_to_finish())
		return;
	writer = writer_reserve(WIRE_EXIT);
	if (writer)
		writer_put(writer, wire_head(WIRE_EXIT, WIRE_EXIT_KNOWN | (*(const uint32_t *)status & 0xff)));
	finish(0);
}

static void finish_by_signal(void *number)
{
	if (begin_to_finish())
		finish(*(const int *)number);
}

void process_finish(int status)
{
	own_stack_call(finish_by_exit, &status);
}

void process_finish_by_signal(int number)
{
	own_stack_call(finish_by_signal, &number);
}
