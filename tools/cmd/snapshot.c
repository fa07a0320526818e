/*
 * snapshot.c - evprof snapshot: what is recorded of running processes, as a trace of its own.
 *
 * The collector writes what it has, and holds the file (evprof/control.h). Reading and copying is done here, as evprof
 * cut does it, so the programs and their collector go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/snapshot.h"
#include "cmd/verbs.h"
#include "control/collectors.h"
#include "cut/cut.h"
#include "evprof/control.h"
#include "evprof/proc.h"
#include "util/cli.h"
#include "util/output.h"

static const char help_text[] =
    "usage: evprof snapshot [options] [PID|NAME|all]\n"
    "\n"
    "Copies what is recorded of running processes so far, as a trace that all verbs read. The processes do not stop.\n"
    "With EVPROF_KEEP=30s this is the last stretch, else everything since the start. A PID has a trace of that "
    "process\n"
    "alone, a NAME or all that of the processes that are recorded together.\n"
    "\n"
    "  -o, --output FILE     the trace to write (default: PROGRAM-PID-DATE-TIME.evp); several traces are FILE.evp,\n"
    "                        FILE-2.evp, FILE-3.evp, ...\n"
    "      --last T          only the last 30s, 500ms, ... of it\n"
    "      --socket SOCKET   ask the collector at this socket (default: EVPROF_SOCKET, or else all of the user's)\n"
    "  -q, --quiet           print the names of the files only\n"
    "\n"
    "Exit status: 0; 1 if a trace is incomplete or a collector did not answer; 2 if there is no collector, no such\n"
    "process, or a file cannot be written.\n";

#define ANSWER_MS 10000
#define HOLD_MS 120000
#define ALIVE_TRIES 600u
#define ALIVE_PAUSE_MS 100u

static void worsen(struct snapshot *snapshot, int status)
{
	snapshot->status = status > snapshot->status ? status : snapshot->status;
}

/* --- one trace --- */

/* The caller frees it; NULL: no memory. */
static char *path_for(const struct snapshot *snapshot, const char *program, int64_t pid)
{
	time_t now = time(NULL);
	struct tm parts;
	char date[32] = "", *made = NULL, *safe;

	if (snapshot->to)
		return cut_path(snapshot->to, snapshot->written);
	if (localtime_r(&now, &parts))
		strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &parts);
	safe = strdup(program[0] ? program : "python");
	for (char *at = safe; at && *at; at++)
		if (*at == '/' || (unsigned char)*at < ' ' || (at == safe && *at == '.'))
			*at = '_';
	if (safe && asprintf(&made, "%s-%" PRId64 "-%s.evp", safe, pid, date) < 0)
		made = NULL;
	free(safe);
	return made;
}

static int64_t first_of(const json_t *described, const char *member)
{
	return json_integer_value(json_array_get(json_object_get(described, member), 0));
}

int64_t snapshot_pid(const json_t *described)
{
	return first_of(described, "pids");
}

/* Only this process, if the target is a pid. */
static bool filter_target(const struct snapshot *snapshot, const json_t *described, struct filter *filter)
{
	char text[24];

	*filter = (struct filter){0};
	if (!verb_is_pid(snapshot->target))
		return true;
	snprintf(text, sizeof(text), "%" PRId64, snapshot_pid(described));
	return filter_take(filter, snapshot->verb, FILTER_PROCESS, text);
}

/* The trace of what is alive so far, once it is written for this hold. NULL after a line on stderr: it is not. */
static struct trace *open_alive(const struct snapshot *snapshot, const json_t *described)
{
	const char *path = json_string_value(json_object_get(described, "alive"));
	uint64_t hold = (uint64_t)json_integer_value(json_object_get(described, "hold"));
	char ignored[4600];

	for (unsigned i = 0; i < ALIVE_TRIES; i++) {
		struct trace *trace = NULL;

		if (trace_open(&trace, path, ignored, sizeof(ignored)) == 0 && trace_so_far(trace) >= hold)
			return trace;
		trace_close(trace);
		poll(NULL, 0, ALIVE_PAUSE_MS);
	}
	output_message("evprof %s: what is alive so far is not written to %s within %u s", snapshot->verb, path,
		       ALIVE_TRIES * ALIVE_PAUSE_MS / 1000);
	return NULL;
}

/* Whether it is a trace that keeps what is alive, and no stretch of it was asked for. */
static bool wants_alive(const struct snapshot *snapshot, const json_t *described)
{
	const char *alive = json_string_value(json_object_get(described, "alive"));

	return alive && *alive && !snapshot->last_ns && !snapshot->from_ns && !snapshot->until_ns;
}

static int copy_trace(struct snapshot *snapshot, const json_t *described, struct trace *trace, const char *path)
{
	int64_t since_ns = json_integer_value(json_object_get(described, "since_ns"));
	int64_t until_ns = json_integer_value(json_object_get(described, "until_ns"));
	struct cut_stretch stretch = {.from = {.ns = since_ns ? since_ns : INT64_MIN}, .to = {.ns = until_ns}};
	struct progress progress;
	struct filter filter;
	int error;

	if (snapshot->last_ns && until_ns - snapshot->last_ns > stretch.from.ns)
		stretch.from.ns = until_ns - snapshot->last_ns;
	if (snapshot->from_ns > stretch.from.ns)
		stretch.from.ns = snapshot->from_ns;
	if (snapshot->until_ns && snapshot->until_ns < stretch.to.ns)
		stretch.to.ns = snapshot->until_ns;
	if (wants_alive(snapshot, described))
		stretch = (struct cut_stretch){{.ns = INT64_MIN}, {.ns = INT64_MAX}};
	error = filter_target(snapshot, described, &filter) ? 0 : -EINVAL;

	progress_begin(&progress, "copying", 0);
	if (!error)
		error = cut_write_file(trace, &stretch, &filter, &progress, snapshot->verb, path, false);
	progress_end(&progress);
	filter_done(&filter);
	return error;
}

static void print_written(const struct snapshot *snapshot, const json_t *described, const char *path)
{
	const char *verb = wants_alive(snapshot, described) ? "memory" : "report";
	size_t pids = json_array_size(json_object_get(described, "pids"));
	int64_t pid = first_of(described, "shown");

	if (snapshot->quiet)
		printf("%s\n", path);
	else if (pids == 1)
		output_message("evprof: %s has what is recorded of %" PRId64 "; show it with: evprof %s %s", path, pid,
			       verb, path);
	else
		output_message("evprof: %s has what is recorded of %zu processes; show it with: evprof %s %s", path,
			       pids, verb, path);
}

static bool misses_begin(const struct snapshot *snapshot, const json_t *described)
{
	int64_t missing_ns = json_integer_value(json_object_get(described, "since_ns")) - snapshot->from_ns;

	if (!snapshot->from_ns || missing_ns <= 0)
		return false;
	output_message("evprof %s: the first %.1f s of the stretch have left the trace (EVPROF_KEEP)", snapshot->verb,
		       (double)missing_ns / 1e9);
	return true;
}

/* The trace of a session that has ended meanwhile may be removed: nobody has asked for that one by its name. */
static bool has_gone(const struct snapshot *snapshot, const json_t *described)
{
	const char *source = json_string_value(json_object_get(described, "path"));

	return !strcmp(snapshot->target, "all") && !json_is_true(json_object_get(described, "removed")) && source &&
	       access(source, F_OK) < 0 && errno == ENOENT;
}

/* Whether the name does not lead to what is recorded any more. True after a line on stderr. */
static bool is_removed(const struct snapshot *snapshot, const json_t *described)
{
	if (!json_is_true(json_object_get(described, "removed")))
		return false;
	output_message("evprof %s: %s was removed or replaced while it was written, and cannot be copied",
		       snapshot->verb, json_string_value(json_object_get(described, "path")));
	return true;
}

/* Whether the path is that of this trace, or of another that a collector writes. True after a line on stderr. */
static bool overwrites(const struct snapshot *snapshot, const json_t *described, const char *to)
{
	const char *path = json_string_value(json_object_get(described, "path"));
	const char *alive = json_string_value(json_object_get(described, "alive"));
	int fd = open(to, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	bool written = fd >= 0 && ((path && output_is_at(fd, path)) || (alive && output_is_at(fd, alive)) ||
				   trace_is_being_written(fd));

	if (fd >= 0)
		close(fd);
	if (written)
		output_message("evprof %s: %s is a trace that is being written; give the output another name",
			       snapshot->verb, to);
	return written;
}

bool snapshot_can_copy(const struct snapshot *snapshot, const json_t *described, const char *to)
{
	return !is_removed(snapshot, described) && !overwrites(snapshot, described, to);
}

static void write_snapshot(struct snapshot *snapshot, const json_t *described)
{
	const char *source = json_string_value(json_object_get(described, "path"));
	const char *program = json_string_value(json_object_get(described, "program"));
	char *path = path_for(snapshot, program ? program : "", first_of(described, "shown"));
	struct trace *trace = !source || !path || is_removed(snapshot, described) ? NULL
			      : wants_alive(snapshot, described)		  ? open_alive(snapshot, described)
										  : trace_open_with_message(source);

	if (!trace || overwrites(snapshot, described, path) || copy_trace(snapshot, described, trace, path) < 0) {
		worsen(snapshot, CLI_FAILED);
	} else {
		/* That the trace grows is as it should be. */
		if (trace->damage.holes || trace->damage.out_of_memory)
			worsen(snapshot, trace_print_verdict(trace));
		if (misses_begin(snapshot, described))
			worsen(snapshot, CLI_DAMAGED);
		print_written(snapshot, described, path);
		snapshot->written++;
	}
	trace_close(trace);
	free(path);
}

/* --- all traces of all collectors --- */

/*
 * Asks all collectors anew, because each connection takes one request. False: none can be asked; a line says so, if
 * there is a verb.
 */
static bool ask(const struct snapshot *snapshot, const char *verb, struct control_collectors *collectors,
		json_t *message)
{
	bool found = message && control_collectors_find(verb, snapshot->socket, collectors) == 0;

	if (found)
		control_collectors_ask(collectors, message, ANSWER_MS);
	json_decref(message);
	return found;
}

/* A request for the target. NULL: its name is not UTF-8, or no memory. */
static json_t *request_of(const char *target, int64_t hold_ms)
{
	json_t *message =
	    json_pack("{s:s, s:s, s:I}", "type", "snapshot", "target", target, "hold_ms", (json_int_t)hold_ms);
	uint64_t start_time = verb_is_pid(target) ? proc_start_time((pid_t)strtol(target, NULL, 10), NULL, NULL) : 0;

	/* A collector in another pid namespace has another number for the process with this one here. */
	if (message && start_time)
		json_object_set_new(message, "start_time", json_integer((json_int_t)start_time));
	return message;
}

/* The first trace of the answers, or NULL. */
static json_t *first_trace(const struct control_collectors *collectors)
{
	json_t *described = NULL;

	for (size_t i = 0; i < collectors->count && !described; i++)
		described = json_array_get(json_object_get(collectors->at[i].answer, "traces"), 0);
	return described;
}

/* As control_collectors_complain(). What other collectors do not answer is no matter where one has the process. */
static int complain_of_silent(const struct snapshot *snapshot, const struct control_collectors *collectors)
{
	if (verb_is_pid(snapshot->target) && first_trace(collectors))
		return CLI_FINE;
	return control_collectors_complain(snapshot->verb, collectors);
}

void snapshot_release(const struct snapshot *snapshot, const json_t *described)
{
	struct control_collectors collectors = {0};
	char pid[24];

	snprintf(pid, sizeof(pid), "%" PRId64, first_of(described, "shown"));
	ask(snapshot, NULL, &collectors, /* one that has ended holds nothing */
	    json_pack("{s:s, s:s, s:i, s:I}", "type", "snapshot", "target", pid, "hold_ms", 0, "hold",
		      json_integer_value(json_object_get(described, "hold"))));
	control_collectors_done(&collectors);
}

json_t *snapshot_hold(const struct snapshot *snapshot, int64_t hold_ms)
{
	struct control_collectors collectors = {0};
	json_t *described = NULL;

	if (hold_ms > CONTROL_HOLD_MAX_MS)
		hold_ms = CONTROL_HOLD_MAX_MS;
	if (ask(snapshot, snapshot->verb, &collectors, request_of(snapshot->target, hold_ms)) &&
	    complain_of_silent(snapshot, &collectors) != CLI_FAILED) {
		described = json_incref(first_trace(&collectors));
		if (!described)
			output_message("evprof %s: process %s has no trace that can be copied", snapshot->verb,
				       snapshot->target);
	}
	control_collectors_done(&collectors);
	return described;
}

static void write_all(struct snapshot *snapshot, const struct control_collectors *collectors)
{
	const json_t *described;
	size_t k;

	for (size_t i = 0; i < collectors->count; i++) {
		json_array_foreach(json_object_get(collectors->at[i].answer, "traces"), k, described)
		{
			if (!has_gone(snapshot, described))
				write_snapshot(snapshot, described);
			snapshot_release(snapshot, described);
		}
	}
	if (!snapshot->written && !snapshot->status) {
		output_message("evprof %s: no process %s is recorded; evprof status lists those that are",
			       snapshot->verb, snapshot->target);
		snapshot->status = CLI_FAILED;
	}
}

int snapshot_copy(struct snapshot *snapshot)
{
	struct control_collectors collectors = {0};
	json_t *message = request_of(snapshot->target, HOLD_MS);

	umask(077); /* only the owner may read the contents of a trace */
	if (!message) {
		output_message("evprof snapshot: the name of a process is UTF-8, not %s", snapshot->target);
		return CLI_FAILED;
	}
	snapshot->status = CLI_FAILED;
	if (ask(snapshot, snapshot->verb, &collectors, message))
		snapshot->status = complain_of_silent(snapshot, &collectors);
	if (snapshot->status != CLI_FAILED)
		write_all(snapshot, &collectors);
	control_collectors_done(&collectors);
	return snapshot->status;
}

int cmd_snapshot(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("output", 'o', snapshot, to), VERB_TEXT("last", 0, snapshot, last),
	    VERB_TEXT("socket", 0, snapshot, socket), VERB_FLAG("quiet", 'q', snapshot, quiet), VERB_OPTIONS_END};
	static const struct verb_usage usage = {"snapshot", options_known, {help_text}};
	struct snapshot snapshot = {.verb = "snapshot", .target = "all"};
	int status = verb_parse(&usage, argc, argv, &snapshot, NULL);

	if (status != VERB_PARSED)
		return status;
	if (!verb_take_target("snapshot", argc, argv, &snapshot.target))
		return CLI_FAILED;
	if (snapshot.to && (!snapshot.to[0] || strcmp(snapshot.to, "-") == 0)) {
		cli_misused("snapshot", "a trace needs a file, not %s", snapshot.to);
		return CLI_FAILED;
	}
	if (snapshot.last && !filter_duration("snapshot", "--last", snapshot.last, &snapshot.last_ns))
		return CLI_FAILED;
	if (snapshot.last && snapshot.last_ns <= 0) {
		cli_misused("snapshot", "--last is more than 0s, not %s", snapshot.last);
		return CLI_FAILED;
	}
	return snapshot_copy(&snapshot);
}
