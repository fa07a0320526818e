/*
 * switch.c - evprof stop, start and mark: what running processes are asked from outside.
 *
 * The collector passes the request on, and the process follows it at its next instruction of Python. So the verb asks
 * until all have followed, within a bound.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/verbs.h"
#include "control/collectors.h"
#include "evprof/ring.h"
#include "util/cli.h"
#include "util/output.h"

#define HELP(usage, text)                                                                                              \
	"usage: evprof " usage "\n"                                                                                    \
	"\n" text "NAME is the program's, as in evprof status. Without one, and with all, all processes are asked.\n"  \
	"\n"                                                                                                           \
	"      --socket SOCKET  ask the collector at this socket (default: EVPROF_SOCKET, or else all of the "         \
	"user's)\n"                                                                                                    \
	"\n"                                                                                                           \
	"Exit status: 0; 1 if a process or a collector did not react; 2 if there is no collector, or no such "         \
	"process.\n"

#define ANSWER_MS 5000
#define LOOKS 60
#define LOOK_EVERY_NS 50000000

static const struct action {
	const char *verb; /* and the action of the request */
	const char *done;
	const char *help;
} stop = {"stop", "stopped",
	  HELP("stop [--socket SOCKET] [PID|NAME|all]",
	       "Stops the recording of running processes: they run as without evprof until evprof start.\n")},
  start = {"start", "recording",
	   HELP("start [--socket SOCKET] [PID|NAME|all]",
		"Starts the recording of processes that evprof stop, EVPROF_START=0 or the program has stopped.\n")},
  mark = {"mark", "marked",
	  HELP("mark [--socket SOCKET] MARK [PID|NAME|all]",
	       "Sets a mark in the traces of running processes, as evprof.mark() does.\n")};

struct switching {
	const struct action *action;
	const char *socket;
	const char *target;
	const char *mark;
	size_t processes, followed;
};

static json_t *new_message(const struct switching *switching, const char *action)
{
	return json_pack("{s:s, s:s, s:s, s:s*}", "type", "switch", "target", switching->target, "action", action,
			 "name", switching->mark);
}

static void print_process(const struct switching *switching, const json_t *process)
{
	const char *program = json_string_value(json_object_get(process, "program"));
	char shown[256];
	int pid = (int)json_integer_value(json_object_get(process, "pid"));

	snprintf(shown, sizeof(shown), "%s", program ? program : "");
	if (json_is_true(json_object_get(process, "refused")))
		output_message("evprof mark: the recording of %d %s is stopped, so it has no mark", pid, shown);
	else if (json_is_true(json_object_get(process, "followed")))
		output_message("evprof: %s %d %s", switching->action->done, pid, shown);
	else if (json_is_true(json_object_get(process, "follows")))
		output_message("evprof %s: %d %s has not reacted yet: it does when its main thread leaves C code",
			       switching->action->verb, pid, shown);
	else
		output_message("evprof %s: %d %s takes no signal for this; it reacts at its next import or open()",
			       switching->action->verb, pid, shown);
}

/* Counts the processes of the answers, and those that have followed. say: a line for each. */
static void read_answers(struct switching *switching, const struct control_collectors *collectors, bool say)
{
	const json_t *process;
	size_t k;

	switching->processes = switching->followed = 0;
	for (size_t i = 0; i < collectors->count; i++) {
		json_array_foreach(json_object_get(collectors->at[i].answer, "processes"), k, process)
		{
			switching->processes++;
			switching->followed += json_is_true(json_object_get(process, "followed"));
			if (say)
				print_process(switching, process);
		}
	}
}

/* Sends one request to the collectors. Returns the exit status. last: a line for each process. */
static int ask(struct switching *switching, const char *action, bool first, bool last)
{
	struct control_collectors collectors;
	json_t *message = new_message(switching, action);
	int status = CLI_FAILED;

	if (!message) {
		output_message("evprof %s: names are UTF-8", switching->action->verb);
		return CLI_FAILED;
	}
	if (control_collectors_find(switching->action->verb, switching->socket, &collectors) == 0) {
		control_collectors_ask(&collectors, message, ANSWER_MS);
		status = CLI_FINE;
		if (first)
			status = control_collectors_complain(switching->action->verb, &collectors);
		read_answers(switching, &collectors, last);
	}
	control_collectors_done(&collectors);
	json_decref(message);
	return status;
}

static int run_switch(struct switching *switching)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
	int status = ask(switching, switching->action->verb, true, false);

	if (status == CLI_FAILED)
		return status;
	if (!switching->processes) {
		output_message("evprof %s: no process %s is recorded; evprof status lists those that are",
			       switching->action->verb, switching->target);
		return CLI_FAILED;
	}
	for (unsigned i = 0; i < LOOKS && switching->followed < switching->processes; i++) {
		nanosleep(&pause, NULL);
		if (ask(switching, "look", false, false) == CLI_FAILED)
			return CLI_FAILED;
	}
	ask(switching, "look", false, true);
	return switching->followed < switching->processes ? CLI_DAMAGED : status;
}

static int cmd_switch(const struct action *action, int argc, char **argv)
{
	static const struct verb_option options_known[] = {VERB_TEXT("socket", 0, switching, socket), VERB_OPTIONS_END};
	const struct verb_usage usage = {action->verb, options_known, {action->help}};
	struct switching switching = {.action = action, .target = "all"};
	int status = verb_parse(&usage, argc, argv, &switching, NULL);

	if (status != VERB_PARSED)
		return status;
	if (action == &mark) {
		if (optind == argc || !*argv[optind] || strlen(argv[optind]) >= RING_REQUEST_NAME_BYTES) {
			cli_misused(action->verb, "a mark has a name of 1 to %u bytes", RING_REQUEST_NAME_BYTES - 1);
			return CLI_FAILED;
		}
		switching.mark = argv[optind++];
	}
	return verb_take_target(action->verb, argc, argv, &switching.target) ? run_switch(&switching) : CLI_FAILED;
}

int cmd_stop(int argc, char **argv)
{
	return cmd_switch(&stop, argc, argv);
}

int cmd_start(int argc, char **argv)
{
	return cmd_switch(&start, argc, argv);
}

int cmd_mark(int argc, char **argv)
{
	return cmd_switch(&mark, argc, argv);
}
