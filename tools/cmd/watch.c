/*
 * watch.c - evprof watch: the calls of a trace that took longer than a bound, as they end. See slow/slow_calls.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "trace/labels.h"
#include "util/cli.h"
#include "util/output.h"
#include "slow/slow_calls.h"
#include "util/clock.h"

#define PAUSE_MS 150
#define OPEN_TRIES 40 /* a trace that has just begun may have no header yet */
#define SPARSE 8      /* lines of a trigger in its quiet time */

static const char help_text[] =
    "usage: evprof watch --trigger LIST [options] TRACE\n"
    "\n"
    "Prints a line for each call that took longer than a bound, as it ends, while the trace is being written: the\n"
    "number of the trigger in LIST, from 0, pid, thread, begin (ns of CLOCK_MONOTONIC), duration (ns) and function,\n"
    "with tabs between them. A collector runs it for EVPROF_TRIGGER; its other triggers have no lines here.\n"
    "\n"
    "      --trigger LIST    MODULE:FUNCTION>TIME, a call of a function (globs), or loop>TIME, a callback or a task's\n"
    "                        step of an event loop; several with commas: 'app.views:*>500ms,loop>200ms'\n"
    "      --sparse          a line of a trigger at most each eighth of its quiet time (quiet=60s in LIST)\n"
    "      --until-closed    end when standard input is closed; default: when the trace is no longer written\n"
    "      --user UID:GID    read the trace with the rights of this user\n"
    "\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read or the output not be written.\n";

struct request {
	const char *list, *user;
	bool sparse, until_closed;
	struct triggers triggers;
	uint64_t next_ns[TRIGGERS_MAX];
	int error; /* of the output */
};

static bool is_due(struct request *request, unsigned trigger)
{
	uint64_t now = request->sparse ? (uint64_t)time_ns(CLOCK_MONOTONIC) : 0;

	if (now < request->next_ns[trigger])
		return false;
	if (request->sparse)
		request->next_ns[trigger] = now + request->triggers.quiet_ns / SPARSE;
	return true;
}

/* What a terminal or a reader of lines could take for something else is replaced. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static void print_found(void *owner, const struct slow_call *found)
{
	struct request *request = owner;
	const struct trace_process *process = found->process;
	const struct trace_names *names = found->key & 1 ? &process->functions : &process->codes;
	char *name;

	if (!is_due(request, found->trigger))
		return;
	name = label_display(trace_name(names, found->key / 2), found->key & 1, found->key / 2);
	if (name)
		make_plain(name);
	if (printf("%u\t%lld\t%u\t%lld\t%llu\t%s\n", found->trigger, (long long)process->pid, found->thread->tid,
		   (long long)found->begin_ns, (unsigned long long)found->ns, name ? name : "?") < 0)
		request->error = errno ? -errno : -EIO;
	free(name);
}

/* Whether the end of the trace is to be waited for. */
static bool goes_on(const struct request *request, const struct trace *trace)
{
	struct pollfd closed = {.fd = STDIN_FILENO, .events = POLLIN};
	char ignored[64];

	if (!request->until_closed) {
		poll(NULL, 0, PAUSE_MS);
		return trace->damage.growing;
	}
	if (poll(&closed, 1, PAUSE_MS) <= 0)
		return true;
	return read(STDIN_FILENO, ignored, sizeof(ignored)) > 0;
}

/* Returns 0 or -errno. */
static int follow(struct request *request, struct trace *trace)
{
	struct slow_calls watch = {
	    .trace = trace, .triggers = &request->triggers, .found = print_found, .owner = request};
	bool more = true, last = false;
	int error = slow_calls_begin(&watch);

	while (!error && more) {
		error = slow_calls_next(&watch);
		if (!error && (fflush(stdout) || request->error))
			error = request->error ? request->error : -errno;
		if (error || last)
			break;
		last = !goes_on(request, trace);
		error = error ? error : trace_follow(trace);
	}
	slow_calls_done(&watch);
	return error;
}

/* For good. False after a line on stderr. */
static bool become(const char *user)
{
	unsigned uid, gid;
	char end;

	if (sscanf(user, "%u:%u%c", &uid, &gid, &end) != 2)
		return cli_misused("watch", "--user is UID:GID, not %s", user);
	if (!setgroups(0, NULL) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid))
		return true;
	output_message("evprof watch: cannot become user %s: %s", user, strerror(errno));
	return false;
}

/* Another user may not reach the folder: the file is opened first. NULL after a line on stderr. */
static struct trace *open_trace(const struct request *request, const char *path)
{
	int fd = request->user ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1, error = -EINVAL;
	struct trace *trace = NULL;
	char through[40], why[4600];

	if (request->user && !become(request->user))
		return NULL;
	snprintf(through, sizeof(through), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < OPEN_TRIES && error == -EINVAL; i++) {
		if (i)
			poll(NULL, 0, 25);
		error = trace_open(&trace, fd >= 0 ? through : path, why, sizeof(why));
		if (!request->until_closed)
			break;
	}
	if (error)
		output_message("evprof watch: %s", why);
	return error ? NULL : trace;
}

static int run_watch(struct request *request, const char *path)
{
	struct trace *trace = open_trace(request, path);
	bool followed;
	int error;

	if (!trace)
		return CLI_FAILED;
	followed = request->until_closed || trace->damage.growing;
	error = follow(request, trace);
	if (error && error != -EPIPE)
		output_message("evprof watch: %s", strerror(-error));
	if (!followed || (error && error != -EPIPE))
		return verb_close(trace, error == -EPIPE ? 0 : error);
	trace_close(trace);
	return CLI_FINE;
}

static bool take_list(struct request *request)
{
	const char *allowed = request->list && *request->list ? setting_triggers(request->list, &request->triggers)
							      : "needed, as in 'app.views:*>500ms'";

	return !allowed || cli_misused("watch", "--trigger is %s", allowed);
}

int cmd_watch(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("trigger", 0, request, list), VERB_FLAG("sparse", 0, request, sparse),
	    VERB_FLAG("until-closed", 0, request, until_closed), VERB_TEXT("user", 0, request, user), VERB_OPTIONS_END};
	static const struct verb_usage usage = {"watch", options_known, {help_text}};
	struct request request = {0};
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	if (optind + 1 != argc) {
		cli_misused("watch", "it takes one trace");
		return CLI_FAILED;
	}
	return take_list(&request) ? run_watch(&request, argv[optind]) : CLI_FAILED;
}
