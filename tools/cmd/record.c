/*
 * record.c - evprof record: a stretch of a running process as a trace, whatever evprof does with the process.
 *
 * A process that no collector has is attached, and detached. One that is recorded goes on, and the stretch is copied.
 * One whose recording is stopped is started, stopped again, and copied.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"
#include "cmd/snapshot.h"
#include "cmd/switch.h"
#include "cmd/verbs.h"
#include "control/collectors.h"
#include "cut/cut.h"
#include "evprof/control.h"
#include "replay/filter.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/output.h"

static const char help_text[] =
    "usage: evprof record [options] PID|NAME\n"
    "\n"
    "Records a stretch of a running process as a trace, and leaves the process as it was. One that evprof does not\n"
    "know is attached for that long (evprof attach, by its PID). One that is recorded goes on, and the stretch is\n"
    "copied. One whose recording is stopped (evprof stop, EVPROF_START=0) is started, and stopped again. Ctrl-C ends\n"
    "the stretch. NAME is the program's, as in evprof status.\n"
    "\n"
    "  -o, --output FILE    the trace to write (default: evprof-PID.evp)\n"
    "      --for TIME       how long: 10s (the default), 500ms, 2m\n"
    "      --events LIST    what is recorded meanwhile, as in EVPROF_EVENTS, without sample and malloc\n"
    "      --socket SOCKET  the collector that has it (default: EVPROF_SOCKET, or else all of the user's)\n"
    "\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if there is none.\n";

#define ANSWER_MS 5000
#define HOLD_EXTRA_MS 60000
#define MS_NS 1000000
#define DURATION_DEFAULT_NS (INT64_C(10000) * MS_NS)
#define DURATION_MAX_NS (INT64_C(1000000) * 1000 * MS_NS)
#define LOOK_MS 50
#define ENDS_MS 10000
#define ARGUMENTS 16

enum known { UNKNOWN, RECORDED, STOPPED };

struct record {
	const char *output, *duration, *events, *socket, *target;
	int64_t for_ns;
	enum known known;
	char pid[24], program[256], records[128]; /* records: what it records now */
	char file[PATH_MAX];
	struct snapshot snapshot; /* of the process, by its PID */
	json_t *held;		  /* its trace, as snapshot_hold() describes it */
	int process;		  /* a pidfd; -1: none */
	int trace;		  /* its trace, opened at the beginning; -1: it could not be */
	bool silent;		  /* a collector did not answer, and may have the process */
};

/* --- verbs --- */

struct arguments {
	char *at[ARGUMENTS + 1];
	int count;
};

static void add(struct arguments *arguments, const char *argument)
{
	if (arguments->count < ARGUMENTS)
		arguments->at[arguments->count++] = (char *)(uintptr_t)argument;
}

static void add_option(struct arguments *arguments, const char *option, const char *value)
{
	if (!value)
		return;
	add(arguments, option);
	add(arguments, value);
}

static int call(int (*verb)(int, char **), struct arguments *arguments)
{
	optind = 0; /* getopt begins anew */
	return verb(arguments->count, arguments->at);
}

/* The collector of an unknown process is one of its own, so that the trace is where the user wants it. */
static int attach(const struct record *record)
{
	struct arguments arguments = {0};
	char duration[32];

	snprintf(duration, sizeof(duration), "%" PRId64 "ms", (record->for_ns + MS_NS - 1) / MS_NS);
	unsetenv(ENV_SOCKET);
	add(&arguments, "attach");
	add_option(&arguments, "--for", duration);
	add_option(&arguments, "--output", record->file);
	add_option(&arguments, "--events", record->events);
	add(&arguments, record->pid);
	return call(cmd_attach, &arguments);
}

static int order(const struct record *record, const char *action, const char *name)
{
	return switch_processes(&(const struct switch_order){
	    .verb = "record", .action = action, .name = name, .socket = record->socket, .target = record->pid});
}

/* --- the process --- */

static void read_process(struct record *record, const json_t *process)
{
	const char *how = json_string_value(json_object_get(process, "recording"));
	const char *program = json_string_value(json_object_get(process, "program"));
	const char *records = json_string_value(json_object_get(process, "records"));

	record->known = how && strcmp(how, "off") == 0 ? STOPPED : RECORDED;
	snprintf(record->pid, sizeof(record->pid), "%" PRId64,
		 (int64_t)json_integer_value(json_object_get(process, "pid")));
	snprintf(record->program, sizeof(record->program), "%s", program ? program : "");
	snprintf(record->records, sizeof(record->records), "%s", records ? records : "");
}

/* Asks the collectors what they do with the target. Returns the number of processes that they have of it. */
static size_t look(struct record *record)
{
	json_t *message = json_pack("{s:s, s:s}", "type", "status", "target", record->target), *process;
	struct control_collectors collectors = {0};
	size_t found = 0, k;

	record->known = UNKNOWN;
	record->silent = false;
	if (message && control_collectors_find(NULL, record->socket, &collectors) == 0) {
		control_collectors_ask(&collectors, message, ANSWER_MS);
		for (size_t i = 0; i < collectors.count; i++) {
			record->silent |= !collectors.at[i].answer && !collectors.at[i].ended;
			json_array_foreach(json_object_get(collectors.at[i].answer, "processes"), k, process)
			{
				read_process(record, process);
				found++;
			}
		}
	}
	control_collectors_done(&collectors);
	json_decref(message);
	return found;
}

static bool find_process(struct record *record)
{
	size_t found = look(record);

	if (found > 1) {
		output_message("evprof record: %zu processes are named %s; evprof status lists their PIDs", found,
			       record->target);
		return false;
	}
	if (!found && !verb_is_pid(record->target)) {
		output_message("evprof record: no process %s is recorded; one that evprof does not know has a PID only",
			       record->target);
		return false;
	}
	if (!found)
		snprintf(record->pid, sizeof(record->pid), "%s", record->target);
	return true;
}

/* --- the stretch --- */

/*
 * Whether no collector has it any more. The pidfd alone does not say so: where the collector is in another pid
 * namespace, another process may have that number here, or none.
 */
static bool is_gone(const struct record *record)
{
	struct record now = *record;

	return !look(&now) && !now.silent;
}

/* Waits for the end of the stretch, of the process, or for the user. */
static void wait_for_end(const struct record *record)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * MS_NS};
	int64_t end_ns = time_ns(CLOCK_MONOTONIC) + record->for_ns;

	while (time_ns(CLOCK_MONOTONIC) < end_ns && !cli_interrupted &&
	       !(attach_has_ended(record->process) && is_gone(record)))
		nanosleep(&pause, NULL);
}

/* --- the copy --- */

/* The collector writes what the process has left, and a private one ends. NULL: the trace cannot be read. */
static struct trace *open_ended(struct record *record)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * MS_NS};
	const char *path = json_string_value(json_object_get(record->held, "path"));
	int64_t end_ns = time_ns(CLOCK_MONOTONIC) + INT64_C(1) * ENDS_MS * MS_NS;
	struct trace *trace = NULL;
	char opened[32];

	while (look(record) && time_ns(CLOCK_MONOTONIC) < end_ns)
		nanosleep(&pause, NULL);
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", record->trace);
	if (path && record->trace >= 0 && !output_is_at(record->trace, path))
		path = opened; /* without a file (EVPROF_OUTPUT=none), renamed, or replaced since */
	for (; path; nanosleep(&pause, NULL)) {
		trace = trace_open_with_message(path);
		if (!trace || !trace->damage.growing || time_ns(CLOCK_MONOTONIC) >= end_ns)
			break;
		trace_close(trace);
	}
	return trace;
}

/* The process has ended, so its collector may have, too: the trace is copied without it. */
static int copy_ended(struct record *record)
{
	struct cut_stretch stretch = {.from = {.ns = record->snapshot.from_ns}, .to = {.ns = INT64_MAX}};
	struct trace *trace = open_ended(record);
	struct progress progress;
	struct filter filter = {0};
	char pid[24];
	int error = -1;

	snprintf(pid, sizeof(pid), "%" PRId64, snapshot_pid(record->held));
	progress_begin(&progress, "copying", 0);
	if (trace && !verb_overwrites("record", trace, record->file) &&
	    filter_take(&filter, "record", FILTER_PROCESS, pid))
		error = cut_write_file(trace, &stretch, &filter, &progress, "record", record->file, false);
	progress_end(&progress);
	filter_done(&filter);
	if (!error)
		output_message("evprof: process %s %s; show it with: evprof report %s", record->pid,
			       attach_has_ended(record->process) ? "has ended" : "is not recorded any more",
			       record->file);
	trace_close(trace);
	return error ? CLI_FAILED : CLI_FINE;
}

static void open_process(struct record *record)
{
	cli_catch_interrupt();
	record->process = (int)syscall(SYS_pidfd_open, (pid_t)strtol(record->pid, NULL, 10), 0);
}

/* The collector's time after it has written all that it has, and holds it. 0 after a line on stderr. */
static int64_t edge_ns(struct record *record)
{
	json_t *before = record->held;

	record->held = snapshot_hold(&record->snapshot, record->for_ns / MS_NS + HOLD_EXTRA_MS);
	if (before)
		snapshot_release(&record->snapshot, before);
	json_decref(before);
	return json_integer_value(json_object_get(record->held, "until_ns"));
}

static int begin(struct record *record)
{
	int status = CLI_FINE;

	record->snapshot.from_ns = edge_ns(record);
	if (!record->held)
		return CLI_FAILED;
	record->trace = open(json_string_value(json_object_get(record->held, "path")), O_RDONLY | O_CLOEXEC);
	if (record->known == STOPPED)
		status = order(record, "start", NULL);
	output_message("evprof: recording %s %s into %s; Ctrl-C ends it", record->pid, record->program, record->file);
	return status;
}

/* The process is as it was before the stretch is copied, which may take long. */
static int end(struct record *record)
{
	int status = record->known == STOPPED ? order(record, "stop", NULL) : CLI_FINE;

	record->snapshot.until_ns = edge_ns(record);
	if (record->events)
		status = cli_status_worst(status, order(record, "events", record->records));
	if (!record->held)
		return CLI_FAILED;
	status = cli_status_worst(status, snapshot_copy(&record->snapshot));
	snapshot_release(&record->snapshot, record->held);
	return status;
}

/* Before anything of the process is changed. */
static bool can_copy(const struct record *record)
{
	json_t *held = snapshot_hold(&record->snapshot, ANSWER_MS);
	bool can = held && snapshot_can_copy(&record->snapshot, held, record->file);

	if (held)
		snapshot_release(&record->snapshot, held);
	json_decref(held);
	return can;
}

static int record_known(struct record *record)
{
	int status;

	umask(077); /* only the owner may read the contents of a trace */
	if (!verb_can_write("record", record->file))
		return CLI_FAILED;
	record->target = record->pid; /* others may get its name */
	record->snapshot =
	    (struct snapshot){.verb = "record", .target = record->pid, .to = record->file, .socket = record->socket};
	if (!can_copy(record))
		return CLI_FAILED;
	status = record->events ? order(record, "events", record->events) : CLI_FINE;
	if (status == CLI_FAILED)
		return status;
	open_process(record);
	status = cli_status_worst(status, begin(record));
	if (status != CLI_FAILED)
		wait_for_end(record);
	if (!is_gone(record))
		return cli_status_worst(status, end(record));
	return record->held ? cli_status_worst(status, copy_ended(record)) : CLI_FAILED;
}

static int run_record(struct record *record)
{
	int status;

	if (!find_process(record))
		return CLI_FAILED;
	if (!record->output)
		snprintf(record->file, sizeof(record->file), "evprof-%s.evp", record->pid);
	if (record->known == UNKNOWN)
		return attach(record);
	status = record_known(record);
	json_decref(record->held);
	if (record->process >= 0)
		close(record->process);
	if (record->trace >= 0)
		close(record->trace);
	return status;
}

static bool check(struct record *record)
{
	if (record->output && (!record->output[0] || !strcmp(record->output, "-") ||
			       (size_t)snprintf(record->file, PATH_MAX, "%s", record->output) >= PATH_MAX))
		return cli_misused("record", "a trace needs a file, not %s", record->output);
	if (record->duration && !filter_duration("record", "--for", record->duration, &record->for_ns))
		return false;
	if (record->for_ns < MS_NS || record->for_ns > DURATION_MAX_NS)
		return cli_misused("record", "--for is 1ms to 1000000s, not %s", record->duration);
	return true;
}

int cmd_record(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("output", 'o', record, output),
	    VERB_TEXT("for", 0, record, duration),
	    VERB_EVENTS(record),
	    VERB_TEXT("socket", 0, record, socket),
	    VERB_OPTIONS_END,
	};
	static const struct verb_usage usage = {"record", options_known, {help_text}};
	struct record record = {.for_ns = DURATION_DEFAULT_NS, .process = -1, .trace = -1};
	int status = verb_parse(&usage, argc, argv, &record, NULL);

	if (status != VERB_PARSED)
		return status;
	if (optind + 1 != argc || !strcmp(argv[optind], "all")) {
		cli_misused("record", "one process, by its PID or NAME");
		return CLI_FAILED;
	}
	record.target = argv[optind];
	return check(&record) ? run_record(&record) : CLI_FAILED;
}
