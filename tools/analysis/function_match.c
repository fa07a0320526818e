/*
 * function_match.c - see function_match.h. Globs are fnmatch()'s.
 */
#include "analysis/function_match.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "analysis/stacks.h"
#include "trace/reader.h"
#include "util/cli.h"

int function_match_parse(struct function_match *match, const char *text, size_t length)
{
	const char *colon = memrchr(text, ':', length);

	if (!colon || colon == text || colon + 1 == text + length)
		return -EINVAL;
	match->module = strndup(text, (size_t)(colon - text));
	match->function = strndup(colon + 1, length - (size_t)(colon + 1 - text));
	return match->module && match->function ? 0 : -ENOMEM;
}

void function_match_done(struct function_match *match)
{
	free(match->module);
	free(match->function);
}

/* --- match --- */

static bool matches_text(struct function_match *match, const char *pattern, struct text text)
{
	char *name = text.length ? strndup(text.at, text.length) : NULL;
	int result = name ? fnmatch(pattern, name, 0) : FNM_NOMATCH;

	match->out_of_memory |= (text.length && !name) || (result && result != FNM_NOMATCH);
	free(name);
	return result == 0;
}

static struct text without_suffix(struct text file)
{
	if (file.length > 3 && memcmp(file.at + file.length - 3, ".py", 3) == 0)
		file.length -= 3;
	return file;
}

/* The last folders and the base name of the file: as many parts as the pattern has. */
static struct text path_end(const char *pattern, struct text file)
{
	const char *at = file.at + file.length;
	size_t slashes = 0;

	for (; *pattern; pattern++)
		slashes += *pattern == '/';
	while (at > file.at && (at[-1] != '/' || slashes--))
		at--;
	return (struct text){at, file.length - (size_t)(at - file.at)};
}

static bool matches_file(struct function_match *match, const char *pattern, struct text file)
{
	struct text end = path_end(pattern, file);

	return matches_text(match, pattern, file) || matches_text(match, pattern, end) ||
	       matches_text(match, pattern, without_suffix(end));
}

bool function_match_module(struct function_match *match, const struct wire_definition *definition, bool c_function)
{
	struct text module = trace_string(definition, 3);

	/* Methods of C types have no module. */
	if (c_function)
		return matches_text(match, match->module, module.length ? module : text_of("builtins"));
	return matches_text(match, match->module, module) ||
	       matches_file(match, match->module, trace_string(definition, 0));
}

static bool matches_name(struct function_match *match, const struct wire_definition *definition, bool c_function)
{
	struct text class = trace_string(definition, 0);
	struct text name = trace_string(definition, 1);
	char *method;
	bool matches;

	if (matches_text(match, match->function, name))
		return true;
	if (!c_function)
		return matches_text(match, match->function, trace_string(definition, 2));
	if (!class.length)
		return false;
	if (asprintf(&method, "%.*s.%.*s", (int)class.length, class.at, (int)name.length, name.at) < 0) {
		match->out_of_memory = true;
		return false;
	}
	matches = matches_text(match, match->function, text_of(method));
	free(method);
	return matches;
}

bool function_match_takes(struct function_match *match, const struct wire_definition *definition, bool c_function)
{
	return function_match_module(match, definition, c_function) && matches_name(match, definition, c_function);
}

bool function_match_only_python(const struct function_match *match)
{
	size_t length = strlen(match->module);

	return length > 3 && strcmp(match->module + length - 3, ".py") == 0;
}

/* --- suggestions --- */

static unsigned text_distance(const char *word, struct text known)
{
	char *name = known.length ? strndup(known.at, known.length) : NULL;
	unsigned far = name ? cli_distance(word, name) : CLI_FAR;

	free(name);
	return far;
}

/* The distance of the module. function_near_add() accepts CLI_FAR if the function's name matches exactly. */
static unsigned module_distance(struct function_match *match, const struct wire_definition *definition, bool c_function)
{
	struct text file = {0};

	if (!c_function)
		file = text_base_name(trace_string(definition, 0));
	if (function_match_module(match, definition, c_function))
		return 0;
	return MIN(text_distance(match->module, trace_string(definition, 3)),
		   MIN(text_distance(text_base_name(text_of(match->module)).at, file),
		       text_distance(match->module, without_suffix(file))));
}

/* Empty for a C function: that string of its definition is another. */
static struct text qualified_name(const struct wire_definition *definition, bool c_function)
{
	struct text none = {0};

	return c_function ? none : trace_string(definition, 2);
}

static unsigned name_distance(struct function_match *match, const struct wire_definition *definition, bool c_function)
{
	if (matches_name(match, definition, c_function))
		return 0;
	return MIN(text_distance(match->function, trace_string(definition, 1)),
		   text_distance(match->function, qualified_name(definition, c_function)));
}

/* The name as a limit is written. NULL if memory ran out. */
static char *name_of(const struct wire_definition *definition, bool c_function)
{
	struct text module = trace_string(definition, 3), name = trace_string(definition, 1);
	struct text qualified = qualified_name(definition, c_function);
	char *text;

	if (!module.length)
		module = c_function ? text_of("builtins") : text_base_name(trace_string(definition, 0));
	if (qualified.length)
		name = qualified;
	if (asprintf(&text, "%.*s:%.*s", (int)module.length, module.at, (int)name.length, name.at) < 0)
		return NULL;
	return text;
}

static bool has_name(const struct function_near *near, const char *name)
{
	for (size_t i = 0; i < FUNCTION_NEAR_MOST; i++)
		if (near->names[i] && strcmp(near->names[i], name) == 0)
			return true;
	return false;
}

void function_near_add(struct function_near *near, struct function_match *match,
		       const struct wire_definition *definition, bool c_function)
{
	const size_t last = FUNCTION_NEAR_MOST - 1;
	unsigned far = name_distance(match, definition, c_function);
	char *name;
	size_t i;

	if (far == CLI_FAR)
		return;
	far += module_distance(match, definition, c_function);
	if (far > CLI_FAR || (near->names[last] && near->distances[last] <= far))
		return;
	name = name_of(definition, c_function);
	if (!name || has_name(near, name)) {
		free(name);
		return;
	}
	free(near->names[last]);
	for (i = last; i > 0 && (!near->names[i - 1] || near->distances[i - 1] > far); i--) {
		near->names[i] = near->names[i - 1];
		near->distances[i] = near->distances[i - 1];
	}
	near->names[i] = name;
	near->distances[i] = far;
}

void function_near_done(struct function_near *near)
{
	for (size_t i = 0; i < FUNCTION_NEAR_MOST; i++)
		free(near->names[i]);
}
