/*
 * stack.c - evprof stack: the Python stacks of all threads of running processes, now, recorded or not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "evprof/proc.h"
#include "stack/print.h"
#include "util/cli.h"
#include "util/output.h"

static const char help_text[] =
    "usage: evprof stack [options] PID|NAME|all\n"
    "\n"
    "Prints what all threads of a running Python, 3.6 or later, do now: their functions with file and line, the\n"
    "innermost first, and what they wait for; then the suspended tasks and greenlets (3.8 or later). The process is\n"
    "recorded or not, runs nothing for it, and is not stopped without --native.\n"
    "NAME is that of the program or its script (gunicorn, app.py); all are those of this host that may be read.\n"
    "\n"
    "      --locals  with the local variables: the values of None, bool, int, float, str and bytes, the type and "
    "length\n"
    "                of containers, the type of other objects. They may be secrets\n"
    "      --native  with the native frames between them. Each thread is stopped for that, for milliseconds\n"
    "      --json    for programs: \"processes\"\n"
    "\n"
    "Needs the right to trace the process: its user's or root's.\n"
    "\n"
    "Exit status: 0; 1 if some processes could not be read; 2 if none could.\n";

#define NAME_BYTES 4096

struct request {
	bool json;
	struct snapshot_wish wish;
	const char *target;
	struct output output;
	size_t printed, failed;
};

/* --- processes by name --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether the name is that of the file without what follows its last dot: app for app.py. */
static bool is_name_of(const char *name, const char *path)
{
	const char *base = base_name(path), *dot = strrchr(base, '.');

	return !strcmp(base, name) ||
	       (dot && strlen(name) == (size_t)(dot - base) && !strncmp(base, name, strlen(name)));
}

/* The program, or the first argument that is no option: a script; or a module after -m. */
static bool command_has(const char *command, size_t bytes, const char *name)
{
	const char *end = command + bytes;

	if (is_name_of(name, command))
		return true;
	for (const char *at = command + strlen(command) + 1; at < end; at += strlen(at) + 1)
		if (*at != '-')
			return is_name_of(name, at);
	return false;
}

static bool has_name(pid_t pid, const char *name)
{
	char text[NAME_BYTES];
	ssize_t bytes;

	if (proc_read_of(pid, 0, "comm", text, sizeof(text)) > 0) {
		text[strcspn(text, "\n")] = 0;
		if (!strcmp(text, name))
			return true;
	}
	bytes = proc_read_of(pid, 0, "cmdline", text, sizeof(text));
	return bytes > 0 && command_has(text, (size_t)bytes, name);
}

/* --- one process --- */

static void print_one(struct request *request, const struct snapshot *snapshot)
{
	if (request->json) {
		output_string(&request->output, request->printed ? "," : "");
		print_snapshot_json(&request->output, snapshot);
	} else {
		output_string(&request->output, request->printed ? "\n" : "");
		print_snapshot(&request->output, snapshot);
	}
	request->printed++;
}

/* Returns whether it was read; why: one line, otherwise. */
static bool show_process(struct request *request, pid_t pid, char *why, size_t bytes)
{
	static struct snapshot snapshot;
	bool taken = snapshot_take(&snapshot, pid, &request->wish, why, bytes) == 0;

	if (taken)
		print_one(request, &snapshot);
	snapshot_done(&snapshot);
	return taken;
}

static void note_failure(struct request *request, const char *why)
{
	output_message("evprof stack: %s", why);
	request->failed++;
}

/* Whether this user may not read it: one that has the name may be a Python. */
static bool is_refused(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0 && (errno == EACCES || errno == EPERM);
}

static void show_named(struct request *request)
{
	bool all = strcmp(request->target, "all") == 0;
	struct dirent *entry;
	DIR *processes = opendir("/proc");
	char why[512];

	while (processes && (entry = readdir(processes))) {
		pid_t pid = (pid_t)atol(entry->d_name);

		if (pid <= 0 || pid == getpid() || (!all && !has_name(pid, request->target)))
			continue;
		if (!show_process(request, pid, why, sizeof(why)) && !all && is_refused(pid))
			note_failure(request, why);
	}
	if (processes)
		closedir(processes);
	if (request->printed || request->failed)
		return;
	output_message("evprof stack: there is no Python process %s that this user may read",
		       all ? "on this host" : request->target);
}

static void show_pid(struct request *request)
{
	pid_t pid = strlen(request->target) < 10 ? atoi(request->target) : INT_MAX;
	char why[512];

	if (!show_process(request, pid, why, sizeof(why)))
		note_failure(request, why);
}

/* --- all --- */

static int show(struct request *request)
{
	int error = output_open(&request->output, NULL);

	if (error == 0) {
		if (request->json)
			output_string(&request->output, "{\"processes\":[");
		if (verb_is_pid(request->target))
			show_pid(request);
		else
			show_named(request);
		if (request->json)
			output_string(&request->output, "]}\n");
		error = output_close(&request->output);
	}
	if (error)
		output_message("evprof stack: cannot write: %s", strerror(-error));
	if (error || !request->printed)
		return CLI_FAILED;
	return request->failed ? CLI_DAMAGED : CLI_FINE;
}

int cmd_stack(int argc, char **argv)
{
	static const struct verb_option options_known[] = {VERB_FLAG("locals", 0, request, wish.locals),
							   VERB_FLAG("native", 0, request, wish.native),
							   VERB_FLAG("json", 0, request, json), VERB_OPTIONS_END};
	static const struct verb_usage usage = {"stack", options_known, {help_text}};
	static struct request request;
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	if (optind + 1 != argc) {
		cli_misused("stack", "a process, by its PID or its program's name, or all");
		return CLI_FAILED;
	}
	request.target = argv[optind];
	return show(&request);
}
