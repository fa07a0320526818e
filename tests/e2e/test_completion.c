/*
 * test_completion.c - evprof completion, as somebody at a terminal meets it: programs/complete.py types into a real
 * bash, zsh and fish. What is completed is what the verbs take.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void expect_typed(const char *shell)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"sh", "-c", text("command -v %s", shell)});

	if (outcome->status != 0)
		cr_skip_test("%s is not here", shell);
	/* Each line waits for the shell; on a busy machine for long. */
	outcome = run(.python = python_any(), .how = JOB_BARE, .timeout_s = 300,
		      .args = {"@complete.py", shell, build_path("evprof")});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, " lines"), "%s completes: %s", shell,
	       outcome->out);
}

SCENARIO(completion, bash, SCENARIO_ONCE)
{
	(void)python;
	expect_typed("bash");
}

SCENARIO(completion, zsh, SCENARIO_ONCE)
{
	(void)python;
	expect_typed("zsh");
}

SCENARIO(completion, fish, SCENARIO_ONCE)
{
	(void)python;
	expect_typed("fish");
}

/* The verb and the option of a line of fish's script, and its values; false: it has none. */
static bool parse_line(char *line, char **verb, char **option, char **values)
{
	char *at = strstr(line, "__evprof_verb "), *name = strstr(line, " -l "), *list = strstr(line, " -x -a '");

	if (!at || !name || !list)
		return false;
	*verb = strsep(&(char *){at + strlen("__evprof_verb ")}, "'");
	*option = strsep(&(char *){name + strlen(" -l ")}, " ");
	*values = strsep(&(char *){list + strlen(" -x -a '")}, "'");
	return true;
}

/* Runs the verb with the option. --help ends it once it has taken the option, but for a weight, which wants a trace. */
static int take(const char *verb, const char *option, const char *value, const char *trace)
{
	if (strcmp(option, "weight") == 0)
		return tool(verb, "--format", "folded", "--weight", value, "-o", "/dev/null", trace)->status;
	return tool(verb, text("--%s", option), value, "--help")->status;
}

/* Each value that is offered is one, and a word that is not offered is none. */
SCENARIO(completion, values, SCENARIO_ONCE)
{
	struct outcome *recorded = run(.python = python_any(), .how = JOB_RUN, .args = {"-c", "pass"});
	struct outcome *script = tool("completion", "fish");
	char *rest = script->out, *line, *verb, *option, *values, *value;
	int options = 0;

	(void)python;
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (!parse_line(line, &verb, &option, &values))
			continue;
		while ((value = strsep(&values, " ")) != NULL)
			expect(script, take(verb, option, value, recorded->trace) == 0, "%s --%s %s", verb, option,
			       value);
		expect(script, take(verb, option, "nonsense", recorded->trace) != 0, "%s --%s takes not everything",
		       verb, option);
		options++;
	}
	expect(script, options >= 10, "values of ten options or more, not %d", options);
}

/* The options of a line of --help, which stand before its text. Returns how many they are. */
static int expect_completed(const struct outcome *script, const char *verb, char *line)
{
	char *at = line + strspn(line, " "), *end = strstr(at, "  "), name[64];
	int options = 0;

	if (at == line || *at != '-')
		return 0;
	if (end)
		*end = '\0';
	for (; (at = strstr(at, "--")) && sscanf(at, "--%63[a-z-]", name) == 1; at += strlen("--")) {
		expect(script, strstr(script->out, text("'__evprof_verb %s' -l %s ", verb, name)),
		       "--%s of %s is completed", name, verb);
		options++;
	}
	return options;
}

/* The options that --help names are those that are completed. */
SCENARIO(completion, options, SCENARIO_ONCE)
{
	static const char *const verbs[] = {"run",    "status", "top",	    "watch",  "serve",	"push",	  "stop",
					    "start",  "mark",	"snapshot", "stack",  "record", "attach", "detach",
					    "report", "tree",	"memory",   "info",   "dump",	"export", "annotate",
					    "diff",   "check",	"cut",	    "redact", "ship"};
	struct outcome *script = tool("completion", "fish");

	(void)python;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		struct outcome *help = tool(verbs[i], "--help");
		char *rest = help->out, *line;
		int options = 0;

		while ((line = strsep(&rest, "\n")) != NULL)
			options += expect_completed(script, verbs[i], line);
		expect(help, options > 0, "%s has options", verbs[i]);
	}
}

SCENARIO(completion, mistakes, SCENARIO_ONCE)
{
	struct outcome *result = tool("completion", "csh");

	(void)python;
	expect(result, result->status == 2 && strstr(result->err, "bash, zsh and fish"), "another shell");
	expect(result, tool("completion")->status == 2, "no shell");
	expect(result, tool("completion", "bash", "zsh")->status == 2, "two shells");
}
