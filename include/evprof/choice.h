/*
 * choice.h - what the patterns mean by which functions are chosen, when recording (EVPROF_INCLUDE, EVPROF_EXCLUDE) and
 * when reading (--include, --exclude) alike.
 *
 * A pattern is a glob over the whole of a name, or "re:" and a POSIX extended regular expression that is found anywhere
 * in it. A function has up to four names: its file ("~" for C functions), its name, its qualified name ("str.join"),
 * and module.qualified name; a pattern matches the function if it matches one of them. Where something is to be
 * included, whatever is not is left out; what is to be excluded is left out in any case.
 */
#ifndef EVPROF_CHOICE_H
#define EVPROF_CHOICE_H

#include <fnmatch.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_NAMES 4

struct choice_pattern {
	char *glob; /* NULL: expression */
	regex_t expression;
	bool exclude;
};

/* Returns NULL, or what is wrong with the pattern, in why. The caller frees the pattern with choice_pattern_done(). */
static inline const char *choice_pattern_parse(struct choice_pattern *pattern, const char *text, bool exclude,
					       char *why, size_t why_bytes)
{
	int error;

	*pattern = (struct choice_pattern){.exclude = exclude};
	if (strncmp(text, "re:", 3) == 0) {
		error = regcomp(&pattern->expression, text + 3, REG_EXTENDED | REG_NOSUB);
		if (!error)
			return NULL;
		regerror(error, &pattern->expression, why, why_bytes);
		return why;
	}
	pattern->glob = strdup(text);
	return pattern->glob ? NULL : "out of memory";
}

static inline void choice_pattern_done(struct choice_pattern *pattern)
{
	if (!pattern->glob)
		regfree(&pattern->expression);
	free(pattern->glob);
}

/*
 * The first pattern of a list with commas ("a,b\,c" is a and b,c), which is not empty. pattern has room for the list.
 * Returns the rest of the list.
 */
static inline const char *choice_next(const char *list, char *pattern)
{
	while (*list && *list != ',') {
		list += list[0] == '\\' && list[1] == ',';
		*pattern++ = *list++;
	}
	*pattern = 0;
	return *list ? list + 1 : list;
}

static inline bool choice_pattern_matches(const struct choice_pattern *pattern, const char *const names[CHOICE_NAMES])
{
	for (int i = 0; i < CHOICE_NAMES; i++) {
		if (!names[i][0])
			continue;
		if (pattern->glob ? fnmatch(pattern->glob, names[i], 0) == 0
				  : regexec(&pattern->expression, names[i], 0, NULL, 0) == 0)
			return true;
	}
	return false;
}

/* Is the function one of the chosen? names as above, "" where there is none. */
static inline bool choice_takes(const struct choice_pattern *patterns, size_t count,
				const char *const names[CHOICE_NAMES])
{
	bool includes = false, included = false;

	for (size_t i = 0; i < count; i++) {
		bool matches = (patterns[i].exclude || !included) && choice_pattern_matches(&patterns[i], names);

		if (patterns[i].exclude && matches)
			return false;
		includes |= !patterns[i].exclude;
		included |= !patterns[i].exclude && matches;
	}
	return !includes || included;
}

/* "/python3.11/" or "/python3/" below lib or lib64, at the slash. */
static inline bool choice_is_library(const char *file, const char *at)
{
	int major, minor, length = 0;
	bool below = (at - file >= 4 && strncmp(at - 4, "/lib", 4) == 0) ||
		     (at - file >= 6 && strncmp(at - 6, "/lib64", 6) == 0);

	if (!below)
		return false;
	return strncmp(at, "/python3/", 9) == 0 ||
	       (sscanf(at, "/python%d.%d%n", &major, &minor, &length) == 2 && length && at[length] == '/');
}

/* Is the file one that Python itself puts on sys.path: of the standard library, frozen, or of an installed package? */
static inline bool choice_in_syspath(const char *file)
{
	if (strncmp(file, "<frozen ", 8) == 0 || strstr(file, "/site-packages/") || strstr(file, "/dist-packages/"))
		return true;
	for (const char *at = file; (at = strstr(at, "/python")); at++)
		if (choice_is_library(file, at))
			return true;
	return strstr(file, ".zip/") && strstr(file, "/python3");
}

#endif
