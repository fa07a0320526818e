/*
 * cli.h - the command line conventions of all verbs: exit statuses, error messages, and suggestions for mistyped names.
 */
#ifndef EVPROF_TOOLS_UTIL_CLI_H
#define EVPROF_TOOLS_UTIL_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses of evprof. */
enum cli_status {
	CLI_FINE = 0,
	CLI_DAMAGED = 1, /* a part of the trace is missing; the rest was used */
	CLI_FAILED = 2,
	CLI_GROWING = 3,   /* the trace is intact, but still being written */
	CLI_REGRESSED = 4, /* evprof diff --fail-on: a measure grew by more than its threshold */
};

/* The status for several traces: a growing one is better than a damaged one. */
static inline int cli_status_worst(int a, int b)
{
	static const int badness[] = {[CLI_FINE] = 0, [CLI_GROWING] = 1, [CLI_DAMAGED] = 2, [CLI_FAILED] = 3};

	return badness[a] > badness[b] ? a : b;
}

/* Prints an error in the command line on stderr, with a pointer to the help. Returns false. */
bool cli_misused(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The number of letters to change, insert, delete, or swap with the next one to make a word; CLI_FAR: too many for a
 * typing error.
 */
unsigned cli_distance(const char *word, const char *known);
#define CLI_FAR 3u

/*
 * The nearest name of a table for a word that may be mistyped; NULL: none is near, or the word is a name. An element
 * has `size` bytes and begins with its name; a NULL name ends the table.
 */
const char *cli_nearest(const char *word, const void *table, size_t size);
/* Prints the names of such a table on stderr, with commas, and ends the line. */
void cli_print_names(const void *table, size_t size);

/* Parses a whole number, at least lowest, for an option. False: an error is printed. */
bool cli_number(const char *verb, const char *option, const char *text, int64_t lowest, int64_t *value);

/* From cli_catch_interrupt() on, Ctrl-C and SIGTERM set this and end nothing. */
extern volatile sig_atomic_t cli_interrupted;
void cli_catch_interrupt(void);

struct unit {
	const char *name;
	double factor;
};

/* Tables of units; the last one has no name. A number without a unit has the first one. */
extern const struct unit units_seconds[]; /* in ns */
extern const struct unit units_bytes[];	  /* 1024 */
extern const struct unit units_none[];

/* Parses a number with one of the units, rounded, at most limit. False: it is none. */
bool parse_amount(const char *text, uint64_t *value, double limit, const struct unit *units);

#endif
