/*
 * amounts.h - numbers with a unit on the command line: 0.5, 20ms, 64K. Used by the verbs with limits.
 */
#ifndef EVPROF_TOOLS_UTIL_AMOUNTS_H
#define EVPROF_TOOLS_UTIL_AMOUNTS_H

#include <stdbool.h>
#include <stdint.h>

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
