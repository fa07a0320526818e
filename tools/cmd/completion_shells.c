/*
 * completion_shells.c - the scripts of evprof completion for bash, zsh and fish. See completion.h.
 *
 * No description or value has a newline; single quotes and what a shell would interpret are escaped here.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/completion.h"

static bool is_verb(const struct completion_verb *verb, const char *name)
{
	return strcmp(verb->verb->name, name) == 0;
}

/* Writes a text for the inside of single quotes; special: characters that get a backslash. */
static void put_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		else if (strchr(special, *text))
			putchar('\\');
		putchar(*text);
	}
}

/* --- bash --- */

static void put_bash_verb(const struct completion_verb *verb)
{
	printf("\t%s)\n\t\toptions='", verb->verb->name);
	for (size_t i = 0; i < verb->count; i++)
		printf("%s--%s", i ? " " : "", verb->options[i].name);
	printf("'\n\t\tcase $before in\n");
	for (size_t i = 0; i < verb->count; i++) {
		const struct completion_option *option = &verb->options[i];

		if (option->argument == no_argument)
			continue;
		printf("\t\t--%s", option->name);
		if (option->letter)
			printf(" | -%c", option->letter);
		/* What may follow in the next word: with an optional argument nothing does but after "=". */
		if (option->argument == optional_argument)
			printf(") [ -z \"$joined\" ] || kind=text ;;\n");
		else if (option->values[0])
			printf(") kind=values values='%s' ;;\n", option->values);
		else
			printf(") kind=file ;;\n");
	}
	printf("\t\tesac\n\t\t;;\n");
}

static void put_verbs(const struct completion_verb *verbs_known)
{
	for (const struct completion_verb *verb = verbs_known; verb->verb; verb++)
		printf("%s%s", verb == verbs_known ? "" : " ", verb->verb->name);
}

static void print_bash(const struct completion_verb *verbs_known)
{
	printf("# bash completion for evprof, made by evprof completion bash\n"
	       "_evprof() {\n"
	       "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} joined= kind=trace "
	       "options= values= verbs='");
	put_verbs(verbs_known);
	printf("'\n"
	       "\tCOMPREPLY=()\n"
	       "\t# bash takes --name=value for three words.\n"
	       "\tif [ \"$word\" = = ]; then\n"
	       "\t\tword= joined=1\n"
	       "\telif [ \"$before\" = = ]; then\n"
	       "\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]} joined=1\n"
	       "\tfi\n"
	       "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$verbs help --help --version\" -- \"$word\"))\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tcase ${COMP_WORDS[1]} in\n");
	for (const struct completion_verb *verb = verbs_known; verb->verb; verb++)
		put_bash_verb(verb);
	printf("\tesac\n"
	       "\t[ \"$kind${COMP_WORDS[1]}\" = tracerun ] && kind=program\n"
	       "\t[ \"${COMP_WORDS[1]}\" = help ] && kind=values values=$verbs\n"
	       "\t[ \"$kind${COMP_WORDS[1]}\" = tracecompletion ] && kind=values values='bash zsh fish'\n"
	       "\tcase $kind:$word in\n"
	       "\tvalues:*) COMPREPLY=($(compgen -W \"$values\" -- \"$word\")) ;;\n"
	       "\ttext:*) ;;\n"
	       "\ttrace:-* | program:-*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
	       "\ttrace:*)\n"
	       "\t\tcompopt -o filenames 2>/dev/null\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -f -X '!*.evp' -- \"$word\"; compgen -d -- \"$word\")\n"
	       "\t\t;;\n"
	       "\tprogram:*)\n"
	       "\t\tcompopt -o filenames 2>/dev/null\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\"; [ -z \"$word\" ] || compgen -c -- \"$word\")\n"
	       "\t\t;;\n"
	       "\t*)\n"
	       "\t\tcompopt -o filenames 2>/dev/null\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
	       "\t\t;;\n"
	       "\tesac\n"
	       "}\n"
	       "complete -F _evprof evprof\n");
}

/* --- zsh --- */

static void put_zsh_description(const struct completion_option *option)
{
	putchar('[');
	put_quoted(option->description[0] ? option->description : option->name, "[]\\:");
	putchar(']');
	if (option->argument == no_argument)
		return;
	printf("%s%s:", option->argument == optional_argument ? "::" : ":", option->name);
	if (option->values[0])
		printf("(%s)", option->values);
	else if (option->argument == required_argument)
		printf("_files");
	else
		printf(" ");
}

static void put_zsh_verb(const struct completion_verb *verb)
{
	printf("\t%s)\n\t\t_arguments -s -S", verb->verb->name);
	for (size_t i = 0; i < verb->count; i++) {
		const struct completion_option *option = &verb->options[i];
		const char *equals = option->argument == required_argument   ? "="
				     : option->argument == optional_argument ? "=-"
									     : "";

		printf(" \\\n\t\t\t'*--%s%s", option->name, equals);
		put_zsh_description(option);
		putchar('\'');
		if (option->letter) {
			printf(" \\\n\t\t\t'*-%c%s", option->letter, option->argument == required_argument ? "+" : "");
			put_zsh_description(option);
			putchar('\'');
		}
	}
	if (is_verb(verb, "run"))
		printf(" \\\n\t\t\t'-m[run a module]:module: ' '-c[run code]:code: '"
		       " \\\n\t\t\t'(-)1:program:{_alternative \"commands:command:_command_names -e\" "
		       "\"files:script:_files\"}'"
		       " \\\n\t\t\t'*::argument:_normal'");
	else if (is_verb(verb, "completion"))
		printf(" \\\n\t\t\t'1:shell:(bash zsh fish)'");
	else
		printf(" \\\n\t\t\t'*:trace:_files -g \"*.evp(-.)\"'");
	printf("\n\t\t;;\n");
}

static void print_zsh(const struct completion_verb *verbs_known)
{
	printf("#compdef evprof\n"
	       "# zsh completion for evprof, made by evprof completion zsh\n"
	       "_evprof() {\n"
	       "\tlocal curcontext=$curcontext\n"
	       "\tif (( CURRENT == 2 )) || [[ $CURRENT$words[2] == 3help ]]; then\n"
	       "\t\tlocal -a known=(\n");
	for (const struct completion_verb *verb = verbs_known; verb->verb; verb++) {
		printf("\t\t\t'%s:", verb->verb->name);
		put_quoted(verb->verb->summary, "\\:");
		printf("'\n");
	}
	printf("\t\t\t'help:the options of a verb')\n"
	       "\t\t_describe verb known\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tshift words\n"
	       "\t(( CURRENT-- ))\n"
	       "\tcase $words[1] in\n");
	for (const struct completion_verb *verb = verbs_known; verb->verb; verb++)
		put_zsh_verb(verb);
	printf("\tesac\n"
	       "}\n"
	       "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
	       "\t_evprof \"$@\"\n"
	       "else\n"
	       "\tcompdef _evprof evprof\n"
	       "fi\n");
}

/* --- fish --- */

static void put_fish_option(const struct completion_verb *verb, const struct completion_option *option)
{
	printf("complete -c evprof -n '__evprof_verb %s' -l %s", verb->verb->name, option->name);
	if (option->letter)
		printf(" -s %c", option->letter);
	if (option->argument == required_argument)
		printf(option->values[0] ? " -x -a '%s'" : " -r -F", option->values);
	if (option->description[0]) {
		printf(" -d '");
		put_quoted(option->description, "\\");
		printf("'");
	}
	putchar('\n');
}

static void print_fish(const struct completion_verb *verbs_known)
{
	printf("# fish completion for evprof, made by evprof completion fish\n"
	       "function __evprof_verb\n"
	       "\tset -l words (commandline -opc)\n"
	       "\ttest (count $words) -gt 1; and test $words[2] = $argv[1]\n"
	       "end\n"
	       "function __evprof_no_verb\n"
	       "\tset -l words (commandline -opc)\n"
	       "\ttest (count $words) -eq 1; or test \"$words[2..-1]\" = help\n"
	       "end\n"
	       "function __evprof_traces\n"
	       "\tset -l word (commandline -ct)\n"
	       "\tfor path in $word*.evp $word*/\n"
	       "\t\techo $path\n"
	       "\tend\n"
	       "end\n"
	       "complete -c evprof -n 'test (count (commandline -opc)) -eq 1' -f -l version -d 'print the version'\n"
	       "complete -c evprof -n __evprof_no_verb -f -a help -d 'the options of a verb'\n");
	for (const struct completion_verb *verb = verbs_known; verb->verb; verb++) {
		const char *name = verb->verb->name;

		printf("complete -c evprof -n __evprof_no_verb -f -a %s -d '", name);
		put_quoted(verb->verb->summary, "\\");
		printf("'\n");
		if (is_verb(verb, "run"))
			printf("complete -c evprof -n '__evprof_verb run' -a '(__fish_complete_subcommand)'\n");
		else if (is_verb(verb, "completion"))
			printf("complete -c evprof -n '__evprof_verb completion' -f -a 'bash zsh fish'\n");
		else
			printf("complete -c evprof -n '__evprof_verb %s' -f -a '(__evprof_traces)'\n", name);
		for (size_t i = 0; i < verb->count; i++)
			put_fish_option(verb, &verb->options[i]);
	}
}

const struct completion_shell completion_shells[] = {
    {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}, {NULL, NULL}};
