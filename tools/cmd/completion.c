/*
 * completion.c - evprof completion: prints what makes bash, zsh or fish complete the verbs and options of evprof.
 *
 * Verbs come from the table of evprof.c, options from the table that each verb parses with, and what an option does
 * from the verb's --help. completion_shells.c writes the scripts.
 */
#include "cmd/completion.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/function_diff.h"
#include "cmd/verbs.h"
#include "export/export.h"
#include "util/cli.h"

static const char help_text[] =
    "usage: evprof completion bash|zsh|fish\n"
    "\n"
    "Prints what makes a shell complete the verbs, options, values and traces of evprof. make install and packages "
    "put\n"
    "it in place. By hand:\n"
    "\n"
    "  bash   source <(evprof completion bash)                in ~/.bashrc\n"
    "  zsh    source <(evprof completion zsh)                 in ~/.zshrc, after compinit\n"
    "  fish   evprof completion fish | source                 in ~/.config/fish/config.fish\n";

/* --- values --- */

/* The values of options whose table does not have them. verb NULL: of any verb. */
static const struct {
	const char *verb, *option, *values;
} known_values[] = {
    {"report", "sort", "time cumulative calls pcalls bytes allocations name file module line nfl stdname"},
    {"report", "by", "module span process thread"},
    {"memory", "leaks", "all"},
    {"annotate", "by", "thread"},
    {"annotate", "format", "text json"},
    {"export", "weight", "time bytes allocations live peak temporary"},
    {"record", "events", "call c_call exception mem line cpu"},
    {"start", "events", "call c_call exception mem line cpu"},
    {"attach", "events", "call c_call exception mem line cpu"},
    {"run", "events", "call c_call exception mem line cpu malloc"},
    {"run", "on-full", "wait drop"},
    {"run", "log", "error warning info debug"},
    {NULL, "clock", "wall cpu off-cpu"},
};

static void add_word(char *words, const char *word)
{
	size_t used = strlen(words);

	snprintf(words + used, COMPLETION_VALUES_BYTES - used, "%s%s", used ? " " : "", word);
}

static void find_values(struct completion_option *option, const char *verb, const char *const *words)
{
	bool format = strcmp(option->name, "format") == 0;

	if (format && (strcmp(verb, "export") == 0 || strcmp(verb, "run") == 0))
		for (size_t i = 0; i < export_format_count; i++)
			add_word(option->values, export_formats[i].name);
	if (format && strcmp(verb, "export") == 0)
		add_word(option->values, "parquet arrow");
	if (strcmp(verb, "diff") == 0 && strcmp(option->name, "sort") == 0)
		for (size_t i = 0; i < DIFF_MEASURES; i++)
			add_word(option->values, diff_measures[i].sort);
	for (size_t i = 0; i < sizeof(known_values) / sizeof(known_values[0]); i++)
		if ((!known_values[i].verb || strcmp(known_values[i].verb, verb) == 0) &&
		    strcmp(known_values[i].option, option->name) == 0)
			add_word(option->values, known_values[i].values);
	if (option->values[0] || option->argument == no_argument)
		return;
	for (; words && *words; words++)
		if (**words)
			add_word(option->values, *words);
}

/* --- descriptions --- */

static bool starts_name(const char *line, const char *at)
{
	const char *first = line + strspn(line, " ");

	return at == first || (at >= line + 2 && at[-2] == ',' && *first == '-');
}

/* What follows the option and its value in its line of the help; NULL: the line does not explain it. */
static const char *explanation_in(const char *line, const struct completion_option *option)
{
	char name[64];
	const char *at;
	int length = snprintf(name, sizeof(name), "--%s", option->name);

	for (at = strstr(line, name); at; at = strstr(at + 1, name)) {
		const char *rest = at + length;

		if (!starts_name(line, at) || (*rest && !strchr(" [,", *rest)))
			continue;
		rest += strcspn(rest, " ,");
		if (option->argument != no_argument && rest[0] == ' ' && rest[1] != ' ') {
			rest += 1 + strcspn(rest + 1, " ");
			rest -= rest[-1] == ',';
		}
		return rest;
	}
	return NULL;
}

/* Up to the end of the first sentence or half of one, without the blanks around it. */
static void take_clause(struct completion_option *option, const char *text)
{
	size_t length;

	text += strspn(text, " ");
	length = strcspn(text, ";");
	for (size_t i = 0; i + 1 < length; i++)
		if (text[i] == '.' && text[i + 1] == ' ')
			length = i;
	while (length && strchr(" .,:", text[length - 1]))
		length--;
	snprintf(option->description, sizeof(option->description), "%.*s", (int)length, text);
}

/* What explains several options stands behind the last of them, or in the next line. */
static const char *after_others(const char *rest)
{
	const char *gap = rest[0] == ',' ? strstr(rest, "  ") : rest;

	return gap ? gap : "";
}

/* lines: those of the help, ended by NULL. */
static void describe(struct completion_option *option, char *const *lines)
{
	for (; *lines; lines++) {
		const char *rest = explanation_in(*lines, option);

		if (!rest)
			continue;
		rest = after_others(rest);
		if (rest[strspn(rest, " ")] == 0)
			rest = lines[1] ? lines[1] : "";
		take_clause(option, rest);
		return;
	}
}

/* --- the model --- */

/* Where take_options() puts what the verb has. */
static struct completion_verb *visited;

static void take_options(const struct verb_option *options)
{
	for (; options->name || options->letter; options++) {
		struct completion_option *option = &visited->options[visited->count];

		if (!options->name || visited->count == VERB_OPTIONS_MAX)
			continue;
		*option = (struct completion_option){
		    .name = options->name, .letter = options->letter, .argument = options->argument};
		find_values(option, visited->verb->name, options->words);
		visited->count++;
	}
}

/* The verb's --help, which it prints to descriptor 1. To be freed; NULL: errno. */
static char *help_of(const struct verb *verb)
{
	char name[32], option[] = "--help", *text = NULL;
	FILE *file = tmpfile();
	int saved = file ? dup(STDOUT_FILENO) : -1;
	long bytes = -1;

	if (saved >= 0 && fflush(stdout) == 0 && dup2(fileno(file), STDOUT_FILENO) >= 0) {
		snprintf(name, sizeof(name), "%s", verb->name);
		optind = 0; /* getopt begins anew */
		verb->main(2, (char *[]){name, option, NULL});
		fflush(stdout);
		dup2(saved, STDOUT_FILENO);
		bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
	}
	text = bytes >= 0 ? calloc((size_t)bytes + 1, 1) : NULL;
	if (text) {
		rewind(file);
		text[fread(text, 1, (size_t)bytes, file)] = 0;
	}
	if (saved >= 0)
		close(saved);
	if (file)
		fclose(file);
	return text;
}

static bool model_verb(struct completion_verb *model, const struct verb *verb)
{
	char *lines[COMPLETION_LINES_MAX + 1] = {NULL}, *help, *rest;
	size_t count = 0;

	*model = (struct completion_verb){.verb = verb};
	visited = model;
	verb_options_visitor = take_options;
	help = help_of(verb);
	verb_options_visitor = NULL;
	rest = help;
	while (count < COMPLETION_LINES_MAX && rest && (lines[count] = strsep(&rest, "\n")) != NULL)
		count++;
	for (size_t i = 0; i < model->count; i++)
		describe(&model->options[i], lines);
	free(help);
	return help != NULL;
}

static int print_completion(const struct completion_shell *shell)
{
	struct completion_verb *model = calloc(COMPLETION_VERBS_MAX + 1, sizeof(*model));
	size_t count;
	bool fine = model != NULL;

	for (count = 0; fine && verbs[count].name && count < COMPLETION_VERBS_MAX; count++)
		fine = model_verb(&model[count], &verbs[count]);
	if (fine)
		shell->print(model);
	else
		fprintf(stderr, "evprof completion: %s\n", strerror(errno));
	free(model);
	return fine ? CLI_FINE : CLI_FAILED;
}

int cmd_completion(int argc, char **argv)
{
	static const struct verb_option options_known[] = {VERB_OPTIONS_END};
	static const struct verb_usage usage = {"completion", options_known, {help_text}};
	int status = verb_parse(&usage, argc, argv, NULL, NULL);

	if (status != VERB_PARSED)
		return status;
	for (size_t i = 0; optind == argc - 1 && completion_shells[i].name; i++)
		if (strcmp(completion_shells[i].name, argv[optind]) == 0)
			return print_completion(&completion_shells[i]);
	cli_misused("completion", "one of the shells bash, zsh and fish is wanted");
	return CLI_FAILED;
}
