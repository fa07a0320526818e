/*
 * limits.c - the results of evprof check. See limits.h.
 */
#include "report/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/output.h"

const char *const limit_options[] = {
    [LIMIT_CALLS] = "--max-calls", [LIMIT_TIME] = "--max-time", [LIMIT_ALLOC] = "--max-alloc",
    [LIMIT_HEAP] = "--max-heap",   [LIMIT_LEAK] = "--max-leak", [LIMIT_ALLOCATIONS] = "--max-allocations",
    [LIMIT_RSS] = "--max-rss",	   [LIMIT_LOST] = "--max-lost",
};

#define DESCRIPTION_BYTES 512

/* What the amount of a limit is, behind the numbers. */
static const char *amount_of(const struct limits *limits, enum limit_kind kind)
{
	bool unseen = limits->unrecorded.malloc;

	switch (kind) {
	case LIMIT_ALLOC:
		return unseen
			   ? ", from Python's allocators; native memory (malloc, mmap: numpy's) was not recorded"
			   : ", from Python's allocators; --max-heap limits native memory (malloc, mmap: numpy's), too";
	case LIMIT_ALLOCATIONS:
		return unseen ? ", by Python's allocators; native ones (malloc, mmap) were not recorded" : "";
	case LIMIT_LEAK:
		return ", alive at the end";
	case LIMIT_RSS:
		return ", resident, with evprof's own";
	default:
		return ", alive at the peak";
	}
}

static void describe_measure(const struct limits *limits, const struct limit *limit, char *text, size_t size)
{
	int digits = limit->unit_ns == 1000000 ? 3 : limit->unit_ns == 1000 ? 6 : 9;
	const char *amount = amount_of(limits, limit->kind);

	if (limit->kind == LIMIT_CALLS)
		snprintf(text, size, "%" PRIu64 " calls, at most %" PRIu64, limit->measured, limit->allowed);
	else if (limit->kind == LIMIT_TIME)
		snprintf(text, size, "%.*f s, at most %.*f s", limit->allowed ? digits : 9,
			 (double)limit->measured / 1e9, limit->allowed ? digits : 9, (double)limit->allowed / 1e9);
	else if (limit->kind == LIMIT_ALLOCATIONS)
		snprintf(text, size, "%" PRIu64 " allocations, at most %" PRIu64 "%s", limit->measured, limit->allowed,
			 amount);
	else if (limit->kind != LIMIT_LOST)
		snprintf(text, size, "%" PRIu64 " bytes in process %" PRId64 ", at most %" PRIu64 "%s", limit->measured,
			 limit->pid, limit->allowed, amount);
	else
		snprintf(text, size, "%" PRIu64 " events lost, at most %" PRIu64, limit->measured, limit->allowed);
}

static void describe_error(const struct limits *limits, const struct limit *limit, char *text, size_t size)
{
	int used = snprintf(text, size, "%s", limit_doubt(limits, limit));

	for (size_t i = 0; !limit_matches_any(limit) && i < FUNCTION_NEAR_MOST && limit->near.names[i]; i++)
		if ((size_t)used < size)
			used += snprintf(text + used, size - (size_t)used, "%s%s",
					 i ? ", " : "; near: ", limit->near.names[i]);
}

static void describe_estimate(const struct limits *limits, const struct limit *limit, char *text, size_t size)
{
	bool of_heap = limit->kind >= LIMIT_ALLOC && limit->kind <= LIMIT_ALLOCATIONS;
	uint64_t interval = limits->unrecorded.memory_interval;
	size_t used = strlen(text);

	if (of_heap && interval)
		snprintf(text + used, size - used, "; an estimate, memory was sampled every %" PRIu64 " bytes",
			 interval);
}

/* The line to look at first. */
static void describe_most(const struct limit *limit, char *text, size_t size)
{
	size_t used = strlen(text);

	if (limit->result == LIMIT_BROKEN && limit->most_place[0])
		snprintf(text + used, size - used, "; most by %s: %" PRIu64, limit->most_place, limit->most);
}

/* Describes the measured value, or why there is none. */
static void describe_limit(const struct limits *limits, const struct limit *limit, char text[DESCRIPTION_BYTES])
{
	if (limit->result == LIMIT_ERROR)
		describe_error(limits, limit, text, DESCRIPTION_BYTES);
	else
		describe_measure(limits, limit, text, DESCRIPTION_BYTES);
	if (limit->result != LIMIT_ERROR)
		describe_estimate(limits, limit, text, DESCRIPTION_BYTES);
	describe_most(limit, text, DESCRIPTION_BYTES);
}

int report_limits(const struct limits *limits)
{
	static const char *const words[] = {[LIMIT_HELD] = "ok", [LIMIT_BROKEN] = "FAILED", [LIMIT_ERROR] = "ERROR"};
	struct output output;
	int error = output_open(&output, "-");

	if (error)
		return error;
	for (size_t i = 0; i < limits->count; i++) {
		const struct limit *limit = &limits->at[i];
		char text[DESCRIPTION_BYTES];

		describe_limit(limits, limit, text);
		output_format(&output, "%-6s %s ", words[limit->result], limit_options[limit->kind]);
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

int report_limits_junit(const struct limits *limits, const char *trace, const char *missing, const char *path)
{
	size_t errors = limits_count(limits, LIMIT_ERROR) + (missing[0] != 0), i;
	struct output output;
	int error = output_open(&output, path);

	if (error)
		return error;
	output_string(&output,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"evprof check ");
	put_xml(&output, text_of(trace));
	output_format(&output, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\">\n", limits->count + 1,
		      limits_count(limits, LIMIT_BROKEN), errors);
	for (i = 0; i < limits->count; i++) {
		const struct limit *limit = &limits->at[i];
		char text[DESCRIPTION_BYTES];

		describe_limit(limits, limit, text);
		put_testcase(&output, limit_options[limit->kind], limit->given, limit->result, text);
	}
	put_testcase(&output, "the trace is whole", "", missing[0] ? LIMIT_ERROR : LIMIT_HELD, missing);
	output_string(&output, " </testsuite>\n</testsuites>\n");
	return output_close(&output);
}
