/*
 * verbs.c - shared by the verbs. See verbs.h.
 */
#include "cmd/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

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

bool verb_take_filter(void *request, size_t which, const char *value)
{
	(void)request;
	return filter_take(line.filter, line.verb, (int)which, value);
}

bool verb_take_marks(const char *verb, const char *value, char **copy, const char **begin, const char **end)
{
	char *comma;

	*copy = strdup(value);
	if (!*copy) {
		output_message("evprof %s: out of memory", verb);
		return false;
	}
	comma = strchr(*copy, ',');
	if (!comma)
		return cli_misused(verb, "--between wants two marks with a comma between, not \"%s\"", value);
	*comma = 0;
	*begin = *copy;
	*end = comma + 1;
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
		return option->take(request, option->which, optarg);
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

int verb_parse(const char *verb, const char *letters, const struct verb_option *options, int argc, char **argv,
	       void *request, struct filter *filter)
{
	size_t count;
	int value;

	if (verb_options_visitor)
		verb_options_visitor(options);
	line.verb = verb;
	line.filter = filter;
	for (count = 0; count < VERB_OPTIONS_MAX && options[count].name; count++)
		line.known[count] = (struct option){options[count].name, options[count].argument, NULL,
						    value_of(options, &options[count])};
	line.known[count] = (struct option){0};
	opterr = 0;
	while ((value = getopt_long(argc, argv, letters, line.known, NULL)) != -1) {
		const struct verb_option *option = find_option(options, value);

		if (value == 'h')
			return CLI_FINE;
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

/* --- the trace --- */

struct trace *verb_open(const char *verb, const struct filter *filter, const char *path, const char *to)
{
	struct trace *trace = filter_open(filter, verb, path);

	if (!trace || !to || !trace_is_at(trace, to))
		return trace;
	cli_misused(verb, "%s is the trace itself; give the output another name", to);
	trace_close(trace);
	return NULL;
}

int verb_close(struct trace *trace, int error)
{
	int status = error ? CLI_FAILED : trace_print_verdict(trace);

	trace_close(trace);
	return status;
}
