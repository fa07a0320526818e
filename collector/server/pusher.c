/*
 * pusher.c - see pusher.h. Called by main().
 */
#include "server/pusher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define AGAIN_NS UINT64_C(60000000000) /* between two starts */
#define FINISH_MS 60000		       /* evprof push gives up after ten seconds, or its timeout */
#define VARIABLES_MAX 64
#define COMMAND "EVPROF_SHIP_COMMAND"

extern char **environ;

/* What evprof push, libcurl and its TLS read; nothing else of the daemon's environment is passed on. */
static void find_variables(char *variables[VARIABLES_MAX + 1])
{
	static const char *const begins[] = {
	    "OTEL_",	  "SSL_CERT_",	"http_proxy=", "https_proxy=", "HTTPS_PROXY=",
	    "all_proxy=", "ALL_PROXY=", "no_proxy=",   "NO_PROXY=",    "CURL_CA_BUNDLE="};
	unsigned count = 0;

	for (char **at = environ; *at; at++)
		for (unsigned i = 0; i < sizeof(begins) / sizeof(*begins) && count < VARIABLES_MAX; i++)
			if (strncmp(*at, begins[i], strlen(begins[i])) == 0)
				variables[count++] = *at;
	variables[count] = NULL;
}

static const char *name_of(const struct pusher *pusher)
{
	return pusher->ship ? "ship" : "push";
}

static void start_tool(struct pusher *pusher, const char *const *argv, char *const *variables)
{
	int input[2];

	if (pipe2(input, O_CLOEXEC) < 0) {
		log_error("cannot start evprof %s: %s", name_of(pusher), strerror(errno));
		return;
	}
	pusher->run = (struct tool_run){.input = input[0], .output = STDERR_FILENO, .environment = variables};
	pusher->input = input[1];
	tool_run_start(&pusher->run, pusher->loop, argv);
	close(input[0]);
}

static bool is_store(const char *command)
{
	return strncmp(command, "s3://", strlen("s3://")) == 0;
}

/*
 * The command of the shell gets the path and the name. A variable has its text, in which evprof ship would replace what
 * looks like its placeholders. The daemon's environment is passed on: a command may want any of it, and the keys of a
 * store are in it.
 */
static void start_ship(struct pusher *pusher)
{
	const struct ship_options *ship = pusher->ship;
	const char *argv[2 * SHIP_PATTERNS_MAX + 12] = {"evprof", "ship", "--until-closed"};
	unsigned count = 3;

	for (unsigned i = 0; i < ship->pattern_count; i++) {
		argv[count++] = "-e";
		argv[count++] = ship->patterns[i];
	}
	if (ship->no_arguments)
		argv[count++] = "--argv";
	argv[count++] = pusher->folder;
	if (is_store(ship->command)) {
		argv[count++] = ship->command;
	} else {
		setenv(COMMAND, ship->command, 1);
		argv[count++] = "sh";
		argv[count++] = "-c";
		argv[count++] = "eval \"unset " COMMAND "; ${" COMMAND ":?}\"";
		argv[count++] = "sh";
		argv[count++] = "{}";
		argv[count++] = "{name}";
	}
	pusher->started_ns = clock_now_ns();
	start_tool(pusher, argv, environ);
	unsetenv(COMMAND);
}

static void start_push(struct pusher *pusher)
{
	char spool[PATH_MAX + 8], since[24], *variables[VARIABLES_MAX + 1];
	const char *argv[] = {
	    "evprof",	    "push",	"--until-closed", "--since", since, "--endpoint",
	    pusher->url,    "--folder", pusher->folder,	  "--spool", spool, pusher->socket ? "--socket" : NULL,
	    pusher->socket, NULL};

	snprintf(spool, sizeof(spool), "%s/.push", pusher->folder);
	find_variables(variables);
	pusher->started_ns = clock_now_ns();
	snprintf(since, sizeof(since), "%" PRIu64, pusher->started_ns);
	start_tool(pusher, argv, variables);
}

static void start(struct pusher *pusher)
{
	if (pusher->ship)
		start_ship(pusher);
	else
		start_push(pusher);
}

void pusher_start(struct pusher *pusher, struct loop *loop)
{
	pusher->loop = loop;
	pusher->input = -1;
	if (pusher->ship ? pusher->ship->command : pusher->url)
		start(pusher);
}

static void close_input(struct pusher *pusher)
{
	if (pusher->input >= 0)
		close(pusher->input);
	pusher->input = -1;
}

/* One that was left by a daemon that was killed has the spool for some seconds more, so none is the last. */
int pusher_tend(struct pusher *pusher, uint64_t now_ns)
{
	uint64_t again_ns = pusher->started_ns + AGAIN_NS;

	if (!pusher->started_ns || pusher->run.running)
		return -1;
	if (pusher->input >= 0)
		log_warning("evprof %s has ended, and is started again%s", name_of(pusher),
			    now_ns < again_ns ? ", a minute after its last start" : "");
	close_input(pusher);
	if (now_ns < again_ns)
		return (int)((again_ns - now_ns) / 1000000) + 1;
	start(pusher);
	return -1;
}

int pusher_leave(struct pusher *pusher)
{
	if (!pusher->run.running)
		return -1;
	loop_remove(pusher->loop, &pusher->run.source);
	pusher->run.running = false;
	return pusher->run.source.fd;
}

void pusher_finish(struct pusher *pusher, int pidfd)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	close_input(pusher);
	if (pidfd < 0)
		return;
	if (poll(&ended, 1, FINISH_MS) <= 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL,
			0); /* what it has not sent is in its spool or folder */
	close(pidfd);
}
