/*
 * top.c - evprof top: what the recorded processes of this host do now, refreshed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "control/collectors.h"
#include "top/browse.h"
#include "watch/host.h"
#include "top/screen.h"
#include "top/view.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/terminal.h"
#include "watch/json.h"

static const char help_text[] =
    "usage: evprof top [options] [PID|NAME|all]\n"
    "\n"
    "Shows what recorded processes do now: functions by time, calls and allocations, processes, threads, tasks. On a\n"
    "terminal it fills the screen (with ncurses, where that is installed), else it prints lines. %own and %total are "
    "of\n"
    "the last interval, own and total since evprof top began. The processes do not stop, and pay nothing for it.\n"
    "\n"
    "      --interval S      seconds between two refreshes (default: 1)\n"
    "  -n, --count N         end after N refreshes\n"
    "      --sort ORDER      own, total, calls, allocations or bytes (default: own)\n"
    "      --filter TEXT     only functions with this text in their name or file\n"
    "      --rows N          lines: functions of a refresh (default: 20); 0: all\n"
    "      --lines           print lines on a terminal, too\n"
    "      --json            print one JSON object a refresh, in one line\n"
    "      --socket SOCKET   ask the collector at this socket (default: EVPROF_SOCKET, or else all of the user's)\n"
    "\n"
    "Keys:\n";

static const char help_end[] =
    "\n"
    "Exit status: 0; 2 if there is no collector or no such process, or the output cannot be written.\n";

struct request {
	const char *target;
	const char *socket;
	const char *sort, *filter, *rows;
	bool lines, json;
	int interval_ms;
	int64_t count_wanted; /* 0: no end */
	/* Of these. */
	int64_t row_count;
	struct top_view view;
};

/* --- plain output --- */

static int print_refresh(const struct request *request, const struct watch_host *host)
{
	struct terminal terminal = terminal_find(STDOUT_FILENO);
	unsigned columns = terminal.is ? terminal.columns : 160;
	struct top_lines lines;
	struct output output;
	int error = output_open(&output, "-");

	if (error)
		return error;
	if (request->json) {
		error = watch_json_put(&output, &request->view.rows, host, (size_t)request->row_count);
	} else {
		error = top_lines_make(&lines, &request->view, host, columns, (size_t)request->row_count);
		if (!error)
			output_put(&output, lines.text.buffer, lines.text.used);
		output_char(&output, '\n');
		top_lines_done(&lines);
	}
	if (error) {
		output_abandon(&output);
		return error;
	}
	return output_close(&output);
}

static void wait_ms(int64_t ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* Until no process is left. Returns 0 or -errno. */
static int print_lines(const struct request *request, struct watch_host *host)
{
	int error = 0;

	for (int64_t i = 0; !error && (!request->count_wanted || i < request->count_wanted); i++) {
		int found;

		wait_ms(request->interval_ms);
		found = watch_host_refresh(host);
		if (found == 0)
			return 0;
		error = found < 0 ? found : print_refresh(request, host);
	}
	return error;
}

/* --- all --- */

static int show(struct request *request, struct watch_host *host)
{
	bool on_screen = !request->lines && !request->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	int error;

	if (!on_screen || !screen_open())
		return print_lines(request, host);
	error = browse(host, &request->view, request->interval_ms, request->count_wanted);
	screen_close();
	return error;
}

static int run_top(struct request *request)
{
	struct control_collectors collectors;
	struct watch_host host = {.socket = request->socket, .target = request->target};
	int found, error = 0, status = CLI_FAILED;

	found = control_collectors_find("top", request->socket, &collectors);
	control_collectors_done(&collectors);
	if (found < 0)
		return CLI_FAILED;
	found = watch_host_refresh(&host);
	if (found == 0) {
		output_message("evprof top: %s", host.problem);
	} else {
		error = found < 0 ? found : show(request, &host);
		status = error ? CLI_FAILED : CLI_FINE;
	}
	if (error && error != -EPIPE)
		output_message("evprof top: %s", strerror(-error));
	watch_host_done(&host);
	return error == -EPIPE ? CLI_FINE : status;
}

static bool take_values(struct request *request)
{
	request->row_count = 20;
	if (request->rows && !cli_number("top", "--rows", request->rows, 0, &request->row_count))
		return false;
	if (!request->row_count)
		request->row_count = INT64_MAX;
	request->view.rows.filter = request->filter ? request->filter : "";
	request->view.rows.order = request->sort ? watch_order_of(request->sort) : WATCH_BY_OWN;
	if (request->view.rows.order == WATCH_ORDERS)
		return cli_misused("top", "--sort is own, total, calls, allocations or bytes, not %s", request->sort);
	return true;
}

int cmd_top(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_INTERVAL(request, interval_ms),
	    VERB_TAKE("count", 'n', required_argument, verb_take_count, offsetof(struct request, count_wanted)),
	    VERB_TEXT("sort", 0, request, sort),
	    VERB_TEXT("filter", 0, request, filter),
	    VERB_TEXT("rows", 0, request, rows),
	    VERB_FLAG("lines", 0, request, lines),
	    VERB_FLAG("json", 0, request, json),
	    VERB_TEXT("socket", 0, request, socket),
	    VERB_OPTIONS_END,
	};
	static const struct verb_usage usage = {"top", options_known, {help_text, browse_help, help_end}};
	struct request request = {.target = "all", .interval_ms = VERB_INTERVAL_MS};
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	if (!verb_take_target("top", argc, argv, &request.target) || !take_values(&request))
		return CLI_FAILED;
	return run_top(&request);
}
