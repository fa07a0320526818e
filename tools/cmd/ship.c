/*
 * ship.c - evprof ship: hands finished traces to a command, or to a store. ship/ship.c does it.
 */
#include "ship/ship.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "cmd/verbs.h"
#include "ship/put.h"
#include "util/output.h"

#define TIMEOUT_MS 600000
#define TRIES 10

static const char help_text[] =
    "usage: evprof ship [options] FOLDER COMMAND [ARGUMENT]...\n"
    "       evprof ship [options] FOLDER s3://BUCKET[/PREFIX]\n"
    "\n"
    "Hands each finished trace and snapshot of a folder, that of evprof-collector, to a command, the oldest first, "
    "until\n"
    "it ends with status 0. In its words {} is the path of the trace, {name} its name, {host} the host; without a {} "
    "the\n"
    "path is the last argument. What was shipped is noted in the folder, so a restart goes on.\n"
    "\n"
    "s3:// is an S3-compatible store, with the keys, region and endpoint of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,\n"
    "AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL. PREFIX has {name} and {host}; without {name} it is a folder.\n"
    "\n"
    "  -e, --pattern EXPRESSION  ship a copy without the texts that it matches, as evprof redact; may come again\n"
    "      --argv                a copy without the words of command lines and titles, as evprof redact\n"
    "      --retry S             seconds after the first failure; they double up to five minutes (default: 1)\n"
    "      --timeout S           seconds that a command, or a PUT, has (default: 600)\n"
    "      --once                end when all are shipped; a trace has ten tries\n"
    "      --until-closed        the same once standard input is closed\n"
    "\n"
    "Exit status: 0; 1 if traces are left, or were removed before they were shipped; 2 if the folder cannot be read,\n"
    "or the store cannot be used.\n";

struct request {
	struct ship_request ship;
	struct store store;
};

static bool take_pattern(void *owner, const struct verb_option *option, const char *value)
{
	struct request *request = owner;
	char why[128];
	const char *wrong = redact_add(&request->ship.redact, value, why, sizeof(why));

	(void)option;
	return !wrong || cli_misused("ship", "the expression \"%s\" cannot be used: %s", value, wrong);
}

static const struct verb_option options_known[] = {
    VERB_TAKE("pattern", 'e', required_argument, take_pattern, 0),
    VERB_FLAG("argv", 0, request, ship.redact.arguments),
    VERB_TAKE("retry", 0, required_argument, verb_take_interval, offsetof(struct request, ship.retry_ms)),
    VERB_TAKE("timeout", 0, required_argument, verb_take_interval, offsetof(struct request, ship.timeout_ms)),
    VERB_FLAG("once", 0, request, ship.once),
    VERB_FLAG("until-closed", 0, request, ship.until_closed),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"ship", options_known, {help_text}};

/* The words after the options. Returns whether they can be used, or prints a line. */
static bool take_words(struct request *request, char **words)
{
	const char *wrong;

	if (!words[0] || !words[1])
		return cli_misused("ship", "FOLDER COMMAND is missing");
	request->ship.folder = words[0];
	request->ship.command = words + 1;
	if (!store_is_named(words[1]))
		return true;
	if (words[2])
		return cli_misused("ship", "a store is one word, and has no arguments");
	request->ship.store = &request->store;
	wrong = store_open(&request->store, words[1]);
	if (!wrong)
		wrong = put_open();
	if (wrong)
		output_message("evprof ship: %s", wrong);
	return !wrong;
}

int cmd_ship(int argc, char **argv)
{
	struct request request = {.ship = {.retry_ms = 1000, .timeout_ms = TIMEOUT_MS, .tries = TRIES}};
	int status;

	setenv("POSIXLY_CORRECT", "1", 1); /* options after the folder are the command's */
	status = verb_parse(&usage, argc, argv, &request, NULL);
	unsetenv("POSIXLY_CORRECT");
	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		umask(077); /* only the owner may read the contents of a trace */
		if (take_words(&request, argv + optind))
			status = ship(&request.ship);
	}
	store_done(&request.store);
	redact_done(&request.ship.redact);
	return status;
}
