/*
 * session.c - see session.h. Called by cmd/run.c, before and after the program.
 */
#include "run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/environment.h"
#include "evprof/network.h"
#include "evprof/system_calls.h"

#define ENVIRONMENT_MAX 16

/* The collector only has to write what is in the rings: well under a second unless the disk is slow. */
#define SUMMARY_SECONDS 30
#define FORMATS_SECONDS 600 /* if other formats are written, too */

/* A daemon is named by --socket or EVPROF_SOCKET; without both evprof run needs none. */
static int print_no_daemon(const char *what, const char *socket, int error)
{
	fprintf(stderr,
		"evprof run: %s %s: %s; start evprof-collector there, or leave out --socket and " ENV_SOCKET
		" for a collector of its own\n",
		what, socket, strerror(error));
	return -1;
}

static int print_error(const char *what, const char *which, int error)
{
	fprintf(stderr, "evprof: %s %s: %s\n", what, which, strerror(error));
	return -1;
}

/* --- the socket --- */

static int make_address(const char *name, struct sockaddr_un *address, socklen_t *length)
{
	size_t bytes = strlen(name);

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (bytes == 0 || bytes >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path, name, bytes);
	if (name[0] == '@')
		address->sun_path[0] = 0;
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + (name[0] != '@'));
	return 0;
}

/* Creates a socket that is connected to the address, or listens there. Returns it or -errno. */
static int open_socket(const char *name, bool listens)
{
	struct sockaddr_un address;
	socklen_t length;
	int error = make_address(name, &address, &length);
	int fd;

	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if ((listens ? bind : connect)(fd, (struct sockaddr *)&address, length) < 0 ||
	    (listens && listen(fd, CONTROL_BACKLOG) < 0)) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

/*
 * Whether the listener is root or this user. Anybody may listen at an abstract name, and the session's secret must not
 * be sent to others.
 */
static bool is_ours(int fd, const char *name, uid_t *user)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t length = sizeof(who);

	if (name[0] == '@' && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		return false;
	*user = who.uid;
	return name[0] != '@' || who.uid == 0 || who.uid == system_geteuid() || who.uid == system_getuid();
}

int run_session_id(char *id)
{
	unsigned char bytes[CONTROL_SESSION_DIGITS / 2];

	if (system_getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* --- private collector --- */

static void close_from(int first)
{
	if (system_close_range((unsigned)first, ~0u, 0) == 0)
		return;
	for (int fd = first; fd < 65536; fd++)
		close(fd);
}

/*
 * In the child: becomes the collector's program, with fds from CONTROL_LISTEN_FD on. report: a pipe that exec closes;
 * on failure errno is written to it.
 */
static void become_collector(const char *collector, char *const *argv, const int *fds, int count, int report)
{
	int moved[RUN_COLLECTOR_FDS], behind = CONTROL_LISTEN_FD + count;
	int null = open("/dev/null", O_RDWR);
	char *environment[ENVIRONMENT_MAX];
	sigset_t none;
	int error;
	int fd;

	if (null < 0)
		null = open("/", O_PATH); /* without /dev: pipes of the program must still be replaced */
	setsid();
	/* Moves all above the descriptors that are assigned next. */
	for (int i = 0; i < count; i++)
		moved[i] = fcntl(fds[i], F_DUPFD, 10);
	report = fcntl(report, F_DUPFD_CLOEXEC, 10);
	for (fd = 0; fd < 3; fd++)
		dup2(null, fd);
	for (int i = 0; i < count; i++)
		dup2(moved[i], CONTROL_LISTEN_FD + i);
	dup2(report, behind);
	fcntl(behind, F_SETFD, FD_CLOEXEC);
	close_from(behind + 1);
	environment_copy(environ, environment, ENVIRONMENT_MAX);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/") == 0)
		execve(collector, argv, environment);
	error = errno;
	if (write(behind, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/*
 * fork() that debuggers do not follow: one that follows children of evprof run then finds the program. An emulator
 * (qemu-user) or a filter of system calls may refuse the flag.
 */
static pid_t fork_unseen(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL);

	return child < 0 ? fork() : child;
}

int run_collector_program(const char *collector, char *const *argv, const int *fds, int count)
{
	int report[2];
	int error = 0;
	pid_t child;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	child = fork_unseen();
	if (child == 0) {
		if (fork_unseen() == 0)
			become_collector(collector, argv, fds, count, report[1]);
		_exit(0);
	}
	close(report[1]);
	if (child < 0)
		error = errno;
	else
		waitpid(child, NULL, 0);
	if (child > 0 && read(report[0], &error, sizeof(error)) < 0)
		error = errno;
	close(report[0]);
	return -error;
}

int run_socket_listen(const char *name)
{
	return open_socket(name, true);
}

int run_collector_start(int listening, const char *name, const char *collector)
{
	char *argv[] = {(char *)"evprof-collector", (char *)"--private", NULL};
	int error;

	if (listening < 0)
		return print_error("cannot listen at", name, -listening);
	error = run_collector_program(collector, argv, &listening, 1);
	close(listening);
	return error ? print_error("cannot start", collector, -error) : 0;
}

static int start_private(struct run_session *session, const char *collector)
{
	session->socket = malloc(NETWORK_NAME_BYTES);
	if (!session->socket)
		return print_error("cannot start", collector, ENOMEM);
	network_name(session->socket);
	return run_collector_start(run_socket_listen(session->socket), session->socket, collector);
}

/* --- the session --- */

json_t *run_session_hex(const char *bytes)
{
	size_t count = strlen(bytes);
	char *digits = malloc(2 * count + 1);
	json_t *string = NULL;

	for (size_t i = 0; digits && i < count; i++)
		sprintf(digits + 2 * i, "%02x", (unsigned char)bytes[i]);
	if (digits)
		string = json_stringn(digits, 2 * count);
	free(digits);
	return string;
}

static int send_hold(struct run_session *session, const char *output)
{
	json_t *path = json_string(output);
	json_t *message =
	    json_pack("{s:i, s:s, s:s, s:i, s:o, s:o*}", "evprof", CONTROL_VERSION, "type", "hold", "session",
		      session->id, "wait_ms", session->wait_ms, "output", path ? path : json_string("/"),
		      "output_bytes", path ? NULL : run_session_hex(output));
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	int error = text ? 0 : -ENOMEM;

	if (text && send(session->hold, text, strlen(text), MSG_NOSIGNAL) < 0)
		error = -errno;
	free(text);
	json_decref(message);
	return error;
}

int run_session_hold(const char *id, const char *socket, const char *output)
{
	struct run_session session = {.hold = open_socket(socket, false)};
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t length = sizeof(who);
	int error = session.hold < 0 ? session.hold : 0;

	snprintf(session.id, sizeof(session.id), "%s", id);
	if (!error &&
	    (getsockopt(session.hold, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0 || who.uid != system_geteuid()))
		error = -EPERM;
	if (!error)
		error = send_hold(&session, output);
	if (error && session.hold >= 0)
		close(session.hold);
	return error ? error : session.hold;
}

int run_session_try(const char *socket)
{
	int fd = open_socket(socket, false);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int run_session_open(struct run_session *session, const char *socket, const char *collector, const char *output)
{
	int error = run_session_id(session->id);
	uid_t user = (uid_t)-1;

	session->hold = -1;
	session->socket = NULL;
	if (error)
		return print_error("cannot make", "a session", -error);
	if (socket)
		session->socket = socket[0] == '@' ? strdup(socket) : realpath(socket, NULL);
	if (socket && !session->socket)
		return print_no_daemon("there is no collector at", socket, errno);
	if (!socket && start_private(session, collector) < 0)
		return -1;
	session->hold = open_socket(session->socket, false);
	if (session->hold < 0 && socket)
		return print_no_daemon("no collector answers at", session->socket, -session->hold);
	if (session->hold < 0)
		return print_error("no collector answers at", session->socket, -session->hold);
	if (!is_ours(session->hold, session->socket, &user)) {
		fprintf(stderr,
			"evprof run: user %u listens at %s, neither root nor this user: nothing is sent there\n",
			(unsigned)user, session->socket);
		return -1;
	}
	error = send_hold(session, output);
	return error ? print_error("no collector answers at", session->socket, -error) : 0;
}

/* The time to wait. The collector answers after it has written the formats of EVPROF_FORMAT. */
static int wait_seconds(const struct run_session *session)
{
	const char *formats = getenv(ENV_FORMAT);

	return session->wait_ms / 1000 + (formats && formats[0] ? FORMATS_SECONDS : SUMMARY_SECONDS);
}

json_t *run_session_summary(struct run_session *session, int *seconds)
{
	struct pollfd wait = {.fd = session->hold, .events = POLLIN};
	char *message = malloc(CONTROL_MESSAGE_MAX_BYTES);
	json_t *summary = NULL;
	ssize_t bytes;

	*seconds = wait_seconds(session);
	shutdown(session->hold, SHUT_WR);
	if (message && poll(&wait, 1, *seconds < INT_MAX / 1000 ? *seconds * 1000 : -1) > 0) {
		*seconds = 0;
		bytes = recv(session->hold, message, CONTROL_MESSAGE_MAX_BYTES, 0);
		if (bytes > 0)
			summary = json_loadb(message, (size_t)bytes, 0, NULL);
	}
	free(message);
	return summary;
}

void run_session_done(struct run_session *session)
{
	if (session->hold >= 0)
		close(session->hold);
	free(session->socket);
	session->socket = NULL;
	session->hold = -1;
}
