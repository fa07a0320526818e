/*
 * handshake.c - finds or starts the collector and sends it the join message.
 *
 * Runs at the start of a program, and in children just after fork: it allocates nothing, and closes every descriptor
 * before it returns.
 */
#include "join/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/filter.h"
#include "base/log_line.h"
#include "base/seccomp.h"
#include "evprof/proc.h"
#include "base/text.h"
#include "evprof/control.h"
#include "evprof/network.h"
#include "evprof/system_calls.h"
#include "evprof/wire.h"
#include "join/network.h"
#include "join/peer.h"
#include "join/spawn.h"
#include "python/python.h"

#define CONNECT_TRIES 1000 /* one millisecond apart: a full backlog, with many children at once */
#define RESUMES_MAX 3
#define POKE_TRIES 1 /* with a full backlog no collector sleeps */

#define STRANGER (-EPERM) /* result of connecting: the listener is not ours */

struct session session;
static _Atomic uid_t stranger; /* the last one found; threads that wake a collector find them, too */

/* Moves a descriptor above the standard ones, which a program may have closed and mean to open again. */
static int above_standard(int fd)
{
	int moved;

	if (fd < 0)
		return -errno;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, 64);
	if (moved < 0)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* a low RLIMIT_NOFILE */
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

static int new_socket(void)
{
	return above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* Connects a socket, or closes it on failure. */
static int connect_by(int fd, const char *name, int tries)
{
	const struct timespec step = {.tv_nsec = 1000000};
	struct sockaddr_un address;
	socklen_t length;
	int r = network_address(name, &address, &length);

	if (fd < 0)
		return fd;
	if (r < 0)
		tries = 0;
	for (int i = 0; i < tries; i++) {
		if (!connect(fd, (struct sockaddr *)&address, length))
			return fd;
		r = -errno;
		if (r != -EAGAIN && r != -EINTR)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
	}
	close(fd);
	return r;
}

/* Connects to a listener of ours, in whatever network namespace; else STRANGER. */
static int connect_to(const char *name, int tries)
{
	const pid_t members[] = {session.owner, session.first};
	int fd = connect_by(new_socket(), name, tries), there;
	uid_t user;

	if (fd == -ECONNREFUSED && network_is_another(name) && (there = network_socket(name, members)) >= 0)
		fd = connect_by(above_standard(there), name, tries);
	if (fd < 0 || peer_is_ours(fd, name, &user))
		return fd;
	stranger = user;
	close(fd);
	return STRANGER;
}

static enum poke poke(void)
{
	int fd;

	if (seccomp_active())
		return POKE_FAILED;
	fd = session.id[0] ? connect_to(session.socket, POKE_TRIES) : -EBADF;
	if (fd >= 0)
		close(fd);
	if (fd == -ECONNREFUSED || fd == -ENOENT || fd == STRANGER)
		return POKE_NOBODY;
	return fd >= 0 || fd == -EAGAIN ? POKE_WOKEN : POKE_FAILED;
}

enum poke handshake_poke(void)
{
	enum poke result;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	result = poke();
	pthread_setcancelstate(cancel_state, NULL);
	return result;
}

static void add_argv(struct text *text, char *scratch, size_t size)
{
	long n =
	    proc_read("/proc/self/cmdline", scratch, size < CONTROL_ARGV_MAX_BYTES ? size : CONTROL_ARGV_MAX_BYTES);

	text_add(text, ",\"argv\":[");
	for (long at = 0; at < n;) {
		size_t length = strnlen(scratch + at, (size_t)(n - at));

		text_add(text, "%s", at ? "," : "");
		text_add_json(text, scratch + at, length);
		at += (long)length + 1;
	}
	text_add(text, "]");
}

static void add_string(struct text *text, const char *name, const char *value)
{
	text_add(text, ",\"%s\":", name);
	text_add_json(text, value, strlen(value));
}

/* If the string has lost bytes that are not UTF-8, the bytes themselves name the file. */
static void add_output(struct text *text)
{
	size_t begin = text->used;

	add_string(text, "output", config.output);
	if (!strstr(text->bytes + begin, "\\ufffd"))
		return;
	text_add(text, ",\"output_bytes\":\"");
	for (const char *byte = config.output; *byte; byte++)
		text_add(text, "%02x", (unsigned char)*byte);
	text_add(text, "\"");
}

static void add_events(struct text *text)
{
	const char *comma = "";
	/* A sample is recorded as calls and lines. */
	unsigned events = config.events | (config.events & EVENT_SAMPLE ? EVENT_CALL | EVENT_LINE : 0);

	text_add(text, ",\"events\":[");
	for (size_t i = 0; i < CONFIG_EVENTS; i++)
		if (events & 1u << i) {
			text_add(text, "%s\"%s\"", comma, config_event_names[i]);
			comma = ",";
		}
	text_add(text, "]");
	if (config.events & EVENT_SAMPLE)
		text_add(text, ",\"sample_rate\":%u", config.sample_rate);
	if (config.memory_interval)
		text_add(text, ",\"memory_interval\":%llu", (unsigned long long)config.memory_interval);
	if (config.budget)
		text_add(text, ",\"budget\":%u", config.budget);
	if (config.keep.ns)
		text_add(text, ",\"keep_ns\":%llu", (unsigned long long)config.keep.ns);
	if (config.keep.bytes)
		text_add(text, ",\"keep_bytes\":%llu", (unsigned long long)config.keep.bytes);
	if (config.keep.alive)
		text_add(text, ",\"keep_alive\":true");
	if (config.native_stacks)
		text_add(text, ",\"native\":true");
	if (config.malloc_unseen)
		text_add(text, ",\"malloc_unseen\":true");
	if (filter_any)
		text_add(text, ",\"filtered\":true");
	if (config.program_only)
		text_add(text, ",\"program_only\":true");
}

static void build_message(struct text *text, int start, char *scratch, size_t size)
{
	static const char *const starts[] = {"exec", "fork", "rejoin"};
	char *half = scratch + size / 2;
	ssize_t n;

	text_add(text, "{\"evprof\":%d,\"type\":\"join\",\"session\":\"%s\",\"start\":\"%s\"", CONTROL_VERSION,
		 session.id, starts[start]);
	text_add(text, ",\"pid\":%d,\"ppid\":%d,\"start_time\":%llu,\"root\":%s", (int)getpid(), (int)getppid(),
		 (unsigned long long)proc_start_time(0, NULL, NULL), session.first == getpid() ? "true" : "false");
	add_string(text, "python", python_version());
	n = proc_read("/proc/self/cmdline", half, size / 2);
	proc_program_name(half, n, scratch, size / 2);
	add_string(text, "program", scratch);
	n = readlink("/proc/self/exe", scratch, size / 2 - 1);
	scratch[n > 0 ? n : 0] = 0;
	add_string(text, "exe", scratch);
	add_string(text, "cwd", getcwd(scratch, size / 2) ? scratch : "");
	add_string(text, "host", gethostname(scratch, 256) ? "" : scratch);
	add_output(text);
	if (config.formats[0])
		add_string(text, "formats", config.formats);
	if (config.trigger[0])
		add_string(text, "trigger", config.trigger);
	add_events(text);
	add_argv(text, scratch, size / 2);
	text_add(text, "}");
}

/* Sends the valid descriptors, which come first. */
static int send_message(int fd, const struct text *text, const int fds[CONTROL_FDS])
{
	union {
		char bytes[CMSG_SPACE(CONTROL_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {.iov_base = text->bytes, .iov_len = text->used};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	unsigned count = 0;

	while (count < CONTROL_FDS && fds[count] >= 0)
		count++;
	message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	for (int i = 0; i < 10; i++) {
		if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		poll(&writable, 1, 100);
	}
	return -ETIMEDOUT;
}

static void publish_session(void)
{
	char value[4200];

	if (config.attached) /* a running program may be reading its environment */
		return;
	snprintf(value, sizeof(value), "%s:%d:%d:%s", session.id, session.first, session.owner, session.socket);
	setenv(ENV_SESSION, value, 1);
}

/*
 * Creates the session's id, which is its secret: a process that knows it may join as another user (control.h). Early
 * after boot there are no random numbers: the id is then only unique, and marked as such.
 */
static void new_id(void)
{
	unsigned char random[CONTROL_SESSION_DIGITS / 2] = {0};
	struct timespec now;

	if (system_getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
		uint64_t parts[] = {0, (uint64_t)getpid() << 32};

		_Static_assert(sizeof(parts) == sizeof(random) && CONTROL_OPEN_DIGITS == 16, "the first part is zero");
		clock_gettime(CLOCK_REALTIME, &now);
		parts[1] ^= (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
		memcpy(random, parts, sizeof(random));
	}
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(session.id + 2 * i, 3, "%02x", random[i]);
}

static void new_session(const char *socket_name)
{
	new_id();
	if (socket_name)
		snprintf(session.socket, sizeof(session.socket), "%s", socket_name);
	else
		network_name(session.socket);
	session.first = getpid();
	session.owner = config.attached ? 0 : session.first; /* whoever attached shows the result */
	peer_session_begins();
	publish_session();
}

/* The collector inherits the limit of descriptors, and may raise its soft limit up to the hard one. */
static bool collector_has_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= CONTROL_COLLECTOR_FDS)
		return true;
	log_line(LOG_ERROR, "the limit of open files is %llu, a collector needs %d; nothing is recorded",
		 (unsigned long long)limit.rlim_max, CONTROL_COLLECTOR_FDS);
	return false;
}

/*
 * Listens before the collector runs, so that no joining process waits for it. resumes: the pid that names the trace of
 * an earlier collector, or 0. Returns 0 or -errno; -EADDRINUSE if another process was first.
 */
static int listen_and_spawn(pid_t resumes, void *scratch)
{
	struct sockaddr_un address;
	socklen_t length;
	int fd, r;

	if (!collector_has_descriptors())
		return -EMFILE;
	r = fd = new_socket();
	if (fd >= 0)
		r = network_address(session.socket, &address, &length);
	if (!r && (bind(fd, (struct sockaddr *)&address, length) || listen(fd, CONTROL_BACKLOG)))
		r = -errno;
	if (!r)
		r = spawn_collector(fd, resumes, scratch);
	if (fd >= 0)
		close(fd);
	if (r == -ENOENT)
		log_line(LOG_ERROR, "evprof-collector is not next to %s; nothing is recorded", library_path);
	else if (r < 0 && r != -EADDRINUSE)
		log_line(LOG_ERROR, "cannot start the collector: %s; nothing is recorded", strerror(-r));
	return r;
}

static int start_private(void *scratch)
{
	int r;

	new_session(NULL);
	r = listen_and_spawn(0, scratch);
	if (r)
		return r;
	r = connect_to(session.socket, CONNECT_TRIES);
	if (r < 0)
		log_line(LOG_ERROR, "cannot connect to the collector: %s; nothing is recorded", strerror(-r));
	return r;
}

/* Whether a process waits for the session's trace. If not, this process becomes that owner. */
static bool session_is_owned(void)
{
	bool owned = !kill(session.owner, 0) || errno != ESRCH;

	if (!owned)
		session.owner = getpid();
	return owned;
}

/*
 * Reports that the collector just started continues for the whole tree. A program that was attached to is not told: its
 * child may have been forked before a detach, and join after it.
 */
static void take_session_over(int start)
{
	bool owned = session_is_owned();
	enum log_level level = owned && session.owner ? LOG_WARNING : LOG_INFO;

	if (network_is_another(session.socket))
		log_line(LOG_WARNING, "the collector of the first process is in another network namespace and cannot "
				      "be reached; here another one goes on, in a separate trace next to it");
	else
		log_line(level, "the collector is gone, its trace ends there; another one goes on, in a separate trace "
				"next to it");
	if (!owned && start != WIRE_START_REJOIN) /* a running program may be reading its environment */
		publish_session();
}

/*
 * A stranger listens in place of the session's collector, and may have the secret from the same place as the name. This
 * process and its children continue with a new id and socket.
 */
static int start_other_session(int start, void *scratch)
{
	int r;

	log_line(LOG_WARNING,
		 "user %u listens in the place of this session's collector: nothing is sent there; another one goes "
		 "on, in a trace of its own",
		 (unsigned)stranger);
	new_id();
	network_name(session.socket);
	session_is_owned();
	if (start != WIRE_START_REJOIN)
		publish_session();
	r = listen_and_spawn(session.first, scratch);
	return r ? r : connect_to(session.socket, CONNECT_TRIES);
}

/*
 * Resumes a session whose private collector is gone. The name of its socket is the lock: the process that binds it
 * starts the next collector, and all others find that one.
 */
static int resume_private(int start, void *scratch)
{
	static unsigned
	    started; /* in a tree that continues by forks, a collector that always fails is not restarted for ever */
	const struct timespec step = {.tv_nsec = 1000000};

	for (int i = 0; i < CONNECT_TRIES; i++) {
		int fd = connect_to(session.socket, POKE_TRIES), r;

		if (fd >= 0 || (fd != -ECONNREFUSED && fd != -EAGAIN && fd != STRANGER))
			return fd;
		if (fd != -EAGAIN && started >= RESUMES_MAX)
			return -ECONNREFUSED;
		if (fd == STRANGER) {
			started++;
			return start_other_session(start, scratch);
		}
		r = fd == -ECONNREFUSED ? listen_and_spawn(session.first, scratch) : -EADDRINUSE;
		if (r == 0) {
			started++;
			take_session_over(start);
		} else if (r != -EADDRINUSE) {
			return r;
		} else {
			clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL); /* the other process is about to listen */
		}
	}
	return -ETIMEDOUT;
}

static bool is_private(void)
{
	return session.socket[0] == '@' && strcmp(config.socket, session.socket) != 0;
}

/* Connects to the session's socket. */
static int connect_to_session(int start, void *scratch)
{
	int fd = connect_to(session.socket, start == WIRE_START_REJOIN ? POKE_TRIES : CONNECT_TRIES);

	if ((fd == -ECONNREFUSED || fd == STRANGER) && is_private())
		return resume_private(start, scratch);
	return fd;
}

/* Reports that no collector of ours listens at EVPROF_SOCKET. */
static void log_missing_collector(int error, enum log_level level)
{
	const char *next = config.fallback ? "a private collector is started" : "this process is not recorded";

	if (error == STRANGER)
		log_line(level,
			 "user %u listens at %s=%s, neither root nor this user: nothing is sent there; %s; give the "
			 "socket a path in a folder of that user or root",
			 (unsigned)stranger, ENV_SOCKET, config.socket, next);
	else
		log_line(level, "no collector answers at %s=%s (%s); %s; start evprof-collector --socket there%s",
			 ENV_SOCKET, config.socket, strerror(-error), next,
			 config.fallback ? "" : ", or set " ENV_FALLBACK "=1 for a private one");
}

static void inherit_session(void)
{
	if (session.id[0] || !config.session[0])
		return;
	memcpy(session.id, config.session, sizeof(session.id));
	memcpy(session.socket, config.session_socket, sizeof(session.socket));
	session.first = config.session_first;
	session.owner = config.session_owner;
}

void handshake_absent(const char *what, int error)
{
	char why[CONTROL_REASON_MAX_BYTES / 2], message[CONTROL_REASON_MAX_BYTES * 2];
	struct text text;
	int fd;

	snprintf(why, sizeof(why), "%s: %s", what, strerror(-error));
	log_line(LOG_ERROR, "%s; this process is not recorded", why);
	inherit_session();
	fd = session.id[0] ? connect_to(session.socket, POKE_TRIES) : -EBADF;
	if (fd < 0)
		return;
	text_init(&text, message, sizeof(message));
	text_add(&text, "{\"evprof\":%d,\"type\":\"absent\",\"session\":\"%s\"", CONTROL_VERSION, session.id);
	add_string(&text, "reason", why);
	text_add(&text, "}");
	send(fd, text.bytes, text.used, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int handshake_connect(int start, void *scratch)
{
	enum log_level level = session.id[0] || config.session[0] ? LOG_INFO : LOG_WARNING; /* once in a tree */
	int fd;

	inherit_session();
	if (session.id[0]) {
		fd = connect_to_session(start, scratch);
		if (fd >= 0 || start == WIRE_START_REJOIN)
			return fd;
		log_line(LOG_INFO, "the collector of this session is gone (%s: %s)", session.socket, strerror(-fd));
	}
	if (!config.socket[0])
		return start_private(scratch);
	new_session(config.socket);
	fd = connect_to(config.socket, CONNECT_TRIES);
	if (fd >= 0)
		return fd;
	log_missing_collector(fd, level);
	return config.fallback ? start_private(scratch) : fd;
}

int handshake_send(int connection, int memfd, int start, void *scratch)
{
	/* A filter may refuse the pidfd: the collector then opens one itself. */
	int fds[CONTROL_FDS] = {memfd, above_standard((int)syscall(SYS_pidfd_open, getpid(), 0))};
	struct text text;
	char what[160];
	int r;

	text_init(&text, scratch, CONTROL_MESSAGE_MAX_BYTES);
	build_message(&text, start, (char *)scratch + CONTROL_MESSAGE_MAX_BYTES,
		      HANDSHAKE_SCRATCH_BYTES - CONTROL_MESSAGE_MAX_BYTES);
	r = text.cut ? -E2BIG : send_message(connection, &text, fds);
	if (fds[1] >= 0)
		close(fds[1]);
	if (r < 0) {
		snprintf(what, sizeof(what), "cannot join the collector at %.110s", session.socket);
		handshake_absent(what, r);
	}
	return r;
}
