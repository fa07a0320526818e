/*
 * cut.c - evprof cut: a stretch of a trace as a trace of its own. cut/request.c finds it, cut/cut.c writes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cut_alive.h"
#include "cmd/verbs.h"
#include "cut/cut.h"
#include "replay/call_walk.h"
#include "util/output.h"

static const char help_text[] =
    "usage: evprof cut [options] TRACE -o FILE\n"
    "       evprof cut [options] TRACE --in-place\n"
    "       evprof cut --alive [--until-closed [--every N]] TRACE -o FILE | --in-place\n"
    "\n"
    "Writes a stretch of a trace as a trace of its own, which all verbs read. What runs at its beginning is running\n"
    "already, as where a recording is started in the middle.\n"
    "\n"
    "  -o, --output FILE     the trace to write; it appears when it is complete\n"
    "      --in-place            the stretch takes the place of the trace\n"
    "      --from T, --to T      this stretch, since the start of the trace: 1500 (ns), 20us, 3ms, 1.5s\n"
    "      --since NS, --until NS\n"
    "                            from this time of CLOCK_MONOTONIC, up to this one\n"
    "      --since-byte N, --until-byte N\n"
    "                            the same by the place in the file, where an event is late: stretches that follow\n"
    "                            each other have each event once; with the times\n"
    "      --between A,B     from the mark A to the next mark B (evprof_mark), both with it\n"
    "      --span NAME       the span of that name\n"
    "      --number N        the Nth of several such stretches, in the order of their beginnings\n"
    "      --each            each of them, into FILE.evp, FILE-2.evp, FILE-3.evp, ...\n"
    "      --alive           no stretch: what is alive at the end, and sums by stack of what was freed, of a\n"
    "                            recording of memory without calls\n"
    "      --until-closed    with --alive: of a trace that is being written, until standard input is closed\n"
    "      --every N         with --until-closed: what is alive so far, each N seconds, into FILE-alive.evp\n"
    "      --process PID, --thread TID\n"
    "                            only this process or thread; default: all that have something in the stretch\n"
    "\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or a file not written; 3 if it is still\n"
    "being written and the stretch may go on.\n";

struct request {
	struct filter filter;
	struct cut_request cut;
	const char *to;
	int every_ms;
	bool in_place, alive, until_closed;
	const char *marks[2]; /* of --between */
};

static const struct verb_option options_known[] = {
    VERB_FLAG("in-place", 0, request, in_place),
    VERB_FLAG("alive", 0, request, alive),
    VERB_FLAG("until-closed", 0, request, until_closed),
    VERB_TAKE("every", 0, required_argument, verb_take_interval, offsetof(struct request, every_ms)),
    VERB_TAKE("since", 0, required_argument, verb_take_count, offsetof(struct request, cut.since_ns)),
    VERB_TAKE("until", 0, required_argument, verb_take_count, offsetof(struct request, cut.until_ns)),
    VERB_TAKE("since-byte", 0, required_argument, verb_take_count, offsetof(struct request, cut.since_byte)),
    VERB_TAKE("until-byte", 0, required_argument, verb_take_count, offsetof(struct request, cut.until_byte)),
    VERB_TEXT("output", 'o', request, to),
    VERB_TAKE("between", 0, required_argument, verb_take_marks, offsetof(struct request, marks)),
    VERB_TEXT("span", 0, request, cut.span),
    VERB_TAKE("number", 0, required_argument, verb_take_count, offsetof(struct request, cut.number)),
    VERB_FLAG("each", 0, request, cut.each),
    VERB_FILTER_OPTION("from", FILTER_FROM),
    VERB_FILTER_OPTION("to", FILTER_TO),
    VERB_FILTER_OPTION("process", FILTER_PROCESS),
    VERB_FILTER_OPTION("thread", FILTER_THREAD),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"cut", options_known, {help_text}};

static int write_all(const struct request *request, struct trace *trace, const struct cut_list *list)
{
	struct progress progress;
	int error = 0;

	progress_begin(&progress, "cutting", 0);
	for (size_t i = 0; i < list->count && !error; i++) {
		char *path = cut_path(request->to, i);

		error = path ? cut_write_file(trace, &list->at[i].stretch, &request->filter, &progress, "cut", path,
					      request->in_place)
			     : -ENOMEM;
		free(path);
	}
	progress_end(&progress);
	return error;
}

/* Whether a trace that is still being written has all of the stretch. */
static bool is_past(const struct request *request, const struct trace *trace)
{
	char ignored[512];

	return request->cut.until_ns && trace->damage.growing &&
	       trace_verdict(trace, ignored, sizeof(ignored)) == CLI_GROWING;
}

static int cut_trace(const struct request *request, const char *path)
{
	struct trace *trace = verb_open("cut", &request->filter, path, NULL);
	struct cut_list list;
	char why[512] = "";
	int error;

	if (!trace)
		return CLI_FAILED;
	umask(077); /* only the owner may read the contents of a trace */
	error = cut_request_find(&request->cut, trace, &list, why, sizeof(why));
	if (error)
		output_message("evprof cut: %s: %s", path, why[0] ? why : strerror(-error));
	else
		error = write_all(request, trace, &list);
	cut_list_done(&list);
	if (error || !is_past(request, trace))
		return verb_close(trace, error);
	trace_close(trace);
	return CLI_FINE;
}

/* Whether it names a part of the trace. */
static bool wants_stretch(const struct request *request)
{
	const struct cut_request *cut = &request->cut;
	const struct filter *filter = &request->filter;

	return cut->since_ns || cut->until_ns || request->marks[0] || cut->span || cut->each || cut->number ||
	       filter->from_given || filter->to_given || filter->pid || filter->tid || filter->processes.count ||
	       filter->threads.count;
}

/* Checks the options together. */
static bool fits_together(const struct request *request, const char *path)
{
	if (request->in_place && (request->to || request->cut.each || !strcmp(path, "-")))
		return cli_misused("cut", "--in-place is for one stretch of a file, without -o");
	if (!request->in_place && (!request->to || strcmp(request->to, "-") == 0))
		return cli_misused("cut", "-o FILE is missing; a trace needs a file");
	if (!request->alive && (request->until_closed || request->every_ms))
		return cli_misused("cut", "--until-closed and --every are for --alive");
	if (request->every_ms && !request->until_closed)
		return cli_misused("cut", "--every is for --until-closed");
	if (request->alive && wants_stretch(request))
		return cli_misused("cut", "--alive is for the whole trace");
	return true;
}

static int cut_what_is_alive(const struct request *request, const char *path)
{
	const struct cut_alive alive = {.path = path,
					.to = request->to,
					.in_place = request->in_place,
					.until_closed = request->until_closed,
					.every_ms = request->every_ms};

	umask(077); /* only the owner may read the contents of a trace */
	return cut_alive(&alive);
}

int cmd_cut(int argc, char **argv)
{
	struct request request = {0};
	int status = verb_parse(&usage, argc, argv, &request, &request.filter);

	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		request.cut.filter = &request.filter;
		request.cut.mark_begin = request.marks[0];
		request.cut.mark_end = request.marks[1];
		request.cut.to = request.to;
		if (verb_has_one_trace("cut", argc) && fits_together(&request, argv[optind])) {
			request.to = request.in_place ? argv[optind] : request.to;
			status = request.alive ? cut_what_is_alive(&request, argv[optind])
					       : cut_trace(&request, argv[optind]);
		}
	}
	filter_done(&request.filter);
	return status;
}
