/*
 * check.c - evprof check: compares a trace with limits, for CI.
 *
 * Owns the syntax of limits, the measurement of all function limits in one call walk, the output, and the JUnit file. A
 * limit that matches several functions applies to their sum: calls are added up, and time runs from the start of an
 * outermost call to its end, so that nothing counts twice.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/function_match.h"
#include "analysis/function_totals.h"
#include "analysis/heap_curve.h"
#include "cmd/verbs.h"
#include "replay/call_walk.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"

enum limit_kind { LIMIT_CALLS, LIMIT_TIME, LIMIT_ALLOC, LIMIT_LOST };
enum limit_result { LIMIT_HELD, LIMIT_BROKEN, LIMIT_ERROR };

struct limit {
	enum limit_kind kind;
	const char *given;	     /* the option's value */
	struct function_match match; /* NULLs: all functions (TOTAL), or not a function limit */
	uint64_t allowed;	     /* calls, ns, bytes or events */
	uint64_t unit_ns;	     /* LIMIT_TIME: unit of comparison and output */
	uint64_t measured;
	int64_t pid;	     /* LIMIT_ALLOC: process of the peak; 0: no memory events */
	uint32_t matches[2]; /* Python and C functions; each process counts separately */
	bool of_python;	     /* the module is that of a Python function in the trace */
	uint32_t open;	     /* number of their calls on the stack of the thread */
	struct function_near near;
	enum limit_result result;
};

/* What the filtered processes did not record: counts may be too small. */
struct unrecorded {
	bool sampled;
	bool paused;   /* by evprof_stop() */
	bool filtered; /* by EVPROF_INCLUDE and similar settings */
	bool calls;
	bool c_calls;
};

/* One bit for each in the functions' masks. */
#define LIMITS_MAX 64

struct check {
	struct limit limits[LIMITS_MAX];
	size_t count;
	struct filter filter;
	const char *junit;
	uint64_t *masks; /* by key of the process: limits that match the function */
	struct unrecorded unrecorded;
	uint64_t lost;
	bool losses_taken; /* a --max-lost limit holds and accepts the losses */
	char verdict[256]; /* what is missing from the trace; "" if complete */
};

static const char *const option_names[] = {
    [LIMIT_CALLS] = "--max-calls",
    [LIMIT_TIME] = "--max-time",
    [LIMIT_ALLOC] = "--max-alloc",
    [LIMIT_LOST] = "--max-lost",
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
    "      --max-lost N      events that were not recorded\n"
    "      --junit FILE      write the results as JUnit XML, too\n"
    "      --process PID, --thread TID, --from T, --to T\n"
    "                        only this process, thread or stretch of time\n"
    "\n"
    "MODULE is a module's name, or its file, app/db.py, from any of its directories on and with or without .py;\n"
    "FUNCTION a name or a qualified name. Both may be globs: \"*:Parser.*\". A limit that no function matches is an\n"
    "error, unless it is =0. So is a limit that holds although the trace cannot show it: sampled, stopped for a while\n"
    "(evprof_stop), without the function's events, with functions left out or events lost (--max-lost accepts "
    "losses).\n"
    "Exit status: 0 if all limits hold; 1 if one does not; 2 for errors, and if limits hold in an incomplete trace.\n";

/* --- limits --- */

struct unit {
	const char *name;
	double factor;
};

/* Parses a number with one of the units (the last has no name), rounded. */
static bool take_number(const char *text, uint64_t *value, double limit, const struct unit *units)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || !isfinite(number) || number < 0)
		return false;
	for (; units->name; units++) {
		if (strcmp(end, units->name) != 0 || number * units->factor > limit)
			continue;
		*value = (uint64_t)(number * units->factor + 0.5);
		return true;
	}
	return false;
}

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

static bool take_allowed(struct limit *limit, const char *text)
{
	static const struct unit seconds[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {NULL, 0}};
	static const struct unit bytes[] = {{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {NULL, 0}};
	int64_t number;

	switch (limit->kind) {
	case LIMIT_TIME:
		limit->unit_ns = written_unit_ns(text, seconds);
		if (take_number(text, &limit->allowed, (double)TRACE_NS_FAR, seconds))
			return true;
		cli_misused("check", "%s wants seconds such as 0.5 or 20ms, not \"%s\"", option_names[limit->kind],
			    text);
		return false;
	case LIMIT_ALLOC:
		if (take_number(text, &limit->allowed, 9e18, bytes))
			return true;
		cli_misused("check", "%s wants bytes such as 5000000 or 64M, not \"%s\"", option_names[limit->kind],
			    text);
		return false;
	default:
		if (!cli_number("check", option_names[limit->kind], text, 0, &number))
			return false;
		limit->allowed = (uint64_t)number;
		return true;
	}
}

static bool take_function(struct limit *limit, const char *text, size_t length)
{
	int error;

	if (length == 5 && memcmp(text, "TOTAL", 5) == 0)
		return true;
	error = function_match_parse(&limit->match, text, length);
	if (error == -EINVAL)
		cli_misused("check", "%s wants MODULE:FUNCTION=LIMIT or TOTAL=LIMIT, not \"%s\"",
			    option_names[limit->kind], text);
	else if (error)
		fprintf(stderr, "evprof check: out of memory\n");
	return !error;
}

static bool take_limit(struct check *check, enum limit_kind kind, const char *text)
{
	struct limit *limit = &check->limits[check->count];
	const char *equals;

	if (check->count == LIMITS_MAX) {
		cli_misused("check", "at most %d limits at a time", LIMITS_MAX);
		return false;
	}
	*limit = (struct limit){.kind = kind, .given = text};
	check->count++;
	if (kind == LIMIT_ALLOC || kind == LIMIT_LOST)
		return take_allowed(limit, text);
	equals = strrchr(text, '=');
	if (!equals) {
		cli_misused("check", "%s wants MODULE:FUNCTION=LIMIT or TOTAL=LIMIT, not \"%s\"", option_names[kind],
			    text);
		return false;
	}
	return take_function(limit, text, (size_t)(equals - text)) && take_allowed(limit, equals + 1);
}

static bool limits_functions(const struct limit *limit)
{
	return limit->kind == LIMIT_CALLS || limit->kind == LIMIT_TIME;
}

/* --- measuring functions --- */

/* Whether the limit matches the function. Records the match, or a near name. */
static bool match_function(struct limit *limit, const struct wire_definition *definition, bool c_function)
{
	if (!limit->match.module)
		return true;
	if (!definition)
		return false;
	limit->of_python |= !c_function && function_match_module(&limit->match, definition, false);
	if (function_match_takes(&limit->match, definition, c_function)) {
		limit->matches[c_function]++;
		return true;
	}
	if (!limit->matches[0] && !limit->matches[1])
		function_near_add(&limit->near, &limit->match, definition, c_function);
	return false;
}

static int check_process(void *owner, struct call_walk *walk)
{
	struct check *check = owner;
	uint32_t key;
	size_t i;

	free(check->masks);
	check->masks = calloc(walk_keys(walk), sizeof(*check->masks));
	if (!check->masks)
		return -ENOMEM;
	for (key = 0; key < walk_keys(walk); key++)
		for (i = 0; i < check->count; i++) {
			struct limit *limit = &check->limits[i];

			if (limits_functions(limit) && match_function(limit, walk_definition(walk, key), key & 1))
				check->masks[key] |= UINT64_C(1) << i;
			if (limit->match.out_of_memory)
				return -ENOMEM;
		}
	return 0;
}

static void check_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct check *check = owner;
	uint64_t mask = check->masks[frame->key];

	(void)walk;
	for (; mask; mask &= mask - 1) {
		struct limit *limit = &check->limits[__builtin_ctzll(mask)];

		limit->open++;
		if (limit->kind == LIMIT_CALLS)
			limit->measured += frame->kind != WIRE_FRAME;
	}
}

static void check_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct check *check = owner;
	uint64_t mask = check->masks[frame->key];

	(void)how;
	for (; mask; mask &= mask - 1) {
		struct limit *limit = &check->limits[__builtin_ctzll(mask)];

		if (--limit->open == 0 && limit->kind == LIMIT_TIME)
			limit->measured += (uint64_t)(walk->now_ns - frame->start_ns);
	}
}

static int measure_functions(struct check *check, struct trace *trace)
{
	static const struct call_visitor visitor = {.process = check_process, .push = check_push, .pop = check_pop};
	struct progress progress;
	bool any = false;
	size_t i;
	int error;

	for (i = 0; i < check->count; i++)
		any |= limits_functions(&check->limits[i]);
	if (!any)
		return 0;
	progress_begin(&progress, "counting", walk_events(trace, &check->filter));
	error = walk_trace(trace, &check->filter, &progress, &visitor, check);
	progress_end(&progress);
	free(check->masks);
	check->masks = NULL;
	return error;
}

/* --- measuring memory --- */

struct peak {
	uint64_t bytes;
	bool any;
};

static void note_peak(void *owner, int64_t ns, uint64_t bytes)
{
	struct peak *peak = owner;

	(void)ns;
	peak->any = true;
	if (bytes > peak->bytes)
		peak->bytes = bytes;
}

static void note_process_peak(struct check *check, const struct trace_process *process, const struct peak *peak)
{
	size_t i;

	for (i = 0; i < check->count; i++) {
		struct limit *limit = &check->limits[i];

		if (limit->kind != LIMIT_ALLOC || (limit->pid && limit->measured >= peak->bytes))
			continue;
		limit->measured = peak->bytes;
		limit->pid = process->pid;
	}
}

static int measure_heap(struct check *check, struct trace *trace)
{
	bool any = false;
	int error = 0;
	uint32_t i;

	for (i = 0; i < check->count; i++)
		any |= check->limits[i].kind == LIMIT_ALLOC;
	for (i = 0; any && !error && i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];
		struct peak peak = {0};

		if (!process || !filter_process(&check->filter, process))
			continue;
		error = heap_curve(trace, process, &check->filter, 0, note_peak, &peak);
		if (peak.any)
			note_process_peak(check, process, &peak);
	}
	return error;
}

/* --- what was not recorded --- */

/* Finds evprof_stop() and evprof_start(), which are events of the calling thread but apply to the whole process. */
static int find_pauses(struct unrecorded *unrecorded, struct trace *trace, const struct trace_process *process)
{
	size_t i;

	for (i = 0; i < process->thread_count; i++) {
		struct trace_thread *thread = trace->threads[process->threads[i]];

		if (trace_count_events(trace, thread) < 0)
			return -ENOMEM;
		unrecorded->paused |= thread->events[WIRE_PAUSE] != 0;
	}
	return 0;
}

static int find_unrecorded(struct check *check, struct trace *trace)
{
	struct unrecorded *unrecorded = &check->unrecorded;
	int error = 0;
	uint32_t i;

	for (i = 0; i < trace->process_count && !error; i++) {
		const struct trace_process *process = trace->processes[i];

		if (!process || !filter_process(&check->filter, process))
			continue;
		unrecorded->sampled |= trace_process_sample_rate(process) != 0;
		unrecorded->filtered |= trace_process_is_filtered(process);
		unrecorded->calls |= !trace_process_records(process, "call");
		unrecorded->c_calls |= !trace_process_records(process, "c_call");
		error = find_pauses(unrecorded, trace, process);
	}
	return error;
}

static bool reads_events(const struct check *check)
{
	size_t i;

	for (i = 0; i < check->count && check->limits[i].kind == LIMIT_LOST; i++)
		;
	return i < check->count;
}

static int measure_limits(struct check *check, struct trace *trace)
{
	struct trace_totals totals = {0};
	int error = measure_functions(check, trace);
	size_t i;

	/* Damaged events are lost, too. No other limit reads the events, so this must. */
	if (!reads_events(check))
		trace_check(trace, NULL, NULL);

	trace->clock = CPU_CLOCK_WALL; /* the heap needs the common time of all threads */
	if (!error)
		error = measure_heap(check, trace);
	if (!error)
		error = trace_count_totals(trace, &totals);
	if (!error)
		error = find_unrecorded(check, trace);
	check->lost = totals.lost;
	for (i = 0; i < check->count; i++) {
		if (check->limits[i].kind != LIMIT_LOST)
			continue;
		check->limits[i].measured = check->lost;
		check->losses_taken |= check->lost <= check->limits[i].allowed;
	}
	return error;
}

/* --- verdict --- */

static bool matches_any(const struct limit *limit)
{
	return !limit->match.module || limit->matches[0] || limit->matches[1];
}

/* Whether the limit names one function, without wildcards. */
static bool is_plain(const struct limit *limit)
{
	return limit->match.module && !strpbrk(limit->match.module, "*?[") && !strpbrk(limit->match.function, "*?[");
}

/* Whether calls of functions that the limit may match were not recorded. */
static bool misses_calls(const struct unrecorded *unrecorded, const struct limit *limit)
{
	bool of_c = is_plain(limit) && !limit->matches[0] && limit->matches[1];
	bool of_python = limit->match.module && (function_match_only_python(&limit->match) || limit->matches[0] ||
						 (limit->of_python && !strpbrk(limit->match.module, "*?[")));

	/* TOTAL is the sum of what was recorded, as in the report. */
	return (unrecorded->calls && !of_c) || (unrecorded->c_calls && limit->match.module && !of_python && !of_c);
}

/* The reason why the trace cannot show that the limit holds; NULL: it can. */
static const char *doubt_reason(const struct check *check, const struct limit *limit)
{
	const struct unrecorded *unrecorded = &check->unrecorded;

	if (limit->kind == LIMIT_LOST)
		return NULL;
	if (limit->kind == LIMIT_ALLOC && !limit->pid)
		return "the trace holds no memory events; record them with --events call,c_call,mem";
	if (limits_functions(limit) && unrecorded->sampled)
		return "stacks were sampled, which counts no calls; record with --events call,c_call";
	if (limits_functions(limit) && misses_calls(unrecorded, limit))
		return "its calls were not recorded; record with --events call,c_call";
	/* A function in the trace was recorded. With a pattern, other functions may have been excluded. */
	if (limits_functions(limit) && unrecorded->filtered && !(is_plain(limit) && matches_any(limit)))
		return "functions were left out of the recording; record without EVPROF_INCLUDE and EVPROF_EXCLUDE";
	if (!matches_any(limit) && limit->allowed)
		return "no function of the trace matches; only =0 says that none may";
	if (unrecorded->paused)
		return "recording was stopped for a while (evprof_stop); events of that time are missing";
	if (check->lost && !check->losses_taken)
		return "events were lost; --max-lost N accepts up to N";
	return NULL;
}

static bool is_broken(const struct limit *limit)
{
	/* Compared as it is printed: rounded. */
	uint64_t half = limit->kind == LIMIT_TIME && limit->allowed ? limit->unit_ns / 2 : 0;

	return limit->measured > limit->allowed + half;
}

static enum limit_result judge_limit(const struct check *check, const struct limit *limit)
{
	if (is_broken(limit))
		return LIMIT_BROKEN;
	return doubt_reason(check, limit) ? LIMIT_ERROR : LIMIT_HELD;
}

/* --- output --- */

#define DESCRIPTION_BYTES 512

static void describe_measure(const struct limit *limit, char *text, size_t size)
{
	int digits = limit->unit_ns == 1000000 ? 3 : limit->unit_ns == 1000 ? 6 : 9;

	if (limit->kind == LIMIT_CALLS)
		snprintf(text, size, "%" PRIu64 " calls, at most %" PRIu64, limit->measured, limit->allowed);
	else if (limit->kind == LIMIT_TIME)
		snprintf(text, size, "%.*f s, at most %.*f s", limit->allowed ? digits : 9,
			 (double)limit->measured / 1e9, limit->allowed ? digits : 9, (double)limit->allowed / 1e9);
	else if (limit->kind == LIMIT_ALLOC)
		snprintf(text, size,
			 "%" PRIu64 " bytes in process %" PRId64 ", at most %" PRIu64
			 ", from Python's allocators; memory that libraries (numpy) take from malloc is not counted",
			 limit->measured, limit->pid, limit->allowed);
	else
		snprintf(text, size, "%" PRIu64 " events lost, at most %" PRIu64, limit->measured, limit->allowed);
}

static void describe_error(const struct check *check, const struct limit *limit, char *text, size_t size)
{
	int used = snprintf(text, size, "%s", doubt_reason(check, limit));
	size_t i;

	for (i = 0; !matches_any(limit) && i < FUNCTION_NEAR_MOST && limit->near.names[i]; i++)
		if ((size_t)used < size)
			used += snprintf(text + used, size - (size_t)used, "%s%s",
					 i ? ", " : "; near: ", limit->near.names[i]);
}

/* Describes the measured value, or why there is none. */
static void describe_limit(const struct check *check, const struct limit *limit, char text[DESCRIPTION_BYTES])
{
	if (limit->result == LIMIT_ERROR)
		describe_error(check, limit, text, DESCRIPTION_BYTES);
	else
		describe_measure(limit, text, DESCRIPTION_BYTES);
}

static int print_lines(const struct check *check)
{
	static const char *const words[] = {[LIMIT_HELD] = "ok", [LIMIT_BROKEN] = "FAILED", [LIMIT_ERROR] = "ERROR"};
	struct output output;
	int error = output_open(&output, "-");
	size_t i;

	if (error)
		return error;
	for (i = 0; i < check->count; i++) {
		const struct limit *limit = &check->limits[i];
		char text[DESCRIPTION_BYTES];

		describe_limit(check, limit, text);
		output_format(&output, "%-6s %s ", words[limit->result], option_names[limit->kind]);
		output_line(&output, text_of(limit->given));
		output_string(&output, ": ");
		output_line(&output, text_of(text));
		output_char(&output, '\n');
	}
	return output_close(&output);
}

/* Writes the contents of an attribute. XML 1.0 cannot express most control characters. */
static void put_xml(struct output *output, struct text text)
{
	while (text.length) {
		const char *start = text.at;
		uint32_t code = text_next(&text);

		if (code == '<')
			output_string(output, "&lt;");
		else if (code == '>')
			output_string(output, "&gt;");
		else if (code == '&')
			output_string(output, "&amp;");
		else if (code == '"')
			output_string(output, "&quot;");
		else if (code == '\t' || code == '\n' || code == '\r')
			output_format(output, "&#%u;", code);
		else if (code < 0x20 || code == TEXT_INVALID || (code >= 0xd800 && code <= 0xdfff) ||
			 (code & 0xfffe) == 0xfffe)
			output_string(output, "\xef\xbf\xbd");
		else
			output_put(output, start, (size_t)(text.at - start));
	}
}

static void put_testcase(struct output *output, const char *option, const char *given, enum limit_result result,
			 const char *what)
{
	output_format(output, "  <testcase classname=\"evprof.check\" name=\"%s%s", option, given[0] ? " " : "");
	put_xml(output, text_of(given));
	output_string(output, "\">\n    ");
	output_string(output, result == LIMIT_HELD     ? "<system-out>"
			      : result == LIMIT_BROKEN ? "<failure message=\""
						       : "<error message=\"");
	put_xml(output, text_of(what));
	output_string(output, result == LIMIT_HELD ? "</system-out>" : "\"/>");
	output_string(output, "\n  </testcase>\n");
}

static size_t count_results(const struct check *check, enum limit_result result)
{
	size_t i, count = 0;

	for (i = 0; i < check->count; i++)
		count += check->limits[i].result == result;
	return count;
}

static int write_junit(const struct check *check, const char *trace)
{
	size_t missing = check->verdict[0] != 0, i;
	struct output output;
	int error = output_open(&output, check->junit);

	if (error)
		return error;
	output_string(&output,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"evprof check ");
	put_xml(&output, text_of(trace));
	output_format(&output, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\">\n", check->count + 1,
		      count_results(check, LIMIT_BROKEN), count_results(check, LIMIT_ERROR) + missing);
	for (i = 0; i < check->count; i++) {
		const struct limit *limit = &check->limits[i];
		char text[DESCRIPTION_BYTES];

		describe_limit(check, limit, text);
		put_testcase(&output, option_names[limit->kind], limit->given, limit->result, text);
	}
	put_testcase(&output, "the trace is whole", "", missing ? LIMIT_ERROR : LIMIT_HELD, check->verdict);
	output_string(&output, " </testsuite>\n</testsuites>\n");
	return output_close(&output);
}

/* --- all --- */

static int report_results(struct check *check, const char *path)
{
	int error = print_lines(check);

	if (error)
		output_message("evprof check: cannot write the result: %s", strerror(-error));
	if (check->junit) {
		int junit_error = write_junit(check, path);

		if (junit_error)
			output_message("evprof check: cannot write %s: %s", check->junit, strerror(-junit_error));
		error = error ? error : junit_error;
	}
	if (check->lost)
		fprintf(stderr, "evprof check: %" PRIu64 " events were lost, so counts and times are too small\n",
			check->lost);
	if (error || count_results(check, LIMIT_ERROR))
		return 2;
	if (count_results(check, LIMIT_BROKEN))
		return 1;
	return check->verdict[0] ? 2 : 0;
}

static int check_trace(struct check *check, const char *path)
{
	struct trace *trace = filter_open(&check->filter, "check", path);
	int error, status;
	size_t i;

	if (!trace)
		return 2;
	if (verb_overwrites("check", trace, check->junit)) {
		trace_close(trace);
		return 2;
	}
	error = measure_limits(check, trace);
	if (error) {
		output_message("evprof check: %s: %s", path, strerror(-error));
		status = 2;
	} else {
		trace_verdict(trace, check->verdict, sizeof(check->verdict));
		trace_print_verdict(trace);
		for (i = 0; i < check->count; i++)
			check->limits[i].result = judge_limit(check, &check->limits[i]);
		status = report_results(check, path);
	}
	trace_close(trace);
	return status;
}

enum { OPTION_CALLS = 256, OPTION_TIME, OPTION_ALLOC, OPTION_LOST, OPTION_JUNIT };

static const struct option options_known[] = {
    {"max-calls", required_argument, NULL, OPTION_CALLS},
    {"max-time", required_argument, NULL, OPTION_TIME},
    {"max-alloc", required_argument, NULL, OPTION_ALLOC},
    {"max-lost", required_argument, NULL, OPTION_LOST},
    {"junit", required_argument, NULL, OPTION_JUNIT},
    {"process", required_argument, NULL, FILTER_PROCESS},
    {"thread", required_argument, NULL, FILTER_THREAD},
    {"from", required_argument, NULL, FILTER_FROM},
    {"to", required_argument, NULL, FILTER_TO},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool take_option(struct check *check, int option, const char *word)
{
	if (filter_is_option(option))
		return filter_take(&check->filter, "check", option, optarg);
	switch (option) {
	case OPTION_CALLS:
		return take_limit(check, LIMIT_CALLS, optarg);
	case OPTION_TIME:
		return take_limit(check, LIMIT_TIME, optarg);
	case OPTION_ALLOC:
		return take_limit(check, LIMIT_ALLOC, optarg);
	case OPTION_LOST:
		return take_limit(check, LIMIT_LOST, optarg);
	case OPTION_JUNIT:
		check->junit = optarg;
		return true;
	}
	return cli_option_wrong("check", word);
}

static void check_done(struct check *check)
{
	size_t i;

	for (i = 0; i < check->count; i++) {
		function_match_done(&check->limits[i].match);
		function_near_done(&check->limits[i].near);
	}
	filter_done(&check->filter);
}

int cmd_check(int argc, char **argv)
{
	struct check check = {0};
	int option, status = 2;

	opterr = 0;
	while ((option = cli_getopt(argc, argv, "h", options_known)) != -1) {
		if (option == 'h') {
			printf("%s", help_text);
			status = 0;
			goto done;
		}
		if (!take_option(&check, option, cli_option(argv)))
			goto done;
	}
	if (optind != argc - 1)
		cli_misused("check", optind == argc ? "a trace is missing" : "one trace at a time");
	else if (!check.count)
		cli_misused("check", "a limit is missing");
	else
		status = check_trace(&check, argv[optind]);
done:
	check_done(&check);
	return status;
}
