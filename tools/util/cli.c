/*
 * cli.c - the command line. See cli.h.
 */
#include "util/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/suggest.h"

int cli_misused(const char *verb, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "evprof %s: ", verb);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; evprof %s --help shows how to use it\n", verb);
	return CLI_FAILED;
}

static const struct option *known;

int cli_getopt(int argc, char **argv, const char *letters, const struct option *options)
{
	known = options;
	return getopt_long(argc, argv, letters, options, NULL);
}

/* The nearest option; NULL if none is near or `name` is one. name is without its value. */
static const char *nearest_option(const char *name)
{
	unsigned best = SUGGEST_FAR;
	const char *found = NULL;

	for (const struct option *option = known; option->name; option++) {
		unsigned distance = suggest_distance(name, option->name);

		if (distance < best) {
			best = distance;
			found = option->name;
		}
	}
	return best ? found : NULL;
}

bool cli_option_wrong(const char *verb, const char *word)
{
	char name[64] = "";
	const char *meant;

	if (strncmp(word, "--", 2) == 0)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	meant = nearest_option(name);
	cli_misused(verb, "the option %s is not known or lacks its value%s%s%s", word, meant ? " (did you mean --" : "",
		    meant ? meant : "", meant ? "?)" : "");
	return false;
}

const char *cli_option(char *const *argv)
{
	const char *next = argv[optind];

	/* optind stays at a word until getopt has read all its letters. */
	if (optopt > 0 && optopt <= CHAR_MAX && next && next[0] == '-' && next[1] != '-' && strchr(next + 1, optopt))
		return next;
	return argv[optind - 1];
}

bool cli_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < lowest) {
		cli_misused(verb, "%s wants a whole number from %lld, not \"%s\"", option, (long long)lowest, text);
		return false;
	}
	*value = number;
	return true;
}
