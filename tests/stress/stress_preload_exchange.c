/*
 * stress_preload_exchange.c - collectors die and others take their place (life/rejoin.c), all the while threads write
 * (producer.h). The process notices, connects to the next one's socket, exchanges its memory and sends it, with the
 * library's own code; the collectors are drain.c (consumer.h). Run by `make stress` and `make TSAN=1 stress`.
 *
 *   stress_preload_exchange [SECONDS]     of each phase, default: 5
 *
 * A collector dies between two rounds, so that nothing may be missing: what was written and what was lost must be what
 * all collectors together have read and what their gaps count, each word once, with the time that it had.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload/base/config.h"
#include "evprof/proc.h"
#include "preload/join/handshake.h"
#include "preload/life/life.h"
#include "preload/ring/process.h"
#include "preload/ring/watch.h"
#include "evprof/control.h"
#include "tests/stress/consumer.h"
#include "tests/stress/producer.h"

#define LIFE_ROUNDS_MAX 16 /* of a collector */
#define WIDE (UINT64_C(1) << 20)
#define JOIN_TIMEOUT_MS 30000

struct phase {
	const char *name;
	uint32_t wait_ms;
	uint64_t ring_bytes; /* small: most writers wait; large: most are in the middle of an event */
	unsigned pause_us;   /* between two rounds of a collector */
	bool hurried;	     /* somebody looks for the next collector all the time, not only who writes */
};

static _Atomic bool producers_gone, hurry;
static int listener = -1;

/*
 * In place of the thread sanitizer's, which takes it for a write to everything that it maps (Makefile: --wrap). That it
 * lies over what other threads are writing to is the point here.
 */
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset); /* -1: MAP_FAILED */
}

/* As if EVPROF_SOCKET named us. */
static void open_listener(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length;

	snprintf(config.socket, sizeof(config.socket), "@evprof-stress-%d", (int)getpid());
	snprintf(session.socket, sizeof(session.socket), "%s", config.socket);
	memset(session.id, '0', sizeof(session.id) - 1);
	session.first = session.owner = getpid();
	memcpy(address.sun_path, config.socket, strlen(config.socket));
	address.sun_path[0] = '\0';
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(config.socket));
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 16))
		abort();
}

/* The memfd of a join message; -1: somebody connected and said nothing, to wake us. */
static int read_join(int connection)
{
	static char message[CONTROL_MESSAGE_MAX_BYTES];
	union {
		char bytes[CMSG_SPACE(CONTROL_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = message, .iov_len = sizeof(message)};
	struct msghdr header = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	int fds[CONTROL_FDS] = {-1, -1};

	if (recvmsg(connection, &header, MSG_CMSG_CLOEXEC) > 0) {
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(fds));
		close(fds[1]);
	}
	close(connection);
	return fds[0];
}

/* Waits for the process. -1: there is nobody to come any more. */
static int next_memfd(void)
{
	struct pollfd poller = {.fd = listener, .events = POLLIN};
	int waited_ms = 0, memfd = -1;

	while (memfd < 0 && !producers_gone) {
		if (poll(&poller, 1, 10) > 0)
			memfd = read_join(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		else if ((waited_ms += 10) > JOIN_TIMEOUT_MS)
			abort();
	}
	return memfd;
}

/* As collector/session/process.c says who reads there. */
static void be_there(bool alive)
{
	struct ring_header *header = process->header;

	/* A pid that another process has got is that of a dead collector. A tick makes none (proc.h). */
	atomic_store(&header->collector_start_time, proc_start_time(0, NULL, NULL) + 2 * !alive);
	atomic_store(&header->collector_pid, getpid());
	atomic_store(&header->collector_state, RING_COLLECTOR_ATTACHED);
	hurry = !alive;
}

/* One collector after the other. */
static void *collectors(void *argument)
{
	const struct phase *phase = argument;
	uint64_t seed = 1;
	int memfd;

	while (!producers_gone) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		for (unsigned rounds = (unsigned)(seed >> 33) % LIFE_ROUNDS_MAX; rounds > 0; rounds--) {
			consumer_round(false);
			producers_nap(phase->pause_us);
		}
		be_there(false);
		memfd = next_memfd();
		if (memfd < 0)
			break;
		consumer_move(process->base, memfd);
		be_there(true);
	}
	consumer_round(false);
	consumer_round(true);
	return NULL;
}

/*
 * Nor afterwards: who is jolted again and again does not go on at all, and the next collector may have to wait for one
 * that is about to wake it.
 */
static bool awaits_exchange(void)
{
	return hurry && atomic_load(&process->header->collector_state) == RING_COLLECTOR_ATTACHED;
}

/* A thread with much to write looks at most once a second. */
static void *hurried(void *unused)
{
	(void)unused;
	while (!producers_gone) {
		/* Some are in the middle of an event when the memory is exchanged. */
		if (awaits_exchange()) {
			producers_jolt();
			rejoin_if_lost(WIRE_CALL, REJOIN_NOW);
		}
		producers_nap(200);
	}
	return NULL;
}

static int judge(const struct phase *phase, const struct producer_counts *done, const struct consumer_counts *seen)
{
	/* Where ids are to be given anew, a thread at a memory event leaves that to others, and may lose meanwhile. */
	bool may_lose = seen->from_start < seen->moves;
	int wrong = producers_judge(done, seen);

	/* What the phase is for must have happened. */
	if (!may_lose)
		wrong += producers_compare("something was lost", done->lost > 0, phase->wait_ms == 0);
	wrong += producers_compare("memory was exchanged", seen->moves > 0, 1);
	wrong += producers_compare("lives went on in other memory", seen->lives_moved > 0, 1);
	printf("  %s: %llu events, %llu lost, %llu lives, %llu exchanges (%llu with all definitions) under %llu lives: "
	       "%s\n",
	       phase->name, (unsigned long long)seen->events, (unsigned long long)seen->lost,
	       (unsigned long long)seen->threads, (unsigned long long)seen->moves, (unsigned long long)seen->from_start,
	       (unsigned long long)seen->lives_moved, wrong ? "WRONG" : "right");
	return wrong;
}

static int run(struct phase *phase, unsigned seconds)
{
	int memfd = producers_open(phase->wait_ms, phase->ring_bytes);
	struct producer_counts done;
	struct consumer_counts seen;
	pthread_t reader, looker;

	producers_gone = hurry = false;
	process->watch = watch_begin();
	process->rejoin_after_us = 0;
	consumer_open(process->base, memfd);
	be_there(true);
	if (pthread_create(&reader, NULL, collectors, phase) ||
	    (phase->hurried && pthread_create(&looker, NULL, hurried, NULL)))
		abort();
	producers_begin();
	producers_nap(seconds * 1000000);
	done = producers_end();
	producers_gone = true;
	pthread_join(reader, NULL);
	if (phase->hurried)
		pthread_join(looker, NULL);
	seen = consumer_close();
	producers_close();
	return judge(phase, &done, &seen);
}

int main(int argc, char **argv)
{
	struct phase phases[] = {
	    {"collectors die, nobody waits", PRODUCERS_WAIT_MS, WIDE, 100, true},
	    {"collectors die, a full ring is waited for", PRODUCERS_WAIT_MS, RING_BYTES_MIN, 200, true},
	    {"collectors die, a full ring loses", 0, RING_BYTES_MIN, 1000, true},
	    {"who waits finds the next collector", PRODUCERS_WAIT_MS, RING_BYTES_MIN, 200, false}};
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
	int wrong = 0;

	producers_init();
	open_listener();
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		wrong += run(&phases[i], seconds);
	return wrong ? 1 : 0;
}
