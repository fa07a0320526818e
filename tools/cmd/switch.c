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

#include "cmd/switch.h"
#include "cmd/verbs.h"
#include "control/collectors.h"
#include "evprof/ring.h"
#include "util/cli.h"
#include "util/output.h"

#define HELP(usage, text, options)                                                                                     \
	"usage: evprof " usage "\n"                                                                                    \
	"\n" text "NAME is the program's, as in evprof status. Without one, and with all, all processes are asked.\n"  \
	"\n" options                                                                                                   \
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
	       "Stops the recording of running processes: they run as without evprof until evprof start.\n", "")},
  start = {"start", "recording",
	   HELP("start [options] [PID|NAME|all]",
		"Starts the recording of processes that evprof stop, EVPROF_START=0 or the program has stopped.\n",
		"      --events LIST    what is recorded from now on, also where recording was not stopped: as in\n"
		"                       EVPROF_EVENTS, without sample and malloc\n")},
  mark = {"mark", "marked",
	  HELP("mark [--socket SOCKET] MARK [PID|NAME|all]",
	       "Sets a mark in the traces of running processes, as evprof.mark() does.\n", "")};

/* An order, and what became of it. */
struct switching {
	const struct switch_order *order;
	size_t processes, followed, refused;
};

static json_t *new_message(const struct switch_order *order, const char *action)
{
	return json_pack("{s:s, s:s, s:s, s:s*}", "type", "switch", "target", order->target, "action", action, "name",
			 order->name);
}

static void print_refusal(const struct switch_order *order, const json_t *process, int pid, const char *program)
{
	if (json_is_true(json_object_get(process, "outside")))
		output_message(
		    "evprof %s: %d %s is sampled from outside: nothing in it could follow. Its sampling ends "
		    "with the evprof attach --sample that began it (Ctrl-C)",
		    order->verb, pid, program);
	else if (strcmp(order->action, "mark") == 0)
		output_message("evprof %s: the recording of %d %s is stopped, so it has no mark", order->verb, pid,
			       program);
	else
		output_message(
		    "evprof %s: %d %s keeps its events: it is sampled, has native allocations or a part of the "
		    "program only, or tracemalloc is on",
		    order->verb, pid, program);
}

static void print_process(const struct switch_order *order, const json_t *process)
{
	const char *program = json_string_value(json_object_get(process, "program"));
	char shown[256];
	int pid = (int)json_integer_value(json_object_get(process, "pid"));

	snprintf(shown, sizeof(shown), "%s", program ? program : "");
	if (json_is_true(json_object_get(process, "refused")))
		print_refusal(order, process, pid, shown);
	else if (json_is_true(json_object_get(process, "followed")) && order->done)
		output_message("evprof: %s %d %s", order->done, pid, shown);
	else if (json_is_true(json_object_get(process, "followed")))
		return;
	else if (json_is_true(json_object_get(process, "follows")))
		output_message("evprof %s: %d %s has not reacted yet: it does when its main thread leaves C code",
			       order->verb, pid, shown);
	else
		output_message("evprof %s: %d %s takes no signal for this; it reacts at its next import or open()",
			       order->verb, pid, shown);
}

/* A mark that a stopped recording does not have is none. */
static bool is_failure(const struct switch_order *order, const json_t *process)
{
	return json_is_true(json_object_get(process, "outside")) ||
	       (json_is_true(json_object_get(process, "refused")) && strcmp(order->action, "mark") != 0);
}

/* Counts the processes of the answers, and those that have followed. say: a line for each. */
static void read_answers(struct switching *switching, const struct control_collectors *collectors, bool say)
{
	const json_t *process;
	size_t k;

	switching->processes = switching->followed = switching->refused = 0;
	for (size_t i = 0; i < collectors->count; i++) {
		json_array_foreach(json_object_get(collectors->at[i].answer, "processes"), k, process)
		{
			switching->processes++;
			switching->followed += json_is_true(json_object_get(process, "followed"));
			switching->refused += is_failure(switching->order, process);
			if (say)
				print_process(switching->order, process);
		}
	}
}

/* Sends one request to the collectors. Returns the exit status. last: a line for each process. */
static int ask(struct switching *switching, const char *action, bool first, bool last)
{
	const struct switch_order *order = switching->order;
	struct control_collectors collectors;
	json_t *message = new_message(order, action);
	int status = CLI_FAILED;

	if (!message) {
		output_message("evprof %s: names are UTF-8", order->verb);
		return CLI_FAILED;
	}
	if (control_collectors_find(order->verb, order->socket, &collectors) == 0) {
		control_collectors_ask(&collectors, message, ANSWER_MS);
		status = CLI_FINE;
		if (first)
			status = control_collectors_complain(order->verb, &collectors);
		read_answers(switching, &collectors, last);
	}
	control_collectors_done(&collectors);
	json_decref(message);
	return status;
}

int switch_processes(const struct switch_order *order)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
	struct switching switching = {.order = order};
	int status = ask(&switching, order->action, true, false);

	if (status == CLI_FAILED)
		return status;
	if (!switching.processes) {
		output_message("evprof %s: no process %s is recorded; evprof status lists those that are", order->verb,
			       order->target);
		return CLI_FAILED;
	}
	for (unsigned i = 0; i < LOOKS && switching.followed < switching.processes; i++) {
		nanosleep(&pause, NULL);
		if (ask(&switching, "look", false, false) == CLI_FAILED)
			return CLI_FAILED;
	}
	ask(&switching, "look", false, true);
	if (switching.followed < switching.processes)
		return CLI_DAMAGED;
	if (!switching.refused)
		return status;
	return switching.refused < switching.processes ? CLI_DAMAGED : CLI_FAILED;
}

static bool take_mark(int argc, char **argv, const char **name)
{
	if (optind == argc || !*argv[optind] || strlen(argv[optind]) >= RING_REQUEST_NAME_BYTES)
		return cli_misused("mark", "a mark has a name of 1 to %u bytes", RING_REQUEST_NAME_BYTES - 1);
	*name = argv[optind++];
	return true;
}

struct options {
	const char *socket, *events;
};

static int cmd_switch(const struct action *action, const struct verb_option *known, int argc, char **argv)
{
	const struct verb_usage usage = {action->verb, known, {action->help}};
	struct options options = {0};
	int status = verb_parse(&usage, argc, argv, &options, NULL);
	struct switch_order order = {
	    .verb = action->verb, .action = action->verb, .done = action->done, .target = "all"};
	struct switch_order events = {.verb = action->verb, .action = "events"};

	if (status != VERB_PARSED)
		return status;
	if ((action == &mark && !take_mark(argc, argv, &order.name)) ||
	    !verb_take_target(action->verb, argc, argv, &order.target))
		return CLI_FAILED;
	order.socket = events.socket = options.socket;
	events.target = order.target;
	events.name = options.events;
	status = events.name ? switch_processes(&events) : CLI_FINE;
	return status == CLI_FAILED ? status : cli_status_worst(status, switch_processes(&order));
}

static const struct verb_option options_known[] = {VERB_TEXT("socket", 0, options, socket), VERB_OPTIONS_END};

int cmd_stop(int argc, char **argv)
{
	return cmd_switch(&stop, options_known, argc, argv);
}

int cmd_start(int argc, char **argv)
{
	static const struct verb_option known[] = {VERB_EVENTS(options), VERB_TEXT("socket", 0, options, socket),
						   VERB_OPTIONS_END};

	return cmd_switch(&start, known, argc, argv);
}

int cmd_mark(int argc, char **argv)
{
	return cmd_switch(&mark, options_known, argc, argv);
}
