/*
 * cli.c - the command line. See cli.h.
 */
#include "util/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

bool cli_misused(const char *verb, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "evprof %s: ", verb);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; evprof %s --help shows how to use it\n", verb);
	return false;
}

volatile sig_atomic_t cli_interrupted;

static void interrupt(int number)
{
	(void)number;
	cli_interrupted = 1;
}

void cli_catch_interrupt(void)
{
	struct sigaction action = {.sa_handler = interrupt};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

#define WORD_MAX 32

/* The Damerau-Levenshtein distance, row by row. */
unsigned cli_distance(const char *word, const char *known)
{
	size_t rows = strlen(word), columns = strlen(known);
	unsigned cost[WORD_MAX + 1][WORD_MAX + 1];

	if (rows > WORD_MAX || columns > WORD_MAX)
		return CLI_FAR;
	for (size_t i = 0; i <= rows; i++)
		cost[i][0] = (unsigned)i;
	for (size_t j = 0; j <= columns; j++)
		cost[0][j] = (unsigned)j;
	for (size_t i = 1; i <= rows; i++)
		for (size_t j = 1; j <= columns; j++) {
			unsigned here = cost[i - 1][j - 1] + (word[i - 1] != known[j - 1]);

			here = MIN(here, MIN(cost[i - 1][j], cost[i][j - 1]) + 1);
			if (i > 1 && j > 1 && word[i - 1] == known[j - 2] && word[i - 2] == known[j - 1])
				here = MIN(here, cost[i - 2][j - 2] + 1);
			cost[i][j] = here;
		}
	/* A short word would be near every other one. */
	return cost[rows][columns] * 2 > columns ? CLI_FAR : MIN(cost[rows][columns], CLI_FAR);
}

const char *cli_nearest(const char *word, const void *table, size_t size)
{
	unsigned best = CLI_FAR;
	const char *found = NULL, *name;

	for (const char *at = table; memcpy(&name, at, sizeof(name)), name; at += size) {
		unsigned distance = cli_distance(word, name);

		if (distance < best) {
			best = distance;
			found = name;
		}
	}
	return best ? found : NULL;
}

void cli_print_names(const void *table, size_t size)
{
	const char *name;

	for (const char *at = table; memcpy(&name, at, sizeof(name)), name; at += size)
		fprintf(stderr, "%s %s", at == table ? "" : ",", name);
	fprintf(stderr, "\n");
}

bool cli_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < lowest)
		return cli_misused(verb, "%s wants a whole number from %lld, not \"%s\"", option, (long long)lowest,
				   text);
	*value = number;
	return true;
}

/* --- numbers with a unit --- */

const struct unit units_seconds[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {NULL, 0}};
const struct unit units_bytes[] = {{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {NULL, 0}};
const struct unit units_none[] = {{"", 1}, {NULL, 0}};

bool parse_amount(const char *text, uint64_t *value, double limit, const struct unit *units)
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
