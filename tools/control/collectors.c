/*
 * collectors.c - see collectors.h.
 *
 * Anybody may listen at an abstract name that looks like a collector's. Nothing is sent before the kernel has named the
 * listener's user.
 */
#include "control/collectors.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/socket_owner.h"
#include "evprof/system_calls.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/output.h"

#define LISTENS 0x10000 /* a flag of /proc/net/unix: __SO_ACCEPTCON of linux/net.h */
#define COLLECTORS_MAX 4096u
#define END_TURNS 50 /* half a second */

/* --- one collector --- */

/* Whether the listener may be asked. asked: the user has named the socket, and a path stands for who listens there. */
static bool is_meant(int fd, const char *name, bool asked, struct ucred *who)
{
	socklen_t length = sizeof(*who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &length) < 0)
		return false;
	return who->uid == 0 || who->uid == system_geteuid() || who->uid == system_getuid() || system_geteuid() == 0 ||
	       (asked ? name[0] != '@' : socket_owner_is_shown(name, who->uid));
}

static bool is_known(const struct control_collectors *collectors, const char *name)
{
	for (size_t i = 0; i < collectors->count; i++) {
		if (strcmp(collectors->at[i].socket, name) == 0)
			return true;
	}
	return false;
}

/* A place for one more. NULL: no memory, or too many. */
static struct control_collector *add_place(struct control_collectors *collectors)
{
	size_t count = collectors->count;
	struct control_collector *at = collectors->at;

	if ((count & (count - 1)) == 0)
		at = realloc(at, (count ? 2 * count : 1) * sizeof(*at));
	if (!at)
		return NULL;
	collectors->at = at;
	if (count == COLLECTORS_MAX)
		return NULL;
	collectors->count++;
	return &at[count];
}

/* Until a private collector listens, the kernel says that this process does, which has made the socket. */
static void add_connected(struct control_collectors *collectors, const char *name, int fd, pid_t pid)
{
	struct control_collector *collector = add_place(collectors);

	if (!collector) {
		close(fd);
		return;
	}
	*collector = (struct control_collector){.fd = fd, .pid = pid == getpid() ? 0 : pid};
	snprintf(collector->socket, sizeof(collector->socket), "%s", name);
}

static int add_asked(const char *verb, const char *name, struct control_collectors *collectors)
{
	int fd = control_connect(name);
	struct ucred who;

	if (fd < 0) {
		if (verb)
			output_message("evprof %s: no collector answers at %s: %s", verb, name, strerror(-fd));
		return -1;
	}
	if (!is_meant(fd, name, true, &who)) {
		if (verb)
			output_message(
			    "evprof %s: user %u listens at %s, neither root nor this user: nothing is sent there", verb,
			    (unsigned)who.uid, name);
		close(fd);
		return -1;
	}
	add_connected(collectors, name, fd, who.pid);
	return 0;
}

/* --- all of the user's --- */

static void try_name(struct control_collectors *collectors, const char *name)
{
	struct ucred who;
	int fd = is_known(collectors, name) ? -1 : control_connect(name);

	if (fd >= 0 && is_meant(fd, name, false, &who))
		add_connected(collectors, name, fd, who.pid);
	else if (fd >= 0)
		close(fd);
}

/* The name of a listening SOCK_SEQPACKET socket in a line of /proc/net/unix. NULL: the line is of another socket. */
static const char *listener_of(char *line)
{
	unsigned flags, type;
	int at = 0;

	if (sscanf(line, "%*s %*x %*x %x %x %*x %*u %n", &flags, &type, &at) != 2 || !at || !(flags & LISTENS) ||
	    type != SOCK_SEQPACKET)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line[at] == '/' || line[at] == '@' ? line + at : NULL;
}

static void find_all(struct control_collectors *collectors)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	char *line = NULL;
	size_t capacity = 0;

	try_name(collectors, CONTROL_DAEMON_SOCKET);
	while (sockets && getline(&line, &capacity, sockets) > 0) {
		const char *name = listener_of(line);

		if (name && strstr(name, "evprof"))
			try_name(collectors, name);
	}
	free(line);
	if (sockets)
		fclose(sockets);
}

static int compare_names(const void *one, const void *other)
{
	return strcmp(((const struct control_collector *)one)->socket,
		      ((const struct control_collector *)other)->socket);
}

static void print_none(const char *verb)
{
	output_message("evprof %s: no collector of this user runs here; evprof run PROGRAM starts one, and --socket "
		       "SOCKET names another",
		       verb);
}

int control_collectors_find(const char *verb, const char *socket, struct control_collectors *collectors)
{
	const char *name = socket ? socket : getenv(ENV_SOCKET);

	*collectors = (struct control_collectors){0};
	if (name && name[0])
		return add_asked(verb, name, collectors);
	find_all(collectors);
	if (collectors->count) {
		qsort(collectors->at, collectors->count, sizeof(collectors->at[0]), compare_names);
		return 0;
	}
	if (verb)
		print_none(verb);
	return -1;
}

/* --- asking --- */

static bool is_gone(const char *socket)
{
	int fd = control_connect(socket);

	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED || fd == -ENOENT;
}

/* A collector that ends closes its connections a moment before its socket. */
static bool has_ended(const struct control_collector *collector)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	for (int i = 0; i < END_TURNS && collector->closed && !is_gone(collector->socket); i++)
		nanosleep(&pause, NULL);
	return is_gone(collector->socket);
}

void control_collectors_ask(struct control_collectors *collectors, json_t *request, int timeout_ms)
{
	int64_t deadline_ns;
	char *text = NULL;

	if (json_object_set_new(request, "evprof", json_integer(CONTROL_VERSION)) == 0)
		text = json_dumps(request, JSON_COMPACT);
	deadline_ns = time_ns(CLOCK_MONOTONIC) + (int64_t)timeout_ms * 1000000;
	for (size_t i = 0; i < collectors->count; i++) {
		if (text)
			control_send(&collectors->at[i], text);
		else
			strcpy(collectors->at[i].error, "no memory is left");
	}
	free(text);
	for (size_t i = 0; i < collectors->count; i++) {
		struct control_collector *collector = &collectors->at[i];

		if (!collector->error[0])
			control_receive(collector, deadline_ns);
		if (!collector->answer)
			collector->ended = has_ended(collector);
		close(collector->fd);
		collector->fd = -1;
	}
}

int control_collectors_complain(const char *verb, const struct control_collectors *collectors)
{
	size_t silent = 0, answers = 0;

	for (size_t i = 0; i < collectors->count; i++) {
		const struct control_collector *collector = &collectors->at[i];

		answers += collector->answer != NULL;
		if (collector->answer || collector->ended)
			continue;
		output_message("evprof %s: collector %d at %s: %s", verb, (int)collector->pid, collector->socket,
			       collector->error);
		silent++;
	}
	if (!answers && !silent)
		print_none(verb);
	return !answers ? CLI_FAILED : silent ? CLI_DAMAGED : CLI_FINE;
}

void control_collectors_done(struct control_collectors *collectors)
{
	for (size_t i = 0; i < collectors->count; i++) {
		if (collectors->at[i].fd >= 0)
			close(collectors->at[i].fd);
		json_decref(collectors->at[i].answer);
	}
	free(collectors->at);
	*collectors = (struct control_collectors){0};
}
