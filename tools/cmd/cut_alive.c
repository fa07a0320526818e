/*
 * cut_alive.c - see cut_alive.h. alive/follow.c counts, alive/write.c writes.
 *
 * A collector drops what has been read: each line on standard output is the offset in the file up to which nothing is
 * needed any more.
 */
#include "cmd/cut_alive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alive/write.h"
#include "cmd/verbs.h"
#include "cut/file.h"
#include "util/clock.h"
#include "util/output.h"

#define PAUSE_MS 150
#define OPEN_TRIES 40 /* a trace that has just begun may have no header yet */
#define SUFFIX ".evp"

struct cutting {
	const struct cut_alive *request;
	struct alive_follow follow;
	char *kinds;
	char *so_far; /* path; NULL: none */
	int64_t next_ms;
	uint64_t wish; /* digits of a number that is being read */
};

/* Takes the numbers of those who want to see what is alive so far, a line each. */
static void take_wishes(struct cutting *cutting, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\n') {
			cutting->follow.so_far = cutting->wish;
			cutting->wish = 0;
			cutting->next_ms = 0;
		} else if (text[i] >= '0' && text[i] <= '9') {
			cutting->wish = cutting->wish * 10 + (uint64_t)(text[i] - '0');
		}
	}
}

/* Whether standard input is still open, after a pause. */
static bool goes_on(struct cutting *cutting)
{
	struct pollfd closed = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[64];
	ssize_t length;

	if (poll(&closed, 1, PAUSE_MS) <= 0)
		return true;
	length = read(STDIN_FILENO, text, sizeof(text));
	take_wishes(cutting, text, length > 0 ? (size_t)length : 0);
	return length > 0;
}

static void write_so_far(struct cutting *cutting)
{
	if (!cutting->so_far || time_ms(CLOCK_MONOTONIC) < cutting->next_ms)
		return;
	alive_write_file(&cutting->follow, cutting->kinds, cutting->so_far, cutting->request->path);
	cutting->next_ms = time_ms(CLOCK_MONOTONIC) + cutting->request->every_ms;
}

/* Takes what the trace has; follows it, if that is wanted. Returns 0 or -errno. */
static int count(struct cutting *cutting)
{
	struct trace *trace = cutting->follow.trace;
	bool more = cutting->request->until_closed;
	int error = alive_follow_next(&cutting->follow);

	while (!error && more) {
		/* A collector that does not read any more is gone; the file is not. */
		if (printf("%llu\n", (unsigned long long)trace->scanned_bytes) > 0)
			fflush(stdout);
		write_so_far(cutting);
		more = goes_on(cutting);
		error = trace_follow(trace);
		if (!error)
			error = alive_follow_next(&cutting->follow);
	}
	return error;
}

static bool any_taken(const struct trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace->processes[i]->known && alive_takes(trace->processes[i]))
			return true;
	return false;
}

/* FILE-alive.evp for FILE.evp. NULL: no memory. */
static char *path_so_far(const char *path)
{
	size_t length = strlen(path), suffix = strlen(SUFFIX);
	char *made;

	if (length > suffix && strcmp(path + length - suffix, SUFFIX) == 0)
		length -= suffix;
	return asprintf(&made, "%.*s-alive" SUFFIX, (int)length, path) < 0 ? NULL : made;
}

static int cut_opened(struct cutting *cutting)
{
	const struct cut_alive *request = cutting->request;
	struct trace *trace = cutting->follow.trace;
	int error;

	cutting->kinds = file_kinds(trace);
	if (request->every_ms)
		cutting->so_far = path_so_far(request->to);
	cutting->next_ms = time_ms(CLOCK_MONOTONIC) + request->every_ms;
	error = count(cutting);
	if (error) {
		output_message("evprof cut: %s", strerror(-error));
	} else if (!any_taken(trace)) {
		output_message(
		    "evprof cut: %s: --alive needs a recording of memory without calls, as evprof run --memory "
		    "makes it",
		    request->path);
		error = -EINVAL;
	} else {
		cutting->follow.so_far = 0;
		error = alive_write_file(&cutting->follow, cutting->kinds, request->to,
					 request->in_place ? request->to : NULL);
	}
	if (!error && cutting->so_far)
		unlink(cutting->so_far);
	free(cutting->so_far);
	free(cutting->kinds);
	alive_follow_done(&cutting->follow);
	return error;
}

static struct trace *open_trace(const struct cut_alive *request)
{
	struct trace *trace = NULL;
	char why[4600] = "";
	int error = -EINVAL;

	for (unsigned i = 0; i < OPEN_TRIES && error == -EINVAL; i++) {
		if (i)
			poll(NULL, 0, 25);
		error = trace_open(&trace, request->path, why, sizeof(why));
		if (!request->until_closed)
			break;
	}
	if (error)
		output_message("evprof cut: %s", why);
	return error ? NULL : trace;
}

int cut_alive(const struct cut_alive *request)
{
	struct cutting cutting = {.request = request};
	int error;

	/* A supervisor sends SIGTERM to the collector and its children, a terminal SIGINT. */
	if (request->until_closed) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGINT, SIG_IGN);
	}
	cutting.follow.trace = open_trace(request);
	if (!cutting.follow.trace)
		return CLI_FAILED;
	if (!request->in_place && trace_is_at(cutting.follow.trace, request->to)) {
		output_message("evprof cut: %s is the trace itself; --in-place replaces it", request->to);
		trace_close(cutting.follow.trace);
		return CLI_FAILED;
	}
	error = cut_opened(&cutting);
	if (!request->until_closed || error)
		return verb_close(cutting.follow.trace, error);
	trace_close(cutting.follow.trace); /* a collector that was killed leaves a trace without an end */
	return CLI_FINE;
}
