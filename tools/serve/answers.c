/*
 * answers.c - see answers.h.
 */
#include "serve/answers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/version.h"
#include "serve/page.h"
#include "util/clock.h"
#include "watch/json.h"

#define LOOK_REFRESHES 10 /* a slot is kept so long after the last request */

#define PAGE_POLICY                                                                                                    \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action "     \
	"'self'; base-uri 'none'; frame-ancestors 'none'"
/* A report has its parts in itself. It is of its own origin: it cannot ask for anything here. */
#define REPORT_POLICY                                                                                                  \
	"sandbox allow-scripts allow-downloads allow-modals allow-popups; default-src 'none'; style-src "              \
	"'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "            \
	"frame-ancestors 'none'"
#define WAIT_POLICY "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

static void answer_text(struct http_answer *answer, int status, const char *text)
{
	answer->status = status;
	answer->text = text;
	answer->length = strlen(text);
}

static void answer_status(struct http_answer *answer, int status)
{
	switch (status) {
	case 400:
		answer_text(answer, status, "a value is not one\n");
		break;
	case 403:
		answer_text(answer, status, "not for other sites: use the address that evprof serve has printed\n");
		break;
	case 404:
		answer_text(answer, status, "nothing here: use the address that evprof serve has printed\n");
		break;
	case 405:
		answer_text(answer, status, "not by this method\n");
		break;
	case 429:
		answer_text(answer, status, "enough snapshots are being made: wait for one of them\n");
		break;
	default:
		answer_text(answer, status, "out of memory\n");
	}
}

/* Takes over the output. */
static void answer_output(struct http_answer *answer, struct output *output)
{
	answer->body = output_close_memory(output, &answer->length);
	answer->status = answer->body ? 200 : 500;
}

/* --- functions that are looked at --- */

void serve_look_away(struct serve_state *state)
{
	for (unsigned slot = 0; slot < WATCH_FOCI; slot++) {
		if (state->looks[slot].since && state->number - state->looks[slot].asked > LOOK_REFRESHES) {
			state->looks[slot].since = 0;
			state->host.foci[slot] = 0;
		}
	}
}

/* A free slot comes first, then the one for which nobody has asked for the longest time. */
static uint64_t rank_of(const struct serve_look *look)
{
	return look->since ? look->asked + 1 : 0;
}

/* The slot of a function, which takes the place of another one where that is needed. focus: number + 1. */
static unsigned look_at(struct serve_state *state, uint32_t focus)
{
	unsigned slot = 0;

	for (unsigned i = 0; i < WATCH_FOCI; i++) {
		if (state->host.foci[i] == focus) {
			state->looks[i].asked = state->number;
			return i;
		}
		if (rank_of(&state->looks[i]) < rank_of(&state->looks[slot]))
			slot = i;
	}
	state->host.foci[slot] = focus;
	state->looks[slot] = (struct serve_look){.asked = state->number, .since = state->number + 1};
	return slot;
}

/* --- the data of the page --- */

/* Since the last refresh. */
static int64_t age_ms(const struct serve_state *state)
{
	return state->number ? time_ms(CLOCK_MONOTONIC) - state->since_ms : 0;
}

static void put_head(const struct serve_state *state, struct output *output)
{
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	output_format(output,
		      "{\"version\": \"%s\", \"number\": %" PRIu64 ", \"at_ms\": %" PRId64 ", \"age_ms\": %" PRId64
		      ", \"interval_ms\": %d, ",
		      EVPROF_VERSION, state->number, state->at_ms, age_ms(state), state->interval_ms);
	watch_json_put_text(output, "host", text_of(name));
	output_string(output, ", ");
	watch_json_put_text(output, "target", text_of(state->target));
	output_string(output, ", ");
	watch_json_put_text(output, "problem", text_of(state->failed ? "out of memory" : state->host.problem));
	output_format(output, ", \"allocation_interval\": %" PRIu64 ", \"collectors\": %s, ", state->host.interval,
		      state->collectors ? state->collectors : "[]");
}

static int put_live(struct serve_state *state, const struct serve_request *request, struct output *output)
{
	uint32_t focus = request->focus <= state->host.labels.count ? request->focus : 0;
	struct watch_detail detail = {
	    .view = {.order = request->order, .filter = request->filter},
	    .rows = request->rows,
	    .query = {.pid = request->pid, .focus = focus ? look_at(state, focus) : WATCH_NO_FOCUS},
	    .has_stacks = request->has_stacks};
	int error;

	put_head(state, output);
	error = watch_json_put_detail(output, &detail, &state->host);
	if (focus)
		output_format(output, ", \"focus_counted\": %s",
			      state->number >= state->looks[detail.query.focus].since ? "true" : "false");
	output_string(output, ", \"history\": ");
	if (request->history_pid >= 0)
		history_put(&state->history, request->history_pid, request->after, output);
	else
		output_string(output, "[]");
	output_string(output, ", \"snapshots\": ");
	snapshots_put(&state->snapshots, output);
	output_string(output, "}\n");
	return error;
}

static void answer_live(struct serve_state *state, const struct serve_request *request, struct http_answer *answer)
{
	struct output output;

	answer->type = "application/json";
	if (output_open_memory(&output) < 0)
		return answer_status(answer, 500);
	if (put_live(state, request, &output) < 0)
		output.error = -ENOMEM;
	answer_output(answer, &output);
}

/* --- snapshots --- */

static const char *program_of(const struct watch_host *host, int64_t pid)
{
	for (size_t i = 0; i < host->process_count; i++)
		if (host->processes[i].pid == pid)
			return host->processes[i].name;
	return NULL;
}

static void answer_snapshot(struct serve_state *state, const struct serve_request *request, struct http_answer *answer)
{
	const char *program = program_of(&state->host, request->pid);
	int64_t number = program ? snapshots_begin(&state->snapshots, request->pid, program, request->last_s) : -ESRCH;

	if (number <= 0)
		return answer_status(answer, number ? 404 : 429);
	answer_text(answer, 303, "");
	snprintf(answer->location, sizeof(answer->location), "report/%u.html", (unsigned)number);
}

/* A page that asks again until there is a report. */
static void answer_wait(const struct snapshot *snapshot, struct http_answer *answer)
{
	struct output output;
	bool failed = snapshot->state == SNAPSHOT_FAILED;

	answer->type = "text/html; charset=utf-8";
	answer->policy = WAIT_POLICY;
	if (output_open_memory(&output) < 0)
		return answer_status(answer, 500);
	output_string(&output,
		      "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>evprof snapshot</title>");
	output_string(&output, "<meta name=\"viewport\" content=\"width=device-width\">");
	output_string(&output, failed ? "" : "<meta http-equiv=\"refresh\" content=\"1\">");
	output_string(&output, "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"../serve.css\">");
	output_format(&output, "<body class=\"wait\"><main role=\"status\"><h1>Snapshot of process %" PRId64 "</h1><p>",
		      snapshot->pid);
	if (failed)
		serve_put_html(&output, text_of(snapshot->error));
	else
		output_string(&output, snapshot->state == SNAPSHOT_COPIES
					   ? "The collector writes what it has, and the trace is copied&hellip;"
					   : "The report is made&hellip;");
	output_string(&output, "</p></main></body></html>\n");
	answer_output(answer, &output);
}

/* The program's name as a part of a file's. */
static void name_file(const struct snapshot *snapshot, const char *ending, struct http_answer *answer)
{
	char program[64];

	snprintf(program, sizeof(program), "%s", snapshot->program);
	for (char *at = program; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *at))
			*at = '_';
	snprintf(answer->file_name, sizeof(answer->file_name), "%s-%" PRId64 "-%u%s", program, snapshot->pid,
		 snapshot->number, ending);
}

static void answer_file(struct serve_state *state, const struct serve_request *request, struct http_answer *answer)
{
	bool is_trace = request->place == SERVE_TRACE;
	const char *ending = is_trace ? ".evp" : ".html";
	const struct snapshot *snapshot = snapshots_find(&state->snapshots, request->number);

	if (!snapshot)
		return answer_status(answer, 404);
	if (snapshot->state != SNAPSHOT_READY)
		return is_trace ? answer_status(answer, 404) : answer_wait(snapshot, answer);
	answer->fd = snapshots_open(&state->snapshots, snapshot, ending, &answer->file_bytes);
	if (answer->fd < 0)
		return answer_status(answer, 404);
	answer->status = 200;
	answer->type = is_trace ? "application/octet-stream" : "text/html; charset=utf-8";
	answer->policy = REPORT_POLICY;
	if (is_trace)
		name_file(snapshot, ending, answer);
}

/* --- all --- */

static void answer_page(const struct serve_request *request, struct http_answer *answer)
{
	struct text part = serve_page(request->place);

	answer->status = 200;
	answer->text = part.at;
	answer->length = part.length;
	answer->policy = PAGE_POLICY;
	answer->type = request->place == SERVE_PAGE	? "text/html; charset=utf-8"
		       : request->place == SERVE_SCRIPT ? "text/javascript; charset=utf-8"
							: "text/css; charset=utf-8";
}

void serve_answer(void *owner, const struct serve_message *message, struct http_answer *answer)
{
	struct serve_state *state = owner;
	struct serve_request request;
	int status = serve_route(message, state->token, &request);

	if (status != 200)
		return answer_status(answer, status);
	if (request.place == SERVE_PAGE || request.place == SERVE_SCRIPT || request.place == SERVE_STYLE)
		return answer_page(&request, answer);
	pthread_mutex_lock(&state->lock);
	if (request.place == SERVE_LIVE)
		answer_live(state, &request, answer);
	else if (request.place == SERVE_SNAPSHOT)
		answer_snapshot(state, &request, answer);
	else
		answer_file(state, &request, answer);
	pthread_mutex_unlock(&state->lock);
}
