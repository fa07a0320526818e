/*
 * amounts.c - numbers with a unit. See amounts.h.
 */
#include "util/amounts.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
