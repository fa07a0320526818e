/*
 * verbs.c - shared by the verbs. See verbs.h.
 */
#include "cmd/verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "evprof/folders.h"
#include "evprof/settings.h"
#include "util/cli.h"
#include "util/output.h"

/* --- options --- */

/* The command line being parsed. */
static struct {
	const char *verb;
	struct filter *filter;
	struct option known[VERB_OPTIONS_MAX + 1];
} line;

void (*verb_options_visitor)(const struct verb_option *options);

bool verb_take_filter(void *request, const struct verb_option *option, const char *value)
{
	(void)request;
	return filter_take(line.filter, line.verb, (int)option->which, value);
}

/* "a, b or c" */
static void list_words(const char *const *words, char *list, size_t bytes)
{
	const char *before = "";

	list[0] = 0;
	for (; *words; words++) {
		size_t used = strlen(list);

		if (!**words)
			continue;
		snprintf(list + used, bytes - used, "%s%s", before, *words);
		before = words[1] && !words[2] ? " or " : ", ";
	}
}

bool verb_take_word(void *request, const struct verb_option *option, const char *value)
{
	char known[128];

	value = value ? value : option->name;
	for (unsigned i = 0; option->words[i]; i++) {
		if (!*value || strcmp(option->words[i], value) != 0)
			continue;
		memcpy((char *)request + option->which, &i, sizeof(i));
		return true;
	}
	list_words(option->words, known, sizeof(known));
	return cli_misused(line.verb, "--%s wants %s, not \"%s\"", option->name, known, value);
}

/* Parses a number into the request. */
static bool take_number(void *request, const struct verb_option *option, const char *value, int64_t lowest)
{
	char name[64];

	snprintf(name, sizeof(name), "--%s", option->name);
	return cli_number(line.verb, name, value, lowest, (int64_t *)((char *)request + option->which));
}

bool verb_take_count(void *request, const struct verb_option *option, const char *value)
{
	return take_number(request, option, value, 1);
}

bool verb_take_limit(void *request, const struct verb_option *option, const char *value)
{
	if (strcmp(value, "all") != 0)
		return take_number(request, option, value, 0);
	*(int64_t *)((char *)request + option->which) = VERB_ALL;
	return true;
}

bool verb_take_interval(void *request, const struct verb_option *option, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	if (*end || end == value || !isfinite(seconds) || seconds < 0.1 || seconds > 3600)
		return cli_misused(line.verb, "--%s is 0.1 to 3600 seconds, not %s", option->name, value);
	*(int *)((char *)request + option->which) = (int)(seconds * 1000);
	return true;
}

bool verb_take_events(void *request, const struct verb_option *option, const char *value)
{
	unsigned events = 0;
	const char *allowed = setting_events(value, &events);

	if (!*value)
		return cli_misused(line.verb, "--%s wants a value", option->name);
	if (allowed)
		return cli_misused(line.verb, "--%s %s is not understood; allowed: %s", option->name, value, allowed);
	if (events & EVENT_SAMPLE)
		return cli_misused(line.verb, "samples need nothing in the process: --%s sample is not for evprof %s",
				   option->name, line.verb);
	if (events & EVENT_MALLOC)
		return cli_misused(line.verb, "native allocations are recorded from the start of a program only "
					      "(evprof run)");
	*(const char **)((char *)request + option->which) = value;
	return true;
}

bool verb_take_marks(void *request, const struct verb_option *option, const char *value)
{
	const char **marks = (const char **)((char *)request + option->which);
	char *comma = strchr(value, ',');

	if (!comma)
		return cli_misused(line.verb, "--%s wants two marks with a comma between, not \"%s\"", option->name,
				   value);
	*comma = 0;
	marks[0] = value;
	marks[1] = comma + 1;
	return true;
}

/* The word of the option that getopt_long() returned last, also if it holds several letters. */
static const char *last_word(char *const *argv)
{
	const char *next = argv[optind];

	/* optind stays at a word until getopt has read all its letters. */
	if (optopt > 0 && optopt <= CHAR_MAX && next && next[0] == '-' && next[1] != '-' && strchr(next + 1, optopt))
		return next;
	return argv[optind - 1];
}

static void print_wrong(const char *word)
{
	char name[64] = "";
	const char *meant;

	if (strncmp(word, "--", 2) == 0)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	meant = cli_nearest(name, line.known, sizeof(line.known[0]));
	cli_misused(line.verb, "the option %s is not known or lacks its value%s%s%s", word,
		    meant ? " (did you mean --" : "", meant ? meant : "", meant ? "?)" : "");
}

static bool take_option(const struct verb_option *option, void *request)
{
	char *place = (char *)request + option->which;

	if (option->take)
		return option->take(request, option, optarg);
	if (option->argument == no_argument)
		memcpy(place, &(bool){true}, sizeof(bool));
	else
		memcpy(place, &optarg, sizeof(optarg));
	return true;
}

/*
 * Whether the option took the next option, or the "--", as its value: it lacks its own. --NAME=--VALUE is how such a
 * value is given.
 */
static bool takes_next(const struct verb_option *option, char *const *argv)
{
	return option->name && option->argument == required_argument && optarg == argv[optind - 1] &&
	       strncmp(optarg, "--", 2) == 0;
}

/* What getopt_long() returns for the option. */
static int value_of(const struct verb_option *options, const struct verb_option *option)
{
	return option->letter ? option->letter : 256 + (int)(option - options);
}

/* NULL: there is none. */
static const struct verb_option *find_option(const struct verb_option *options, int value)
{
	const struct verb_option *option = options;

	while ((option->name || option->letter) && value_of(options, option) != value)
		option++;
	return option->name || option->letter ? option : NULL;
}

/* Makes the tables of getopt_long(). letters has room for three characters an option. */
static void list_options(const struct verb_option *options, char *letters)
{
	struct option *known = line.known;
	const struct verb_option *option;

	*letters = '\0';
	for (option = options; option->name || option->letter; option++) {
		if (option->argument == VERB_LAST_OPTION)
			*letters = '+';
		if (option->name)
			*known++ = (struct option){option->name, option->argument, NULL, value_of(options, option)};
	}
	*known = (struct option){0};
	letters += *letters == '+';
	for (option = options; option->name || option->letter; option++) {
		if (!option->letter)
			continue;
		*letters++ = option->letter;
		if (option->argument != no_argument)
			*letters++ = ':';
	}
	*letters = 0;
}

static void print_help(const struct verb_usage *usage)
{
	for (size_t i = 0; i < VERB_HELPS && usage->help[i]; i++)
		fputs(usage->help[i], stdout);
}

int verb_parse(const struct verb_usage *usage, int argc, char **argv, void *request, struct filter *filter)
{
	char letters[3 * VERB_OPTIONS_MAX + 1];
	int value;

	if (verb_options_visitor)
		verb_options_visitor(usage->options);
	line.verb = usage->verb;
	line.filter = filter;
	list_options(usage->options, letters);
	opterr = 0;
	while ((value = getopt_long(argc, argv, letters, line.known, NULL)) != -1) {
		const struct verb_option *option = find_option(usage->options, value);

		if (value == 'h') {
			print_help(usage);
			return CLI_FINE;
		}
		if (!option)
			print_wrong(last_word(argv));
		else if (takes_next(option, argv))
			print_wrong(argv[optind - 2]);
		if (!option || takes_next(option, argv) || !take_option(option, request))
			return CLI_FAILED;
		if (option->argument == VERB_LAST_OPTION)
			break;
	}
	return VERB_PARSED;
}

bool verb_has_one_trace(const char *verb, int argc)
{
	if (optind == argc - 1)
		return true;
	return cli_misused(verb, optind == argc ? "a trace is missing" : "one trace at a time");
}

bool verb_take_target(const char *verb, int argc, char **argv, const char **target)
{
	if (optind + 1 < argc)
		return cli_misused(verb, "one process or program at a time");
	if (optind < argc)
		*target = argv[optind];
	return true;
}

bool verb_is_pid(const char *target)
{
	return *target && strspn(target, "0123456789") == strlen(target);
}

/* --- the trace --- */

bool verb_overwrites(const char *verb, const struct trace *trace, const char *to)
{
	return trace_is_at(trace, to) && !cli_misused(verb, "%s is the trace itself; give the output another name", to);
}

struct trace *verb_open(const char *verb, const struct filter *filter, const char *path, const char *to)
{
	struct trace *trace = filter_open(filter, verb, path);

	if (!trace || !to || !verb_overwrites(verb, trace, to))
		return trace;
	trace_close(trace);
	return NULL;
}

int verb_close(struct trace *trace, int error)
{
	int status = error ? CLI_FAILED : trace_print_verdict(trace);

	trace_close(trace);
	return status;
}

bool verb_can_write(const char *verb, const char *path)
{
	struct stat status = {.st_mode = S_IFREG};
	int error = folders_make(path);
	struct output output;

	if (!error && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		error = -EISDIR;
	if (!error && S_ISREG(status.st_mode)) { /* a pipe would wait for its reader */
		error = output_open(&output, path);
		if (!error)
			output_abandon(&output);
	}
	if (error)
		output_complain(verb, path, error);
	return !error;
}
