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
#include <sys/eventfd.h>
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

struct refresher {
	struct serve_state *state;
	int stop_fd;
	pthread_t thread;
};

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
	state->since_ms = time_ms(CLOCK_MONOTONIC);
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

/* Until stop_fd is readable. */
static void *refresh_always(void *owner)
{
	struct refresher *refresher = owner;
	struct pollfd poller = {.fd = refresher->stop_fd, .events = POLLIN};
	int64_t next_ms, left_ms;

	do {
		next_ms = time_ms(CLOCK_MONOTONIC) + refresher->state->interval_ms;
		refresh(refresher->state);
		left_ms = next_ms - time_ms(CLOCK_MONOTONIC);
	} while (poll(&poller, 1, left_ms < 0 ? 0 : (int)left_ms) == 0);
	return NULL;
}

static int start_refresher(struct refresher *refresher, struct serve_state *state)
{
	int error;

	refresher->state = state;
	refresher->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (refresher->stop_fd < 0)
		return -errno;
	error = pthread_create(&refresher->thread, NULL, refresh_always, refresher);
	if (error)
		close(refresher->stop_fd);
	return -error;
}

/* False: it waits for a collector that does not answer, and goes on with the state until the process ends. */
static bool stop_refresher(struct refresher *refresher)
{
	struct timespec until;

	eventfd_write(refresher->stop_fd, 1);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	if (pthread_timedjoin_np(refresher->thread, NULL, &until) != 0)
		return false;
	close(refresher->stop_fd);
	return true;
}

/* --- until a signal --- */

static void run(struct serve_state *state, int signals)
{
	struct pollfd poller = {.fd = signals, .events = POLLIN};

	do {
		pthread_mutex_lock(&state->lock);
		snapshots_tend(&state->snapshots);
		pthread_mutex_unlock(&state->lock);
	} while (poll(&poller, 1, TEND_MS) == 0);
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

/* For all threads. Returns a descriptor or -errno. */
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

/* Returns the exit status. */
static int run_to_end(struct serve_state *state, struct refresher *refresher, const struct serve_settings *settings,
		      int signals)
{
	bool began = begin(state, settings) == 0;

	if (began) {
		run(state, signals);
		http_stop();
	}
	snapshots_done(&state->snapshots);
	if (stop_refresher(refresher))
		free_state(state);
	return began ? CLI_FINE : CLI_FAILED;
}

int serve(const struct serve_settings *settings)
{
	struct serve_state *state = calloc(1, sizeof(*state));
	static struct refresher refresher;
	int signals = watch_signals(), error = state ? 0 : -ENOMEM, status = CLI_FAILED;

	if (!error && signals < 0)
		error = signals;
	if (!error)
		error = snapshots_init(&state->snapshots, settings->socket);
	if (!error) {
		pthread_mutex_init(&state->lock, NULL);
		state->target = state->host.target = settings->target;
		state->host.socket = settings->socket;
		state->interval_ms = settings->interval_ms;
		error = start_refresher(&refresher, state);
		if (error)
			snapshots_done(&state->snapshots);
	}
	if (!error) {
		status = run_to_end(state, &refresher, settings, signals);
	} else {
		output_message("evprof serve: %s", strerror(-error));
		free(state);
	}
	if (signals >= 0)
		close(signals);
	return status;
}
