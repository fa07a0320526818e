/*
 * verbs.c - what the verbs share on the command line. See verbs.h.
 */
#include "verbs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace_reader.h"

int verb_misused(const char *verb, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "evprof %s: ", verb);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; evprof %s --help shows how to use it\n", verb);
	return TRACE_EXIT_FAILED;
}

bool verb_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < lowest) {
		verb_misused(verb, "%s wants a whole number from %lld, not \"%s\"", option, (long long)lowest, text);
		return false;
	}
	*value = number;
	return true;
}

bool verb_overwrites(const char *verb, const struct trace *trace, const char *path)
{
	if (!path || !trace_is_at(trace, path))
		return false;
	verb_misused(verb, "%s is the trace itself: choose another file", path);
	return true;
}
