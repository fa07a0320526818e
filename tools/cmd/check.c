/*
 * check.c - evprof check: compares a trace with limits, for CI.
 *
 * This file has the options and the syntax of limits. analysis/limits.c measures, report/limits.c writes the results.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/verbs.h"
#include "report/limits.h"
#include "util/cli.h"
#include "util/output.h"

struct check {
	struct limits limits;
	struct filter filter;
	const char *junit;
	char verdict[256]; /* what is missing from the trace; "" if complete */
};

static const char help_text[] =
    "usage: evprof check [options] TRACE\n"
    "\n"
    "Checks a trace against limits. Each option may be given more than once.\n"
    "\n"
    "      --max-calls MODULE:FUNCTION=N       the function is called at most N times\n"
    "      --max-time MODULE:FUNCTION=SECONDS  at most SECONDS in it and in its calls; 0.5, 20ms, 3us\n"
    "      --max-calls TOTAL=N, --max-time TOTAL=SECONDS\n"
    "                        the same for all functions, as evprof report adds them up\n"
    "      --max-alloc BYTES the most that Python's heap held in any process; 5000000, 512K, 64M, 1G\n"
    "      --max-heap BYTES  the most that was alive in any process, of Python's allocators, malloc and mmap\n"
    "      --max-leak BYTES  what of that was alive when the program ended\n"
    "      --max-allocations N\n"
    "                        allocations in all processes\n"
    "      --max-rss BYTES   the most of any process that was resident, as the kernel counts it\n"
    "      --max-lost N      events that were not recorded\n"
    "      --junit FILE      write the results as JUnit XML, too\n"
    "      --process PID, --thread TID, --from T, --to T\n"
    "                        only this process, thread or stretch of time\n"
    "\n"
    "MODULE is a module's name, or its file, app/db.py, from any of its directories on and with or without .py;\n"
    "FUNCTION a name or a qualified name. Both may be globs: \"*:Parser.*\". A limit that no function matches is an\n"
    "error, unless it is =0. So is a limit that holds although the trace cannot show it: sampled, within a budget,\n"
    "stopped for a while (evprof_stop), without the function's events, with functions left out, with its last stretch\n"
    "only (EVPROF_KEEP), or with events lost (--max-lost accepts losses).\n"
    "A limit of memory that was not recorded is one, too.\n"
    "Exit status: 0 if all limits hold; 1 if one does not; 2 for errors, and if limits hold in an incomplete trace.\n";

/* --- limits --- */

/* The unit of the last digit of the text, but at most 1 ms, which is the precision of evprof report. */
static uint64_t written_unit_ns(const char *text, const struct unit *units)
{
	const char *end = text + strspn(text, "0123456789"), *last = end;
	double unit_ns;

	if (*end == '.')
		last = end + 1 + strspn(end + 1, "0123456789");
	while (units->name && strcmp(units->name, last) != 0)
		units++;
	unit_ns = units->factor;
	for (const char *digit = end + 1; digit < last; digit++)
		unit_ns /= 10;
	return unit_ns > 999999 ? 1000000 : unit_ns > 999 ? 1000 : 1;
}

static bool parse_allowed(struct limit *limit, const char *text)
{
	int64_t number;

	switch (limit->kind) {
	case LIMIT_TIME:
		limit->unit_ns = written_unit_ns(text, units_seconds);
		if (parse_amount(text, &limit->allowed, (double)TRACE_NS_FAR, units_seconds))
			return true;
		return cli_misused("check", "%s wants seconds such as 0.5 or 20ms, not \"%s\"",
				   limit_options[limit->kind], text);
	case LIMIT_ALLOC:
	case LIMIT_HEAP:
	case LIMIT_LEAK:
	case LIMIT_RSS:
		if (parse_amount(text, &limit->allowed, 9e18, units_bytes))
			return true;
		return cli_misused("check", "%s wants bytes such as 5000000 or 64M, not \"%s\"",
				   limit_options[limit->kind], text);
	default:
		if (!cli_number("check", limit_options[limit->kind], text, 0, &number))
			return false;
		limit->allowed = (uint64_t)number;
		return true;
	}
}

static bool parse_function(struct limit *limit, const char *text, size_t length)
{
	int error;

	if (length == 5 && memcmp(text, "TOTAL", 5) == 0)
		return true;
	error = function_match_parse(&limit->match, text, length);
	if (error == -EINVAL)
		cli_misused("check", "%s wants MODULE:FUNCTION=LIMIT or TOTAL=LIMIT, not \"%s\"",
			    limit_options[limit->kind], text);
	else if (error)
		fprintf(stderr, "evprof check: out of memory\n");
	return !error;
}

static bool add_limit(void *check, const struct verb_option *option, const char *text)
{
	enum limit_kind kind = (enum limit_kind)option->which;
	struct limits *limits = &((struct check *)check)->limits;
	struct limit *limit = &limits->at[limits->count];
	const char *equals;

	if (limits->count == LIMITS_MAX)
		return cli_misused("check", "at most %d limits at a time", LIMITS_MAX);
	*limit = (struct limit){.kind = kind, .given = text};
	limits->count++;
	if (kind != LIMIT_CALLS && kind != LIMIT_TIME)
		return parse_allowed(limit, text);
	equals = strrchr(text, '=');
	if (!equals)
		return cli_misused("check", "%s wants MODULE:FUNCTION=LIMIT or TOTAL=LIMIT, not \"%s\"",
				   limit_options[kind], text);
	return parse_function(limit, text, (size_t)(equals - text)) && parse_allowed(limit, equals + 1);
}

/* Returns the exit status. */
static int write_results(const struct check *check, const char *path)
{
	const struct limits *limits = &check->limits;
	int error = report_limits(limits), junit_error = 0;

	if (error)
		output_message("evprof check: cannot write the result: %s", strerror(-error));
	if (check->junit)
		junit_error = report_limits_junit(limits, path, check->verdict, check->junit);
	if (junit_error)
		output_message("evprof check: cannot write %s: %s", check->junit, strerror(-junit_error));
	if (limits->lost)
		fprintf(stderr, "evprof check: %" PRIu64 " events were lost, so counts and times are too small\n",
			limits->lost);
	if (error || junit_error || limits_count(limits, LIMIT_ERROR))
		return 2;
	if (limits_count(limits, LIMIT_BROKEN))
		return 1;
	return check->verdict[0] ? 2 : 0;
}

static int check_trace(struct check *check, const char *path)
{
	struct trace *trace = verb_open("check", &check->filter, path, check->junit);
	int error, status = CLI_FAILED;

	if (!trace)
		return CLI_FAILED;
	error = limits_measure(&check->limits, trace);
	if (error) {
		output_message("evprof check: %s: %s", path, strerror(-error));
	} else {
		trace_verdict(trace, check->verdict, sizeof(check->verdict));
		trace_print_verdict(trace);
		limits_judge(&check->limits);
		status = write_results(check, path);
	}
	trace_close(trace);
	return status;
}

static const struct verb_option options_known[] = {
    VERB_TAKE("max-calls", 0, required_argument, add_limit, LIMIT_CALLS),
    VERB_TAKE("max-time", 0, required_argument, add_limit, LIMIT_TIME),
    VERB_TAKE("max-alloc", 0, required_argument, add_limit, LIMIT_ALLOC),
    VERB_TAKE("max-heap", 0, required_argument, add_limit, LIMIT_HEAP),
    VERB_TAKE("max-leak", 0, required_argument, add_limit, LIMIT_LEAK),
    VERB_TAKE("max-allocations", 0, required_argument, add_limit, LIMIT_ALLOCATIONS),
    VERB_TAKE("max-rss", 0, required_argument, add_limit, LIMIT_RSS),
    VERB_TAKE("max-lost", 0, required_argument, add_limit, LIMIT_LOST),
    VERB_TEXT("junit", 0, check, junit),
    VERB_FILTER_OPTION("process", FILTER_PROCESS),
    VERB_FILTER_OPTION("thread", FILTER_THREAD),
    VERB_FILTER_OPTION("from", FILTER_FROM),
    VERB_FILTER_OPTION("to", FILTER_TO),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"check", options_known, {help_text}};

int cmd_check(int argc, char **argv)
{
	struct check check = {.limits.filter = &check.filter};
	int status = verb_parse(&usage, argc, argv, &check, &check.filter);

	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		if (verb_has_one_trace("check", argc) && !check.limits.count)
			cli_misused("check", "a limit is missing");
		else if (optind == argc - 1)
			status = check_trace(&check, argv[optind]);
	}
	limits_done(&check.limits);
	filter_done(&check.filter);
	return status;
}
