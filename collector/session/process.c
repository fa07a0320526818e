/*
 * process.c - maps the memory of a process that joins, after checking every number in it, and answers it.
 *
 * Called by the session. drain.c reads events and definitions.
 */
#include "session/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "evprof/settings.h"
#include "base/users.h"
#include "trace/trace_output.h"

#define FORKED_MANY 64			   /* with this many forked children, check whether they live ... */
#define FORKED_CHECK_NS UINT64_C(50000000) /* ... this often */
#define FORKED_MAX 1024u		   /* limit of forked children with known pids */
#define MAPS_MAX_BYTES ((size_t)1 << 20)   /* limit for reading the maps of a process */

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446 /* linux/magic.h, since 6.9: there a pidfd's inode is the process's */
#endif

#define NOT_A_PIDFD (-2)

/* The pid of a pidfd; 0: it has none in our pid namespace; -1: it was reaped, as the kernel (5.5) has it. */
static pid_t pidfd_pid(int pidfd)
{
	char path[64], text[512];
	const char *found;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	found = proc_read(path, text, sizeof(text)) > 0 ? strstr(text, "\nPid:") : NULL;
	if (!found || sscanf(found + 5, "%d", &pid) != 1)
		return NOT_A_PIDFD;
	return pid;
}

const char *process_of_tool(int pidfd, struct ucred *who)
{
	pid_t pid = proc_is_ours() ? pidfd_pid(pidfd) : 0;
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (pid <= 0 || stat(path, &status) < 0)
		return "the collector does not find the process that is to be sampled";
	if (who->uid != 0 && who->uid != status.st_uid)
		return "the process that is to be sampled is another user's";
	who->pid = pid;
	return NULL;
}

/* Replaces the sender's pidfd, which /proc cannot identify here, by one that we open. */
static const char *replace_pidfd(int pidfd, pid_t pid, bool *dead)
{
	int own = (int)syscall(SYS_pidfd_open, pid, 0);

	*dead = own < 0 && errno == ESRCH;
	if (own < 0)
		return *dead ? NULL : "the collector cannot watch the process: it needs pidfd_open() or /proc";
	dup3(own, pidfd, O_CLOEXEC);
	close(own);
	return NULL;
}

static const char *check_pidfd(int pidfd, pid_t pid, bool *dead)
{
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};
	pid_t shown;

	if (!proc_is_ours())
		return replace_pidfd(pidfd, pid, dead);
	shown = pidfd_pid(pidfd);

	if (shown == NOT_A_PIDFD)
		return "the second descriptor is not a pidfd";
	if (shown >= 0 && shown != pid)
		return "the pidfd is not that of the sender";
	*dead = shown < 0 || (poll(&poller, 1, 0) == 1 && (poller.revents & POLLIN));
	return NULL;
}

bool process_is_same(const struct process *process, const struct process *other)
{
	struct statfs system;
	struct stat status, other_status;

	if (process->pid != other->pid)
		return false;
	if (process->pid != PROCESS_HIDDEN)
		return true;
	if (fstatfs(process->source.fd, &system) == 0 && system.f_type == PID_FS_MAGIC)
		return fstat(process->source.fd, &status) == 0 && fstat(other->source.fd, &other_status) == 0 &&
		       status.st_ino == other_status.st_ino;
	return process->sender_pid == other->sender_pid && process->start_time == other->start_time &&
	       process->user == other->user;
}

/* mmap needs offsets in whole system pages, which may be larger than RING_PAGE_BYTES. */
static int map_slots(struct process *process)
{
	const struct ring_layout *layout = &process->layout;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = layout->slots_offset & ~(page - 1);
	uint64_t before = layout->slots_offset - start;

	process->slots_map_bytes = before + (uint64_t)layout->slot_count * sizeof(struct ring_slot);
	process->slots_map =
	    mmap(NULL, process->slots_map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, process->memfd, (off_t)start);
	if (process->slots_map == MAP_FAILED)
		return -errno;
	process->slots = (struct ring_slot *)(void *)((char *)process->slots_map + before);
	return 0;
}

static struct ring_header *map_header(int memfd)
{
	void *map = mmap(NULL, RING_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);

	return map == MAP_FAILED ? NULL : map;
}

static int map_all(struct process *process)
{
	process->header = map_header(process->memfd);
	if (!process->header)
		return -errno;
	return map_slots(process);
}

static void unmap_all(struct process *process)
{
	if (process->slots_map != MAP_FAILED)
		munmap(process->slots_map, process->slots_map_bytes);
	if (process->header)
		munmap(process->header, RING_PAGE_BYTES);
}

int process_new(int memfd, int pidfd, pid_t pid, struct process **result, char *reason, size_t reason_bytes)
{
	static uint64_t made;
	struct process *process = calloc(1, sizeof(*process));
	const char *wrong;
	int error = -EINVAL;

	if (!process) {
		snprintf(reason, reason_bytes, "the collector has no memory left");
		return -ENOMEM;
	}
	process->slots_map = MAP_FAILED;
	process->status = -1;
	process->signal = -1;
	wrong = layout_read(memfd, &process->layout);
	if (!wrong)
		wrong = check_pidfd(pidfd, pid, &process->dead);
	if (wrong) {
		snprintf(reason, reason_bytes, "%s", wrong);
		goto fail;
	}
	process->memfd = memfd;
	error = map_all(process);
	if (error) {
		snprintf(reason, reason_bytes, "the memfd cannot be mapped: %s", strerror(-error));
		goto fail;
	}
	process->source.fd = pidfd;
	process->pid = pid;
	process->joined = ++made;
	*result = process;
	return 0;
fail:
	unmap_all(process);
	free(process);
	return error;
}

void process_forget(struct process *process)
{
	for (unsigned i = 0; i < process->reader_count; i++)
		free(process->readers[i]);
	title_done(&process->title);
	free(process->program);
	free(process->readers);
	free(process->forked);
	unmap_all(process);
	free(process);
}

void process_renew_rate(struct process *process, uint64_t now_ns)
{
	struct process_totals *totals = &process->totals;
	uint64_t passed_ns = now_ns - totals->rate_ns;

	if (now_ns < totals->rate_ns || passed_ns < PROCESS_RATE_NS)
		return;
	totals->events_per_s =
	    (uint64_t)((double)(totals->events - totals->rate_events) * 1e9 / (double)passed_ns + 0.5);
	totals->rate_ns = now_ns;
	totals->rate_events = totals->events;
}

void process_write_events(struct process *process)
{
	/* Acquire: the process wrote the ticks first. */
	uint32_t events = atomic_load_explicit(&process->header->events, memory_order_acquire);

	if (!events || events == process->events || events >> SETTING_EVENTS)
		return;
	process->events = events;
	resident_begin(&process->resident, events);
	trace_output_json(process->trace, process->number, TRACE_NOBODY,
			  meta_events(process->number, events, atomic_load(&process->header->events_ticks)),
			  KEPT_STATE);
}

void process_write_resident(struct process *process)
{
	struct meta_resident *read = &process->resident.read;

	if (!read->peak_bytes)
		return;
	trace_output_json(process->trace, process->number, TRACE_NOBODY, meta_resident(process->number, read),
			  KEPT_PASSING);
	*read = (struct meta_resident){0};
}

void process_free(struct process *process)
{
	close(process->memfd);
	close(process->source.fd);
	process_forget(process);
}

/* Not cut inside a character. */
static void put_text(struct ring_header *header, const char *text)
{
	size_t length = strnlen(text, RING_TEXT_BYTES - 1);

	while (length > 0 && length == RING_TEXT_BYTES - 1 && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	memcpy(header->text, text, length);
	memset(header->text + length, 0, RING_TEXT_BYTES - length);
}

void process_attach(struct process *process, const char *path)
{
	static uint64_t start_time;
	/* Our pid has no meaning in another pid namespace. */
	pid_t pid = process->pid == process->sender_pid ? getpid() : 0;

	start_time = start_time ? start_time : proc_start_time(0, NULL, NULL);
	atomic_store_explicit(&process->header->collector_start_time, start_time, memory_order_relaxed);
	atomic_store_explicit(&process->header->collector_pid, pid, memory_order_relaxed);
	put_text(process->header, path);
	atomic_store_explicit(&process->header->collector_state, RING_COLLECTOR_ATTACHED, memory_order_release);
}

static void publish_answer(struct ring_header *header, enum ring_collector_state state, const char *text)
{
	put_text(header, text);
	/* Release: pairs with the target's acquire. Text and summary are visible before the state. */
	atomic_store_explicit(&header->collector_state, (uint32_t)state, memory_order_release);
	syscall(SYS_futex, &header->collector_state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void process_answer(struct process *process, enum ring_collector_state state, const char *text)
{
	publish_answer(process->header, state, text);
}

void process_refuse(int memfd, const char *text)
{
	struct ring_header *header;
	uint64_t size;

	if (layout_check_memfd(memfd, &size))
		return;
	header = map_header(memfd);
	if (!header)
		return;
	publish_answer(header, RING_COLLECTOR_REFUSED, text);
	munmap(header, RING_PAGE_BYTES);
}

/* linux/pidfd.h, since 6.13; PIDFD_INFO_EXIT since 6.15. */
struct pidfd_exit_info {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};

#define PIDFD_EXIT_INFO (UINT64_C(1) << 3)
#define PIDFD_GET_EXIT_INFO _IOWR(0xff, 11, struct pidfd_exit_info)

_Static_assert(sizeof(struct pidfd_exit_info) == 64, "the first version of struct pidfd_info");

/* The status as wait() gives it, of a process that is dead but not reaped. */
static bool exit_code_of_zombie(const struct process *process, int *code)
{
	char path[64], target[PATH_MAX];

	if (process->pid == PROCESS_HIDDEN ||
	    !time_namespace_same_start(proc_start_time(process->pid, NULL, code), process->start_time) || *code < 0)
		return false;
	/* The kernel also shows 0 to readers without permission. Those cannot read the program's link either. */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
	return *code != 0 || readlink(path, target, sizeof(target)) >= 0 || errno != EACCES;
}

/* The same from the pidfd, once the process is reaped: its parent is often faster than we are. */
static bool exit_code_of_pidfd(const struct process *process, int *code)
{
	struct pidfd_exit_info info = {.mask = PIDFD_EXIT_INFO};

	if (ioctl(process->source.fd, PIDFD_GET_EXIT_INFO, &info) < 0 || !(info.mask & PIDFD_EXIT_INFO))
		return false;
	*code = info.exit_code;
	return true;
}

void process_read_end(struct process *process)
{
	int code = -1;

	if (!exit_code_of_zombie(process, &code) && !exit_code_of_pidfd(process, &code))
		return;
	if (WIFSIGNALED(code)) {
		process->signal = WTERMSIG(code);
	} else {
		process->exited = true;
		process->status = WEXITSTATUS(code);
	}
}

ino_t process_inode(const struct process *process)
{
	struct stat status;

	return fstat(process->memfd, &status) < 0 ? 0 : status.st_ino;
}

int process_maps(struct user *user, pid_t pid, ino_t inode)
{
	char path[64];
	char *line = NULL;
	size_t capacity = 0;
	bool found = false;
	size_t looked = 0;
	ssize_t length;
	FILE *maps;

	if (!user_may_look(user))
		return -EAGAIN;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (!proc_is_ours())
		return -ENOENT;
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (!found && looked < MAPS_MAX_BYTES && (length = getline(&line, &capacity, maps)) > 0) {
		unsigned long other;

		looked += (size_t)length;
		found = sscanf(line, "%*s %*s %*s %*s %lu", &other) == 1 && other == (unsigned long)inode &&
			strstr(line, "/memfd:");
	}
	free(line);
	fclose(maps);
	/* A zombie has no maps at all. */
	return found ? 1 : looked >= MAPS_MAX_BYTES ? -EFBIG : looked > 0 ? 0 : -ENOENT;
}

bool process_may_map(int maps)
{
	return maps == 1 || maps == -EFBIG || maps == -EAGAIN;
}

int process_image_gone(const struct process *process, struct user *user)
{
	ino_t inode = process_inode(process);
	int maps = inode ? process_maps(user, process->pid, inode) : 1;

	return maps == 0 ? 1 : maps == -EAGAIN ? maps : 0;
}

void process_check_forks(struct process *process, struct user *user, uint64_t now_ns)
{
	ino_t inode;

	if (process->forked_count < FORKED_MANY || now_ns < process->forked_check_ns)
		return;
	inode = process_inode(process);
	if (process->forked_next > process->forked_count)
		process->forked_next = process->forked_count;
	while (process->forked_next > 0) {
		int maps = process_maps(user, process->forked[process->forked_next - 1], inode);

		if (maps == -EAGAIN)
			return;
		if (!process_may_map(maps))
			process->forked[process->forked_next - 1] = process->forked[--process->forked_count];
		process->forked_next--;
	}
	process->forked_next = process->forked_count;
	process->forked_check_ns = now_ns + FORKED_CHECK_NS;
}

void process_note_fork(struct process *process, pid_t child)
{
	/* The pid of a child in another namespace has no meaning here. */
	if (process->pid != process->sender_pid)
		return;
	for (unsigned i = 0; i < process->forked_count; i++) {
		if (process->forked[i] == child)
			return;
	}
	if (process->forked_count >= FORKED_MAX)
		return;
	if (process->forked_count == process->forked_capacity) {
		unsigned capacity = process->forked_capacity ? process->forked_capacity * 2 : 16;
		pid_t *forked = realloc(process->forked, capacity * sizeof(*forked));

		if (!forked)
			return;
		process->forked = forked;
		process->forked_capacity = capacity;
	}
	process->forked[process->forked_count++] = child;
}

void process_forget_fork(struct process *process, pid_t child)
{
	for (unsigned i = 0; i < process->forked_count; i++) {
		if (process->forked[i] == child) {
			process->forked[i] = process->forked[--process->forked_count];
			return;
		}
	}
}

static void announce_request(const struct process *process)
{
	if (!process->dead && atomic_load(&process->header->follows))
		syscall(SYS_pidfd_send_signal, process->source.fd, SIGURG, NULL, 0);
}

/* The first of the orders. */
static void write_request(struct process *process)
{
	struct ring_header *header = process->header;

	/* The process may read the name of an earlier mark at the same time: it ends within its bytes. */
	memcpy(header->request_name, process->orders[0].name, RING_REQUEST_NAME_BYTES);
	process_write_events(process); /* of the request before */
	process->request = (process->request / 4 + 1) * 4 + process->orders[0].what;
	atomic_store_explicit(&header->request, process->request, memory_order_release);
}

void process_next_request(struct process *process)
{
	if (!process->order_count || atomic_load(&process->header->followed) != process->request)
		return;
	process->order_count--;
	memmove(process->orders, process->orders + 1, process->order_count * sizeof(process->orders[0]));
	if (!process->order_count)
		return;
	write_request(process);
	announce_request(process);
}

static bool is_last_request(const struct process *process, enum ring_request what, const char *name)
{
	const struct process_order *last = process->orders + process->order_count - 1;

	return process->order_count && last->what == what && !strcmp(last->name, name);
}

bool process_takes_request(struct process *process, enum ring_request what, const char *name)
{
	process_next_request(process);
	return process->order_count < PROCESS_ORDERS || is_last_request(process, what, name);
}

void process_request(struct process *process, enum ring_request what, const char *name)
{
	struct process_order *order;

	process_next_request(process);
	if (!is_last_request(process, what, name)) {
		order = &process->orders[process->order_count++];
		*order = (struct process_order){.what = what};
		snprintf(order->name, sizeof(order->name), "%s", name);
		if (process->order_count == 1)
			write_request(process);
	}
	announce_request(process);
}

bool process_has_followed(const struct process *process)
{
	return process->order_count <= 1 && atomic_load(&process->header->followed) == process->request;
}

bool process_has_refused(const struct process *process)
{
	return process->request && process->order_count <= 1 &&
	       atomic_load(&process->header->refused) == process->request;
}
