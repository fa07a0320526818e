/*
 * fuzz_server.c - a whole collector and the strangers at its socket: any message with any descriptors, memory that
 * changes while it is read, peers that say nothing or go, descriptors that run out, and time that passes.
 *
 * Whatever they do, the collector must not crash, leak or keep a descriptor, its sessions must end when it is stopped,
 * and its files are its user's own. The input is a list of steps: an opcode byte, then its operands. Built by `make
 * fuzz`.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/server/collector.h"
#include "collector/base/log.h"
#include "tests/fuzz/input.h"
#include "tests/unit/fake_target.c"

#define PEERS 6
#define TARGETS 3
#define SLOTS 4u
#define FDS_MAX 10
#define STEPS_MAX 64

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a stranger may send with a memfd. */
enum odd_fd {
	ODD_SELF,    /* pidfd of this process */
	ODD_DEAD,    /* pidfd of a process that was reaped */
	ODD_ZOMBIE,  /* of one that was not */
	ODD_STRANGE, /* of another one */
	ODD_PIPE,
	ODD_NULL,
	ODD_FOLDER,
	ODD_PATH,
	ODD_EVENT,
	ODD_UNSEALED, /* memfd */
	ODD_SMALL,    /* memfd, sealed */
	ODD_HUGE,     /* likewise */
	ODD_COUNT
};

struct stage {
	struct input input;
	struct collector collector;
	char name[64];
	int peers[PEERS]; /* -1: none */
	struct fake_target targets[TARGETS];
	bool private;
};

static char folder[64];
static int odd[ODD_COUNT];
static uint64_t passed_ns; /* since the input began */
static struct rlimit fd_limit;
static struct rlimit file_limit;

/* In front of the C library's, so that seconds need not be waited for. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, id, now);
	uint64_t ns = (uint64_t)now->tv_nsec + passed_ns;

	if (id != CLOCK_MONOTONIC)
		return result;
	now->tv_sec += (time_t)(ns / 1000000000u);
	now->tv_nsec = (long)(ns % 1000000000u);
	return result;
}

/* --- what there is before the first input --- */

static void remove_folder(void)
{
	rmdir(folder);
}

/* A child that has ended, its status taken or not. */
static int ended_child(bool reaped)
{
	pid_t child = fork();
	siginfo_t info;
	int fd;

	if (child == 0)
		_exit(3);
	fd = (int)syscall(SYS_pidfd_open, child, 0);
	waitid(P_PID, (id_t)child, &info, WEXITED | (reaped ? 0 : WNOWAIT));
	return fd;
}

static int sealed_memfd(off_t bytes, unsigned seals)
{
	int fd = memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, bytes) < 0 || (seals && fcntl(fd, F_ADD_SEALS, seals) < 0))
		abort();
	return fd;
}

static void make_odd_fds(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		abort();
	odd[ODD_SELF] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	odd[ODD_DEAD] = ended_child(true);
	odd[ODD_ZOMBIE] = ended_child(false);
	odd[ODD_STRANGE] = (int)syscall(SYS_pidfd_open, getppid(), 0);
	odd[ODD_PIPE] = ends[0];
	odd[ODD_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	odd[ODD_FOLDER] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	odd[ODD_PATH] = open("/dev/null", O_PATH | O_CLOEXEC);
	odd[ODD_EVENT] = eventfd(0, EFD_CLOEXEC);
	odd[ODD_UNSEALED] = sealed_memfd(1 << 20, 0);
	odd[ODD_SMALL] = sealed_memfd(100, F_SEAL_SHRINK);
	odd[ODD_HUGE] = sealed_memfd((off_t)1 << 44, F_SEAL_SHRINK);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(folder, sizeof(folder), "/dev/shm/evprof-fuzz-%d", (int)getpid());
	if (mkdir(folder, 0700) < 0 || getrlimit(RLIMIT_NOFILE, &fd_limit) < 0 ||
	    getrlimit(RLIMIT_FSIZE, &file_limit) < 0)
		abort();
	atexit(remove_folder);
	signal(SIGPIPE, SIG_IGN);
	make_odd_fds();
	return 0;
}

/* --- steps --- */

/* Each is this user's own. False when there is no descriptor for the folder. */
static bool remove_files(void)
{
	DIR *files = opendir(folder);
	struct dirent *entry;
	struct stat status;

	if (!files)
		return false;
	while ((entry = readdir(files))) {
		if (entry->d_name[0] == '.')
			continue;
		if (fstatat(dirfd(files), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(status.st_mode) || (status.st_mode & 07777) != 0600)
			abort();
		unlinkat(dirfd(files), entry->d_name, 0);
	}
	closedir(files);
	return true;
}

static struct fake_target *take_target(struct stage *stage)
{
	struct fake_target *target = &stage->targets[take(&stage->input, 1) % TARGETS];

	if (!target->map && fake_target_new(target, RING_BYTES_MIN, SLOTS) < 0) {
		if (target->memfd >= 0) /* the limits are for us, too */
			close(target->memfd);
		*target = (struct fake_target){.map = NULL};
	}
	return target;
}

static int *take_peer(struct stage *stage)
{
	return &stage->peers[take(&stage->input, 1) % PEERS];
}

static void close_peer(int *peer)
{
	if (*peer >= 0)
		close(*peer);
	*peer = -1;
}

static int *connected_peer(struct stage *stage)
{
	int *peer = take_peer(stage);

	if (*peer < 0)
		*peer = fake_connect(stage->name);
	if (*peer >= 0)
		fcntl(*peer, F_SETFL, O_NONBLOCK); /* what finds no room is not sent */
	return peer;
}

/* Which descriptors come along: mostly the two that belong to a join. */
static unsigned take_fds(struct stage *stage, int fds[FDS_MAX])
{
	uint64_t how = take(&stage->input, 1);
	struct fake_target *target = take_target(stage);
	unsigned count = 2;

	if (!target->map)
		return 0;
	fds[0] = target->memfd;
	fds[1] = odd[how & 1 ? ODD_DEAD : ODD_SELF];
	if (how < 192)
		return count;
	count = how % (FDS_MAX + 1);
	for (unsigned i = how & 16 ? 1 : 0; i < count; i++)
		fds[i] = odd[take(&stage->input, 1) % ODD_COUNT];
	return count;
}

static void send_join(struct stage *stage)
{
	static const char *const starts[] = {"exec", "fork", "rejoin", "exec"};
	static const char *const programs[] = {"prog", "", "..", "a/../../b", "\\u0000", "."};
	static const char *const sessions[] = {FAKE_SESSION, "ffffffffffffffffffffffffffffffff"};
	int *peer = connected_peer(stage);
	uint64_t how = take(&stage->input, 2);
	char place[128];
	int fds[FDS_MAX];
	unsigned count = take_fds(stage, fds);
	const char *text;

	snprintf(place, sizeof(place), "%s/%%n-%%p.evp", folder);
	text = fake_join_text(&(struct fake_join){.start = starts[how & 3],
						  .program = programs[(how >> 2) % 6],
						  .session = sessions[how >> 8 & 1],
						  .start_time = how >> 9 & 3,
						  .pid = how >> 11 & 1 ? 1 : getpid(),
						  .ppid = how >> 12 & 1 ? getpid() : 0,
						  .output = place});
	fake_send(*peer, text, strlen(text), fds, count);
}

/* Only where the message does not say which file is made. */
static void send_bytes(struct stage *stage)
{
	int *peer = connected_peer(stage);
	size_t bytes = take(&stage->input, 2);
	int fds[FDS_MAX];
	unsigned count = take_fds(stage, fds);
	struct input *input = &stage->input;

	if (bytes > input->left)
		bytes = input->left;
	if (!stage->private)
		fake_send(*peer, (const char *)input->at, bytes, fds, count);
	input->at += bytes;
	input->left -= bytes;
}

static void send_long(struct stage *stage)
{
	static char text[CONTROL_MESSAGE_MAX_BYTES + 100];
	int *peer = connected_peer(stage);
	int size = 1 << 20;

	memset(text, '[', sizeof(text));
	setsockopt(*peer, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	fake_send(*peer, text, sizeof(text) - take(&stage->input, 1), NULL, 0);
}

static void send_hold(struct stage *stage)
{
	char text[256];
	int length = snprintf(text, sizeof(text),
			      "{\"evprof\":1,\"type\":\"hold\",\"session\":\"%s\",\"output\":\"%s/held.evp\"}",
			      FAKE_SESSION, folder);

	fake_send(*connected_peer(stage), text, (size_t)length, NULL, 0);
}

static void send_request(struct stage *stage)
{
	static const char *const types[] = {"status", "another", "status\",\"target\":\"prog",
					    "status\",\"target\":1,\"a\":\""};
	char text[256];
	int length = snprintf(text, sizeof(text), "{\"evprof\":1,\"type\":\"%s\"}", types[take(&stage->input, 1) % 4]);

	fake_send(*connected_peer(stage), text, (size_t)length, NULL, 0);
}

static void write_header(struct stage *stage)
{
	struct fake_target *target = take_target(stage);
	size_t offset = take(&stage->input, 2) % (sizeof(struct ring_header) - 8);
	uint64_t value = take(&stage->input, 8);

	if (target->map)
		memcpy(target->map + offset, &value, sizeof(value));
}

static void write_slot(struct stage *stage)
{
	struct fake_target *target = take_target(stage);
	size_t offset = take(&stage->input, 2) % (SLOTS * sizeof(struct ring_slot) - 8);
	uint64_t value = take(&stage->input, 8);

	if (target->map)
		memcpy((uint8_t *)target->slots + offset, &value, sizeof(value));
}

/* A thread of its own making: begins, has some events, ends. */
static void live(struct stage *stage)
{
	static const uint64_t extra[WIRE_EXTRA_MAX] = {1, 2};
	struct fake_target *target = take_target(stage);
	unsigned slot = (unsigned)take(&stage->input, 1) % SLOTS;
	struct ring_slot *at;

	if (!target->map)
		return;
	at = &target->slots[slot];
	at->data_offset = RING_PAGE_BYTES * 2 + RING_DEFINITIONS_BYTES + slot * RING_BYTES_MIN;
	at->data_words = RING_BYTES_MIN / 8;
	fake_thread_start(target, slot, 1 + slot, 1);
	for (unsigned count = (unsigned)take(&stage->input, 1) % 16; count > 0; count--)
		fake_event(target, slot, take(&stage->input, 8), extra);
	if (take(&stage->input, 1) & 1)
		fake_thread_end(target, slot);
}

static void change_memory(struct stage *stage)
{
	struct fake_target *target = take_target(stage);
	uint64_t how = take(&stage->input, 1);

	if (!target->map)
		return;
	if (how & 1) /* refused: it is sealed */
		(void)!ftruncate(target->memfd, (off_t)take(&stage->input, 2));
	else
		fallocate(target->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)(take(&stage->input, 2) << 8 & ~UINT64_C(4095)), 4096);
	if (how & 2)
		(void)!ftruncate(odd[ODD_UNSEALED], (off_t)take(&stage->input, 2));
}

/* Descriptors run out, or there are enough again. */
static void limit_fds(struct stage *stage)
{
	struct rlimit limit = fd_limit;
	uint64_t free_fds = take(&stage->input, 1);
	int lowest = dup(odd[ODD_NULL]);

	if (lowest >= 0)
		close(lowest);
	if (lowest >= 0 && free_fds < 64)
		limit.rlim_cur = (rlim_t)lowest + free_fds;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The disk is full, or the files are gone. */
static void harm_files(struct stage *stage)
{
	struct rlimit limit = file_limit;
	uint64_t how = take(&stage->input, 2);

	if (how & 1)
		limit.rlim_cur = how;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (how & 2)
		remove_files();
}

/* The image has ended, or goes on elsewhere, or has forked. */
static void go_on(struct stage *stage)
{
	struct fake_target *target = take_target(stage);
	uint32_t how = (uint32_t)take(&stage->input, 1);

	if (!target->map)
		return;
	atomic_store(&target->header->target_state, how % 3);
	atomic_fetch_add(&target->header->forks, how / 64);
}

static void turn(struct stage *stage)
{
	for (unsigned count = 1 + (unsigned)take(&stage->input, 1) % 3; count > 0; count--)
		collector_turn(&stage->collector, 0);
}

static void hang_up(struct stage *stage)
{
	close_peer(take_peer(stage));
}

static void end_writing(struct stage *stage)
{
	shutdown(*take_peer(stage), SHUT_WR);
}

static void pass_time(struct stage *stage)
{
	passed_ns += UINT64_C(1000000) << take(&stage->input, 1) % 16;
}

static void connect_peer(struct stage *stage)
{
	connected_peer(stage);
}

static void step(struct stage *stage)
{
	static void (*const steps[])(struct stage * stage) = {
	    connect_peer, hang_up,   end_writing,  send_join,  send_join,   send_bytes,
	    send_hold,	  pass_time, write_header, write_slot, live,	    change_memory,
	    limit_fds,	  send_long, harm_files,   go_on,      send_request};
	uint64_t which = take(&stage->input, 1) % 20;

	(which < sizeof(steps) / sizeof(steps[0]) ? steps[which] : turn)(stage);
}

/* --- the end --- */

static unsigned open_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	unsigned count = 0;

	if (!fds)
		abort();
	while (readdir(fds))
		count++;
	closedir(fds);
	return count;
}

static void free_target(struct fake_target *target)
{
	struct stat status;

	if (!target->map)
		return;
	if (fstat(target->memfd, &status) < 0)
		abort();
	munmap(target->map, (size_t)status.st_size); /* what the header says is the fuzzer's */
	close(target->memfd);
}

static void clear(struct stage *stage)
{
	setrlimit(RLIMIT_NOFILE, &fd_limit);
	setrlimit(RLIMIT_FSIZE, &file_limit);
	for (unsigned i = 0; i < PEERS; i++)
		close_peer(&stage->peers[i]);
	collector_stop(&stage->collector);
	if (stage->collector.sessions)
		abort();
	collector_done(&stage->collector);
	for (unsigned i = 0; i < TARGETS; i++)
		free_target(&stage->targets[i]);
	if (!remove_files())
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct collector_config config = {.output = "%n-%p.evp"};
	unsigned before = open_fds();
	struct stage stage = {.input = {.at = data, .left = size}};

	log_level = LOG_ERROR;
	signal(SIGXFSZ, SIG_IGN); /* libFuzzer catches it */
	passed_ns = 0;
	memset(stage.peers, 0xff, sizeof(stage.peers));
	stage.private = take(&stage.input, 1) & 1;
	config.private = stage.private;
	config.output_dir = stage.private ? NULL : folder;
	config.listen_fd = fake_listen(stage.name, sizeof(stage.name));
	if (config.listen_fd < 0 || collector_init(&stage.collector, &config) < 0)
		abort();
	for (unsigned steps = 0; stage.input.left > 0 && steps < STEPS_MAX; steps++)
		step(&stage);
	clear(&stage);
	if (open_fds() != before)
		abort();
	return 0;
}
