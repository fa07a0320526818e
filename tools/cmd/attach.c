/*
 * attach.c - evprof attach and evprof detach: recording of a Python that was started without evprof.
 *
 * The library joins the collector of --socket or EVPROF_SOCKET, or a private one that is started here, as this user,
 * and ends with the recording. Where the process is in another network namespace, that one listens at a path in
 * its /tmp.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/folder.h"
#include "cmd/sample.h"
#include "cmd/verbs.h"
#include "control/collectors.h"
#include "evprof/control.h"
#include "evprof/network.h"
#include "evprof/settings.h"
#include "run/places.h"
#include "run/session.h"
#include "stack/started.h"
#include "util/cli.h"
#include "util/output.h"

static const char attach_help[] =
    "usage: evprof attach [options] PID\n"
    "\n"
    "Records a running Python, 3.6 or later, that was started without evprof. Its threads, greenlets and tasks are\n"
    "recorded from the functions on that they are in. Processes that it starts by exec are not. Recording ends with\n"
    "evprof detach PID, with --for, or with the process.\n"
    "\n"
    "  -o, --output FILE   the trace to write (default: evprof-PID.evp)\n"
    "      --for TIME      wait, then detach: 10s, 500ms, 2m\n"
    "      --events LIST   what is recorded (default: call,c_call,exception,mem), as in EVPROF_EVENTS\n"
    "      --keep LIMIT    keep the last stretch only: 30s, 256M; see evprof snapshot\n"
    "      --include LIST, --exclude LIST\n"
    "                      record some functions only, as EVPROF_INCLUDE and EVPROF_EXCLUDE\n"
    "      --sample[=RATE] sample stacks RATE times a second (default: 100) from outside: nothing is loaded into the\n"
    "                      process, and it is not stopped. Its children are not sampled. Ends with --for, Ctrl-C,\n"
    "                      or the process\n"
    "      --socket SOCKET join the collector at this socket (default: EVPROF_SOCKET, or a private one)\n"
    "      --wait TIME     for the process to follow, which it does at its next instruction of Python (default: 10s);\n"
    "                      after that it is not recorded\n"
    "  -q, --quiet         print errors only\n"
    "\n"
    "Needs the right to trace the process: its user's or root's. Until Python 3.13 its main thread is stopped for "
    "less\n"
    "than a millisecond (ptrace); later ones take the request themselves (as from sys.remote_exec).\n"
    "\n"
    "Exit status: 0; 2 if the process is not recorded.\n";

static const char detach_help[] =
    "usage: evprof detach [options] PID\n"
    "\n"
    "Ends the recording of a process and takes evprof's hooks off, after which it runs as before. The library stays\n"
    "in its memory and does nothing; evprof attach may follow.\n"
    "\n"
    "      --socket SOCKET  the collector that has it, for the name of the trace (default: EVPROF_SOCKET, or any)\n"
    "      --wait TIME      for the process to follow, which it does at its next instruction of Python (default: 10s)\n"
    "  -q, --quiet          print errors only\n"
    "\n"
    "Exit status: 0; 2 if the process is still recorded, or was not.\n";

#define WAIT_MS_DEFAULT 10000
#define TIME_MS_MAX 1000000000
#define ANSWER_MS 5000
#define COLLECTOR_END_MS 60000

struct attaching {
	const char *verb;
	const char *output, *events, *keep, *include, *exclude, *socket, *duration, *wait;
	uint32_t sample_rate; /* 0: the library records */
	bool quiet;
	int64_t for_ms; /* 0: until evprof detach */
	int64_t wait_ms;
	struct target target;
	int process;		       /* its pidfd; -1: none */
	int collector;		       /* a pidfd of the one that records the process; -1: not known */
	char at[CONTROL_SOCKET_BYTES]; /* its socket */
	char trace[PATH_MAX];
	bool off;	 /* the collector writes no trace, or recording is stopped */
	char error[512]; /* why it writes none; "": not known */
	struct run_places places;
	int hold;	       /* of the session of another user's process, until that joins; -1: none */
	struct folder meeting; /* of the socket; fd -1: it has an abstract name */
};

/* --- the command line --- */

static bool parse_time(const char *verb, const char *option, const char *text, int64_t *ms)
{
	int64_t ns;

	if (!filter_duration(verb, option, text, &ns))
		return false;
	*ms = ns / 1000000;
	return (*ms > 0 && *ms <= TIME_MS_MAX) || cli_misused(verb, "%s is 1ms to 1000000s, not %s", option, text);
}

static bool parse_pid(const struct attaching *attaching, int argc, char **argv, pid_t *pid)
{
	int64_t number;

	if (optind + 1 != argc)
		return cli_misused(attaching->verb, "one process, by its PID");
	if (!cli_number(attaching->verb, "PID", argv[optind], 1, &number))
		return false;
	*pid = number < INT_MAX ? (pid_t)number : INT_MAX;
	return true;
}

static bool parse_times(struct attaching *attaching)
{
	attaching->wait_ms = WAIT_MS_DEFAULT;
	if (attaching->wait && !parse_time(attaching->verb, "--wait", attaching->wait, &attaching->wait_ms))
		return false;
	return !attaching->duration || parse_time(attaching->verb, "--for", attaching->duration, &attaching->for_ms);
}

static bool check_keep(const struct attaching *attaching)
{
	struct setting_keep keep;
	const char *allowed = attaching->keep ? setting_keep(attaching->keep, &keep) : NULL;

	return !allowed ||
	       cli_misused(attaching->verb, "--keep %s is not understood; allowed: %s", attaching->keep, allowed);
}

/* --- settings --- */

static bool add_setting(char *text, size_t size, const char *name, const char *value)
{
	size_t used = strlen(text);

	if (!value)
		return true;
	return !strchr(value, '\n') && (size_t)snprintf(text + used, size - used, "%s=%s\n", name, value) < size - used;
}

/* The library's working directory is the process's, so paths are made absolute here. */
static bool absolute_path(const char *path, char out[PATH_MAX])
{
	char directory[PATH_MAX];

	if (path[0] == '/' || path[0] == '@')
		return (size_t)snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
	return getcwd(directory, sizeof(directory)) &&
	       (size_t)snprintf(out, PATH_MAX, "%s/%s", directory, path) < PATH_MAX;
}

/* The host's collector; NULL: a private one. */
static const char *socket_of(const struct attaching *attaching)
{
	const char *socket = attaching->socket ? attaching->socket : getenv(ENV_SOCKET);

	return socket && *socket ? socket : NULL;
}

static bool output_path(const struct attaching *attaching, pid_t pid, char output[PATH_MAX])
{
	char name[64];

	snprintf(name, sizeof(name), "evprof-%d.evp", (int)pid);
	return absolute_path(attaching->output ? attaching->output : name, output);
}

static bool write_settings(const struct attaching *attaching, const char *session, char settings[ATTACH_SETTINGS_BYTES])
{
	const char *socket = socket_of(attaching);
	char output[PATH_MAX], at[PATH_MAX];

	settings[0] = 0;
	if (!output_path(attaching, attaching->target.pid, output) || (socket && !absolute_path(socket, at)))
		return false;
	return add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_OUTPUT, output) &&
	       add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_SOCKET, socket ? at : NULL) &&
	       add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_SESSION, session) &&
	       add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_EVENTS, attaching->events) &&
	       add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_KEEP, attaching->keep) &&
	       add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_INCLUDE, attaching->include) &&
	       add_setting(settings, ATTACH_SETTINGS_BYTES, ENV_EXCLUDE, attaching->exclude);
}

/* --- the two requests --- */

static int find_target(struct attaching *attaching, pid_t pid)
{
	char why[512];

	/* Before it is looked at: the number may be another's afterwards. */
	if (attaching->process < 0)
		attaching->process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (target_find(&attaching->target, pid, why, sizeof(why)) == 0)
		return 0;
	output_message("evprof %s: %s", attaching->verb, why);
	return -1;
}

static int ask(const struct attaching *attaching, const char *verb, const char *settings)
{
	struct attach_request request = {
	    .verb = verb, .settings = settings, .process = attaching->process, .wait_ms = (int)attaching->wait_ms};
	char why[640];
	int r = 0;

	/* The one that is loaded, wherever it came from: another file would be a second library. */
	request.library = attaching->target.has_library ? attaching->target.library : attaching->places.library;
	if (!attaching->target.runtime) /* 3.6 */
		r = started_wait(attaching->target.pid, request.wait_ms, why, sizeof(why));
	if (r == 0)
		r = attach_ask(&attaching->target, &request, why, sizeof(why));
	if (r < 0)
		output_message("evprof %s: %s", attaching->verb, why);
	return r;
}

/* Nothing where the object has no such text. */
static void copy_text(char *out, size_t size, const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	if (text)
		snprintf(out, size, "%s", text);
}

static void take_recording(struct attaching *attaching, const struct control_collector *collector,
			   const json_t *process)
{
	const char *how = json_string_value(json_object_get(process, "recording"));

	if (attaching->collector < 0 && collector->pid)
		attaching->collector = (int)syscall(SYS_pidfd_open, collector->pid, 0);
	snprintf(attaching->at, sizeof(attaching->at), "%s", collector->socket);
	copy_text(attaching->trace, sizeof(attaching->trace), process, "trace");
	attaching->error[0] = 0;
	copy_text(attaching->error, sizeof(attaching->error), process, "error");
	attaching->off = how && strcmp(how, "off") == 0;
}

/* Finds the collector and the trace of the process. False: no collector has it. */
static bool find_recording(struct attaching *attaching)
{
	json_t *message = json_pack("{s:s}", "type", "status"), *process;
	struct control_collectors collectors = {0};
	bool found = false;
	size_t k;

	if (message && control_collectors_find(attaching->verb, attaching->socket, &collectors) == 0) {
		control_collectors_ask(&collectors, message, ANSWER_MS);
		for (size_t i = 0; i < collectors.count; i++) {
			json_array_foreach(json_object_get(collectors.at[i].answer, "processes"), k, process)
			{
				if (json_integer_value(json_object_get(process, "pid")) != attaching->target.pid)
					continue;
				found = true;
				take_recording(attaching, &collectors.at[i], process);
			}
		}
	}
	control_collectors_done(&collectors);
	json_decref(message);
	return found;
}

/* The collector of a daemon's socket goes on; a private one ends once the trace is complete. */
static void wait_for_trace(const struct attaching *attaching)
{
	struct pollfd wait = {.fd = attaching->collector, .events = POLLIN};

	if (attaching->collector >= 0 && !socket_of(attaching))
		poll(&wait, 1, COLLECTOR_END_MS);
}

/* Sleeps, until the time is over, the process has ended, or the user interrupts. */
static void wait_for(const struct attaching *attaching)
{
	for (int64_t left = attaching->for_ms; left > 0 && !cli_interrupted; left -= 50) {
		if (attach_has_ended(attaching->process))
			return;
		nanosleep(&(struct timespec){.tv_nsec = (left < 50 ? left : 50) * 1000000}, NULL);
	}
}

/* Removes the socket of a collector in the process's /tmp. */
static void remove_meeting(struct attaching *attaching)
{
	if (attaching->meeting.fd >= 0 || folder_find(&attaching->meeting, &attaching->target, attaching->at) == 0)
		folder_remove(&attaching->meeting);
}

/* Asks the process to detach. Returns once its trace is complete: 0, or -1 after a line. */
static int leave(struct attaching *attaching)
{
	cli_interrupted = 0; /* it ended the wait for --for; another one ends this wait */
	if (ask(attaching, "detach", "") < 0)
		return -1;
	wait_for_trace(attaching);
	remove_meeting(attaching);
	return 0;
}

static int detach(struct attaching *attaching)
{
	bool known;

	if (find_target(attaching, attaching->target.pid) < 0)
		return CLI_FAILED;
	known = find_recording(attaching);
	if (!attaching->target.has_library) {
		output_message(known ? "evprof detach: process %d is sampled from outside, which ends with the evprof "
				       "attach --sample that began it (Ctrl-C)"
				     : "evprof detach: process %d is not recorded",
			       (int)attaching->target.pid);
		return CLI_FAILED;
	}
	if (leave(attaching) < 0)
		return CLI_FAILED;
	if (!attaching->quiet && known && attaching->trace[0])
		output_message("evprof: detached from %d %s; show it with: evprof report %s",
			       (int)attaching->target.pid, attaching->target.program, attaching->trace);
	else if (!attaching->quiet)
		output_message("evprof: detached from %d %s", (int)attaching->target.pid, attaching->target.program);
	return CLI_FINE;
}

/* A private collector takes processes of other users once it knows their session. 0, or -1 after a line. */
static int hold_session(struct attaching *attaching, const char *id, const char *socket)
{
	char output[PATH_MAX];

	if (geteuid() == attaching->target.user)
		return 0;
	attaching->hold = output_path(attaching, attaching->target.pid, output) ? run_session_hold(id, socket, output)
										: -ENAMETOOLONG;
	if (attaching->hold >= 0)
		return 0;
	output_message("evprof attach: no collector answers at %s: %s", socket, strerror(-attaching->hold));
	return -1;
}

/* Starts a private collector where the process reaches it. session: for EVPROF_SESSION. 0, or -1 after a line. */
static int start_collector(struct attaching *attaching, char *session, size_t bytes)
{
	char id[CONTROL_SESSION_DIGITS + 1], name[128], there[128];
	bool meets = !attaching->target.same_network;
	int r = run_session_id(id);

	network_name(name);
	snprintf(there, sizeof(there), "%s", name);
	if (r == 0 && meets) {
		r = folder_make(&attaching->meeting, &attaching->target);
		snprintf(there, sizeof(there), "%s/" FOLDER_SOCKET, attaching->meeting.path);
	}
	if (r < 0) {
		output_message("evprof attach: cannot make a socket for process %d: %s", (int)attaching->target.pid,
			       strerror(-r));
		return -1;
	}
	snprintf(session, bytes, "%s:%d:0:%s", id, (int)attaching->target.own_pid, there);
	r = run_collector_start(meets ? folder_listen(&attaching->meeting) : run_socket_listen(name), there,
				attaching->places.collector);
	if (meets)
		snprintf(name, sizeof(name), "%s/" FOLDER_SOCKET, attaching->meeting.here);
	return r < 0 ? r : hold_session(attaching, id, name);
}

static int ask_to_attach(struct attaching *attaching)
{
	char settings[ATTACH_SETTINGS_BYTES], session[256];
	bool private = !socket_of(attaching);
	int r;

	if (private && start_collector(attaching, session, sizeof(session)) < 0)
		return -1;
	if (!write_settings(attaching, private ? session : NULL, settings)) {
		output_message("evprof attach: the options are too long, or have a line break");
		return -1;
	}
	r = ask(attaching, "attach", settings);
	if (attaching->hold >= 0)
		close(attaching->hold); /* the process has joined */
	attaching->hold = -1;
	return r;
}

/* The process has joined, and no collector writes its trace: it is left as it was. */
static int give_up(struct attaching *attaching, bool found)
{
	if (found)
		output_message("evprof attach: process %d is not recorded: %s", (int)attaching->target.pid,
			       attaching->error[0] ? attaching->error : "its collector writes no trace");
	else
		output_message("evprof attach: process %d joined a collector that does not have it; its stderr has the "
			       "reason. In a user namespace of its own, attach as its user",
			       (int)attaching->target.pid);
	if (find_target(attaching, attaching->target.pid) == 0)
		leave(attaching);
	remove_meeting(attaching);
	return CLI_FAILED;
}

static int attach(struct attaching *attaching)
{
	char output[PATH_MAX];
	/* Of a private collector. What a name with %p and the like becomes, only the collector knows. */
	bool known =
	    !socket_of(attaching) && output_path(attaching, attaching->target.pid, output) && !strchr(output, '%');
	bool found;

	if (known && !verb_can_write(attaching->verb, output))
		return CLI_FAILED;
	if (run_places_find(&attaching->places) < 0)
		return CLI_FAILED;
	cli_catch_interrupt(); /* from here on it ends what has begun */
	if (ask_to_attach(attaching) < 0) {
		folder_remove(&attaching->meeting); /* nobody joins its collector, which ends by itself */
		return CLI_FAILED;
	}
	found = find_recording(attaching);
	if (!found || attaching->off)
		return give_up(attaching, found);
	/* JSON has no path that is not UTF-8; a private collector writes to the one that was asked for. */
	if (!attaching->trace[0] && known)
		snprintf(attaching->trace, sizeof(attaching->trace), "%s", output);
	if (!attaching->quiet)
		output_message("evprof: recording %d %s%s%s%s%d", (int)attaching->target.pid, attaching->target.program,
			       attaching->trace[0] ? " in " : "", attaching->trace,
			       attaching->for_ms ? "; it ends by itself, or with: evprof detach "
						 : "; it ends with: evprof detach ",
			       (int)attaching->target.pid);
	if (!attaching->for_ms)
		return CLI_FINE;
	wait_for(attaching);
	if (attach_has_ended(attaching->process)) {
		wait_for_trace(attaching);
		return CLI_FINE;
	}
	return detach(attaching);
}

static bool take_sample(void *request, const struct verb_option *option, const char *value)
{
	struct attaching *attaching = request;
	const char *allowed = value ? setting_sample_rate(value, &attaching->sample_rate) : NULL;

	(void)option;
	if (!value)
		attaching->sample_rate = SAMPLING_RATE_DEFAULT;
	return !allowed || cli_misused("attach", "--sample %s is not understood; allowed: %s", value, allowed);
}

static int sample(const struct attaching *attaching, pid_t pid)
{
	struct run_places places;
	char output[PATH_MAX];
	int status = CLI_FAILED;

	if (attaching->events || attaching->keep || attaching->include || attaching->exclude) {
		cli_misused("attach", "--sample goes without --events, --keep, --include and --exclude");
		return CLI_FAILED;
	}
	if (!output_path(attaching, pid, output))
		output_message("evprof attach: the path of the trace is too long");
	else if (run_places_find(&places) == 0) {
		status = sample_process(&(const struct sample_request){.pid = pid,
								       .rate = attaching->sample_rate,
								       .socket = socket_of(attaching),
								       .output = output,
								       .program = places.collector,
								       .for_ms = attaching->for_ms,
								       .quiet = attaching->quiet});
		run_places_done(&places, 0);
	}
	return status;
}

static int parse(struct attaching *attaching, const struct verb_usage *usage, int argc, char **argv)
{
	int status = verb_parse(usage, argc, argv, attaching, NULL);
	pid_t pid = 0;

	if (status != VERB_PARSED)
		return status;
	if (!parse_pid(attaching, argc, argv, &pid) || !parse_times(attaching) || !check_keep(attaching))
		return CLI_FAILED;
	if (attaching->sample_rate)
		return sample(attaching, pid);
	if (find_target(attaching, pid) < 0)
		return CLI_FAILED;
	return VERB_PARSED;
}

int cmd_attach(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("output", 'o', attaching, output),
	    VERB_TEXT("for", 0, attaching, duration),
	    VERB_EVENTS(attaching),
	    VERB_TEXT("keep", 0, attaching, keep),
	    VERB_TEXT("include", 0, attaching, include),
	    VERB_TEXT("exclude", 0, attaching, exclude),
	    VERB_TAKE("sample", 0, optional_argument, take_sample, 0),
	    VERB_TEXT("socket", 0, attaching, socket),
	    VERB_TEXT("wait", 0, attaching, wait),
	    VERB_FLAG("quiet", 'q', attaching, quiet),
	    VERB_OPTIONS_END,
	};
	static const struct verb_usage usage = {"attach", options_known, {attach_help}};
	struct attaching attaching = {.verb = "attach", .process = -1, .collector = -1, .hold = -1, .meeting.fd = -1};
	int status = parse(&attaching, &usage, argc, argv);

	return status == VERB_PARSED ? attach(&attaching) : status;
}

int cmd_detach(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("socket", 0, attaching, socket),
	    VERB_TEXT("wait", 0, attaching, wait),
	    VERB_FLAG("quiet", 'q', attaching, quiet),
	    VERB_OPTIONS_END,
	};
	static const struct verb_usage usage = {"detach", options_known, {detach_help}};
	struct attaching attaching = {.verb = "detach", .process = -1, .collector = -1, .hold = -1, .meeting.fd = -1};
	int status = parse(&attaching, &usage, argc, argv);

	return status == VERB_PARSED ? detach(&attaching) : status;
}
