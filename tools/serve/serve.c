/*
 * serve.c - see serve.h.
 */
#include "serve/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "evprof/system_calls.h"
#include "control/collectors.h"
#include "serve/answers.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/output.h"

#define ANSWER_MS 5000
#define TEND_MS 100 /* between two looks at the processes of snapshots */

/* --- a refresh --- */

/* The answers as a JSON array. NULL: no memory. */
static char *print_answers(const struct control_collectors *collectors)
{
	json_t *list = json_array();
	char *text;

	for (size_t i = 0; i < collectors->count; i++)
		if (collectors->at[i].answer)
			json_array_append(list, collectors->at[i].answer);
	text = list ? json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(list);
	return text;
}

/* What evprof status shows. The caller frees it; NULL: no memory. */
static char *ask_status(const struct watch_host *host)
{
	struct control_collectors collectors = {0};
	json_t *message = json_pack("{s:s, s:s}", "type", "status", "target", host->target);
	char *text;

	if (!message)
		return NULL;
	if (control_collectors_find(NULL, host->socket, &collectors) == 0)
		control_collectors_ask(&collectors, message, ANSWER_MS);
	text = print_answers(&collectors);
	control_collectors_done(&collectors);
	json_decref(message);
	return text;
}

static void take_refresh(struct serve_state *state, const struct control_collectors *collectors, char *status)
{
	pthread_mutex_lock(&state->lock);
	serve_look_away(state);
	state->failed = watch_host_take(&state->host, collectors) < 0;
	state->number++;
	state->at_ms = time_ms(CLOCK_REALTIME);
	history_add(&state->history, &state->host, state->number, state->at_ms);
	free(state->collectors);
	state->collectors = status;
	pthread_mutex_unlock(&state->lock);
}

static void refresh(struct serve_state *state)
{
	struct control_collectors collectors;
	char *status = ask_status(&state->host);

	if (watch_host_ask(&state->host, &collectors) == 0)
		take_refresh(state, &collectors, status);
	else
		free(status);
	control_collectors_done(&collectors);
}

/* --- until a signal --- */

static bool tend_snapshots(struct serve_state *state)
{
	bool any;

	pthread_mutex_lock(&state->lock);
	any = snapshots_tend(&state->snapshots);
	pthread_mutex_unlock(&state->lock);
	return any;
}

/* False: a signal ends it. */
static bool wait_until(struct serve_state *state, int signals, int64_t at_ms)
{
	struct pollfd poller = {.fd = signals, .events = POLLIN};
	int64_t left_ms;

	do {
		left_ms = at_ms - time_ms(CLOCK_MONOTONIC);
		tend_snapshots(state);
		if (poll(&poller, 1, left_ms < 0 ? 0 : left_ms < TEND_MS ? (int)left_ms : TEND_MS) > 0)
			return false;
	} while (left_ms > 0);
	return true;
}

static void run(struct serve_state *state, int signals)
{
	int64_t next_ms;

	do {
		next_ms = time_ms(CLOCK_MONOTONIC) + state->interval_ms;
		refresh(state);
	} while (wait_until(state, signals, next_ms));
}

/* --- begin and end --- */

static int make_token(char token[SERVE_TOKEN_DIGITS + 1])
{
	unsigned char bytes[SERVE_TOKEN_DIGITS / 2];

	if (system_getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* For this thread and that of HTTP. Returns a descriptor or -errno. */
static int watch_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Returns 0, or -1 after a line on stderr. */
static int begin(struct serve_state *state, const struct serve_settings *settings)
{
	char address[SERVE_ADDRESS_BYTES], reason[320];
	int error = make_token(state->token);
	int fd = error ? error : serve_address_listen(&settings->address, address);

	if (fd < 0) {
		output_message("evprof serve: cannot listen there: %s; --listen gives another address", strerror(-fd));
		return -1;
	}
	if (!http_start(fd, serve_answer, state, reason, sizeof(reason))) {
		output_message("evprof serve: %s", reason);
		return -1;
	}
	if (printf("http://%s/%s/\n", address, state->token) < 0 || fflush(stdout) != 0) {
		output_message("evprof serve: cannot print the address: %s", strerror(errno));
		http_stop();
		return -1;
	}
	return 0;
}

static void free_state(struct serve_state *state)
{
	watch_host_done(&state->host);
	history_done(&state->history);
	free(state->collectors);
	free(state);
}

int serve(const struct serve_settings *settings)
{
	struct serve_state *state = calloc(1, sizeof(*state));
	int signals = watch_signals(), error = state ? 0 : -ENOMEM, status = CLI_FAILED;

	if (!error && signals < 0)
		error = signals;
	if (!error)
		error = snapshots_init(&state->snapshots, settings->socket);
	if (error) {
		output_message("evprof serve: %s", strerror(-error));
		free(state);
		return CLI_FAILED;
	}
	pthread_mutex_init(&state->lock, NULL);
	state->target = settings->target;
	state->interval_ms = settings->interval_ms;
	state->host.target = settings->target;
	state->host.socket = settings->socket;
	if (begin(state, settings) == 0) {
		run(state, signals);
		http_stop();
		status = CLI_FINE;
	}
	snapshots_done(&state->snapshots);
	free_state(state);
	close(signals);
	return status;
}
