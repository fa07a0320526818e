/*
 * filter.c - the patterns of EVPROF_INCLUDE and EVPROF_EXCLUDE. See filter.h; evprof/filter.h defines what patterns
 * mean.
 *
 * Allocates with malloc() only while the constructor runs, and never frees.
 */
#include "base/filter.h"

#include "base/config.h"
#include "base/log_line.h"
#include "base/text.h"
#include "evprof/control.h"
#include "evprof/filter.h"

#define PATTERNS_MAX 64

bool filter_any, filter_hides;
static bool exclude_syspath;
static struct filter_pattern patterns[PATTERNS_MAX];
static size_t pattern_count;

static void add_pattern(const char *name, const char *text, bool exclude, bool complain)
{
	char why[128], shown[TEXT_SHOWN_BYTES];
	const char *wrong;

	if (!*text)
		return;
	wrong = filter_pattern_parse(&patterns[pattern_count], text, exclude, why, sizeof(why));
	if (!wrong)
		pattern_count++;
	else if (complain)
		log_line(
		    LOG_ERROR,
		    "%s: the pattern \"%s\" is left out: %s; allowed: a list, with commas (\\, is one in a pattern), "
		    "of globs and re:EXPRESSION",
		    name, text_shown(text, shown), wrong);
}

static void warn_full(const char *name, const char *text, bool complain)
{
	char shown[TEXT_SHOWN_BYTES];

	if (complain)
		log_line(LOG_ERROR,
			 "%s: the patterns from \"%s\" on are left out: there are %d at most, with those of %s", name,
			 text_shown(text, shown), PATTERNS_MAX, strcmp(name, ENV_INCLUDE) ? ENV_INCLUDE : ENV_EXCLUDE);
}

static void add_list(const char *name, bool exclude, bool complain)
{
	const char *value = config_variable(name);
	char *pattern = value ? strdup(value) : NULL;

	if (!pattern)
		return;
	for (const char *rest = value; *rest;) {
		rest = filter_next(rest, pattern);
		if (pattern_count == PATTERNS_MAX) {
			warn_full(name, pattern, complain && *pattern);
			break;
		}
		add_pattern(name, pattern, exclude, complain);
	}
	free(pattern);
}

void filter_read(bool complain)
{
	while (pattern_count) /* of an earlier recording */
		filter_pattern_done(&patterns[--pattern_count]);
	add_list(ENV_INCLUDE, false, complain);
	add_list(ENV_EXCLUDE, true, complain);
	exclude_syspath = config_switch(ENV_EXCLUDE_SYSPATH, false, complain);
	filter_any = filter_hides = pattern_count || exclude_syspath;
}

bool filter_function(const char *const names[FILTER_NAMES], bool c_function)
{
	if (exclude_syspath && !c_function && filter_in_syspath(names[0], names[3]))
		return false;
	return filter_includes(patterns, pattern_count, names);
}
