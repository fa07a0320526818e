/*
 * cut.c - evprof cut: a stretch of a trace as a trace of its own. cut/request.h finds it, cut/cut.h writes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/verbs.h"
#include "cut/request.h"
#include "replay/call_walk.h"
#include "util/output.h"

static const char help_text[] =
    "usage: evprof cut [options] TRACE -o FILE\n"
    "       evprof cut [options] TRACE --in-place\n"
    "\n"
    "Writes a stretch of a trace as a trace of its own, which all verbs read. What runs at its beginning is running\n"
    "already, as where a recording is started in the middle.\n"
    "\n"
    "  -o, --output FILE     the trace to write; it appears when it is complete\n"
    "      --in-place            the stretch takes the place of the trace\n"
    "      --from T, --to T      this stretch, since the start of the trace: 1500 (ns), 20us, 3ms, 1.5s\n"
    "      --since NS, --until NS\n"
    "                            from this time of CLOCK_MONOTONIC, up to this one\n"
    "      --between A,B     from the mark A to the next mark B (evprof_mark), both with it\n"
    "      --span NAME       the span of that name\n"
    "      --number N        the Nth of several such stretches, in the order of their beginnings\n"
    "      --each            each of them, into FILE.evp, FILE-2.evp, FILE-3.evp, ...\n"
    "      --process PID, --thread TID\n"
    "                            only this process or thread; default: all that have something in the stretch\n"
    "\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or a file not written.\n";

struct request {
	struct filter filter;
	struct cut_request cut;
	const char *to;
	bool in_place;
	char *between; /* copy of the argument of --between; the mark names point into it */
};

static bool take_between(void *owner, size_t which, const char *text)
{
	struct request *request = owner;

	(void)which;
	free(request->between);
	return verb_take_marks("cut", text, &request->between, &request->cut.mark_begin, &request->cut.mark_end);
}

static bool take_number(void *owner, size_t which, const char *text)
{
	(void)which;
	return cli_number("cut", "--number", text, 1, &((struct request *)owner)->cut.number);
}

static bool take_since(void *owner, size_t which, const char *text)
{
	(void)which;
	return cli_number("cut", "--since", text, 1, &((struct request *)owner)->cut.since_ns);
}

static bool take_until(void *owner, size_t which, const char *text)
{
	(void)which;
	return cli_number("cut", "--until", text, 1, &((struct request *)owner)->cut.until_ns);
}

static const struct verb_option options_known[] = {
    {"in-place", 0, no_argument, NULL, offsetof(struct request, in_place)},
    {"since", 0, required_argument, take_since, 0},
    {"until", 0, required_argument, take_until, 0},
    {"output", 'o', required_argument, NULL, offsetof(struct request, to)},
    {"between", 0, required_argument, take_between, 0},
    {"span", 0, required_argument, NULL, offsetof(struct request, cut.span)},
    {"number", 0, required_argument, take_number, 0},
    {"each", 0, no_argument, NULL, offsetof(struct request, cut.each)},
    VERB_FILTER_OPTION("from", FILTER_FROM),
    VERB_FILTER_OPTION("to", FILTER_TO),
    VERB_FILTER_OPTION("process", FILTER_PROCESS),
    VERB_FILTER_OPTION("thread", FILTER_THREAD),
    {"help", 'h', no_argument, NULL, 0},
    {0},
};

/* Returns 0, or -errno after a line on stderr. */
static int write_one(const struct request *request, struct trace *trace, const struct cut_found *found,
		     struct progress *progress, const char *path)
{
	struct output output;
	int error = output_open(&output, path), fd;

	if (!error) {
		if (request->in_place)
			output_let_read_like(&output, path);
		fd = fcntl(output.fd, F_DUPFD_CLOEXEC, 0);
		error = fd < 0 ? -errno : cut_write(trace, &found->stretch, &request->filter, progress, fd);
		if (error)
			output_abandon(&output);
		else
			error = output_close(&output);
	}
	if (error)
		output_message("evprof cut: cannot write %s: %s", path, strerror(-error));
	return error;
}

static int write_all(const struct request *request, struct trace *trace, const struct cut_list *list)
{
	struct progress progress;
	int error = 0;

	progress_begin(&progress, "cutting", 0);
	for (size_t i = 0; i < list->count && !error; i++) {
		char *path = cut_path(request->to, i);

		error = path ? write_one(request, trace, &list->at[i], &progress, path) : -ENOMEM;
		free(path);
	}
	progress_end(&progress);
	return error;
}

static int cut_trace(const struct request *request, const char *path)
{
	struct trace *trace = verb_open("cut", &request->filter, path, request->in_place ? NULL : request->to);
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
	return verb_close(trace, error);
}

static int cut_in(struct request *request, const char *path)
{
	if (request->in_place)
		request->to = path;
	return cut_trace(request, path);
}

int cmd_cut(int argc, char **argv)
{
	struct request request = {0};
	int status = verb_parse("cut", "o:h", options_known, argc, argv, &request, &request.filter);

	request.cut.filter = &request.filter;
	if (status == CLI_FINE)
		printf("%s", help_text);
	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		if (optind + 1 != argc)
			cli_misused("cut", optind == argc ? "a trace is missing" : "one trace at a time");
		else if (request.in_place ? request.to || request.cut.each || !strcmp(argv[optind], "-")
					  : !request.to || strcmp(request.to, "-") == 0)
			cli_misused("cut", request.in_place ? "--in-place is for one stretch of a file, without -o"
							    : "-o FILE is missing; a trace needs a file");
		else
			status = cut_in(&request, argv[optind]);
	}
	filter_done(&request.filter);
	free(request.between);
	return status;
}
