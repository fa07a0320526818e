/*
 * run.c - evprof run: runs a program with the library preloaded, and prints what was recorded.
 *
 * Ends as the program ends: with its exit status, or by its signal.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/folders.h"
#include "evprof/settings.h"
#include "evprof/shown_text.h"
#include "cmd/verbs.h"
#include "run/command.h"
#include "run/places.h"
#include "run/program.h"
#include "run/session.h"
#include "run/settings.h"
#include "run/summary.h"
#include "util/cli.h"
#include "util/output.h"

/* As in env(1) and nohup(1). */
enum { EXIT_FAILED = 125, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static const char help_text[] =
    "usage: evprof run [options] PROGRAM [arguments]\n"
    "       evprof run [options] -m MODULE [arguments]\n"
    "       evprof run [options] -c CODE [arguments]\n"
    "\n"
    "Runs a program and records what Python does in it and in its children. Its input, output, exit status and "
    "signals\n"
    "are its own. PROGRAM is a command, or a script (file.py, file.pyz, a folder with __main__.py) for Python to run.\n"
    "\n"
    "  -m MODULE, -c CODE      what Python runs, as python -m and -c do; the words after it are the program's\n"
    "      --python COMMAND    the interpreter of -m, -c and scripts (default: python3; the one that evprof is\n"
    "                          installed for, if pip installed it)\n"
    "  -o, --output TEMPLATE   the trace file; %p pid, %n program, %h host, %t time; none: no trace is kept\n"
    "                          (default: $EVPROF_OUTPUT or " OUTPUT_DEFAULT ")\n"
    "      --events LIST       of call, c_call, exception, mem (all of these), line, cpu, malloc\n"
    "      --memory            what a memory hunt needs: --events mem,malloc, with the allocations of native code\n"
    "      --memory=sampled        the same, and only one allocation each 512 KiB, for production\n"
    "      --memory-lines      beside calls: the line of each allocation; --memory has it\n"
    "      --memory-interval SIZE  sample allocations, one each SIZE bytes on average: 64K, 512K, 2M\n"
    "      --sample[=RATE]     sample stacks RATE times a second (default: 100), nearly free\n"
    "      --include LIST, --exclude LIST, --exclude-syspath\n"
    "                          which functions are recorded: patterns as for evprof report, with commas\n"
    "      --budget PERCENT    the most that recording may add to the CPU time, as 5%; what is left out is estimated\n"
    "      --program-only      leave out what Python does before and after the program\n"
    "      --keep STRETCH      keep the last stretch only: 30s, 256M, or 10m,1G; evprof snapshot copies it;\n"
    "                          alive: what is alive of memory, and sums, for weeks\n"
    "      --trigger LIST      copy what led to a slow call, a blocked loop, grown memory, an uncaught exception:\n"
    "                          'app.views:*>500ms,loop>200ms,rss>1G,exception'\n"
    "      --stopped           record nothing until the program calls evprof.start()\n"
    "      --format LIST       also write the trace in these formats of evprof export, next to it\n"
    "      --calibrate         measure the cost of the hooks, for evprof report --calibrate\n"
    "      --native            record the native stack of each allocation\n"
    "      --ring-size BYTES   buffer of each thread\n"
    "      --on-full WHAT      when a buffer is full: wait or drop\n"
    "      --no-children       do not follow child processes\n"
    "      --socket SOCKET     use the host's collector, which decides where the trace goes (or $EVPROF_SOCKET)\n"
    "      --log LEVEL         messages of evprof in the program\n"
    "      --wait[=SECONDS]    wait for processes that still run when the program has ended\n"
    "  -q, --quiet             no line and no summary at the end, unless something went wrong\n"
    "\n"
    "Exit status: that of the program; 125 if evprof fails, 126 or 127 if the program cannot be run or found.\n";

struct request {
	const char *output;
	const char *socket;
	bool quiet;
	int wait_ms;
	struct run_settings settings;
	struct run_command command;
};

/* --- options --- */

static bool take_wait(void *request, const struct verb_option *option, const char *text)
{
	int64_t seconds = INT_MAX / 1000;

	(void)option;
	if (text && !cli_number("run", "--wait", text, 0, &seconds))
		return false;
	((struct request *)request)->wait_ms = seconds < INT_MAX / 1000 ? (int)seconds * 1000 : INT_MAX;
	return true;
}

static bool take_output(void *request, const struct verb_option *option, const char *text)
{
	(void)option;
	((struct request *)request)->output = text;
	return run_settings_output_is_good(text);
}

static bool take_setting(void *request, const struct verb_option *option, const char *text)
{
	return run_settings_take(&((struct request *)request)->settings, (enum run_setting)option->which, text);
}

/* As Python's -m and -c. */
static bool take_command(void *request, const struct verb_option *option, const char *text)
{
	struct run_command *command = &((struct request *)request)->command;

	command->option = option->letter == 'm' ? "-m" : "-c";
	command->value = text;
	return true;
}

static const struct verb_option options_known[] = {
    VERB_TAKE("output", 'o', required_argument, take_output, 0),
    VERB_TEXT("socket", 0, request, socket),
    VERB_TAKE("events", 0, required_argument, take_setting, RUN_EVENTS),
    VERB_TAKE("memory", 0, optional_argument, take_setting, RUN_MEMORY),
    VERB_TAKE("memory-interval", 0, required_argument, take_setting, RUN_MEMORY_INTERVAL),
    VERB_TAKE("memory-lines", 0, no_argument, take_setting, RUN_MEMORY_LINES),
    VERB_TAKE("budget", 0, required_argument, take_setting, RUN_BUDGET),
    VERB_TAKE("sample", 0, optional_argument, take_setting, RUN_SAMPLE),
    VERB_TAKE("ring-size", 0, required_argument, take_setting, RUN_RING_SIZE),
    VERB_TAKE("on-full", 0, required_argument, take_setting, RUN_ON_FULL),
    VERB_TAKE("log", 0, required_argument, take_setting, RUN_LOG),
    VERB_TAKE("format", 0, required_argument, take_setting, RUN_FORMAT),
    VERB_TAKE("include", 0, required_argument, take_setting, RUN_INCLUDE),
    VERB_TAKE("exclude", 0, required_argument, take_setting, RUN_EXCLUDE),
    VERB_TAKE("exclude-syspath", 0, no_argument, take_setting, RUN_EXCLUDE_SYSPATH),
    VERB_TAKE("calibrate", 0, no_argument, take_setting, RUN_CALIBRATE),
    VERB_TAKE("native", 0, no_argument, take_setting, RUN_NATIVE),
    VERB_TAKE("program-only", 0, no_argument, take_setting, RUN_PROGRAM_ONLY),
    VERB_TAKE("no-children", 0, no_argument, take_setting, RUN_NO_CHILDREN),
    VERB_TAKE("keep", 0, required_argument, take_setting, RUN_KEEP),
    VERB_TAKE("trigger", 0, required_argument, take_setting, RUN_TRIGGER),
    VERB_TAKE("stopped", 0, no_argument, take_setting, RUN_STOPPED),
    VERB_TAKE("wait", 0, optional_argument, take_wait, 0),
    VERB_FLAG("quiet", 'q', request, quiet),
    VERB_TEXT("python", 0, request, command.python),
    VERB_TAKE(NULL, 'm', VERB_LAST_OPTION, take_command, 0),
    VERB_TAKE(NULL, 'c', VERB_LAST_OPTION, take_command, 0),
    VERB_OPTIONS_END,
};

static const struct verb_usage usage = {"run", options_known, {help_text}};

/* False with the exit status. */
static bool take_options(struct request *request, int argc, char **argv, int *status)
{
	int parsed = verb_parse(&usage, argc, argv, request, NULL), error;

	*status = parsed == CLI_FINE ? 0 : EXIT_FAILED;
	if (parsed != VERB_PARSED)
		return false;
	error = run_command_make(&request->command, argv + optind);
	if (error == -EINVAL)
		cli_misused("run", "a program is missing");
	else if (error)
		output_message("evprof run: %s", strerror(-error));
	return !error && run_settings_finish(&request->settings);
}

/* EVPROF_FALLBACK=1: as the library, but that a stranger at the socket ends evprof run. */
static bool falls_back(const char *socket)
{
	const char *fallback = getenv(ENV_FALLBACK);
	int error = fallback && !strcmp(fallback, "1") ? run_session_try(socket) : 0;

	if (error)
		output_message("evprof run: no collector answers at " ENV_SOCKET "=%s: %s; a private collector is "
			       "started",
			       socket, strerror(-error));
	return error != 0;
}

static void use_environment(struct request *request)
{
	const char *output = getenv(ENV_OUTPUT);
	const char *socket = getenv(ENV_SOCKET);

	if (!request->output) /* the library reports an invalid one and uses the default */
		request->output = output && output[0] && !setting_output(output) ? output : OUTPUT_DEFAULT;
	if (setting_output_is_none(request->output))
		request->output = OUTPUT_NOWHERE;
	if (!request->socket && socket && socket[0] && falls_back(socket))
		unsetenv(ENV_SOCKET);
	else if (!request->socket && socket && socket[0])
		request->socket = socket;
	/* This is a new session, also if evprof run was started inside another. */
	unsetenv(ENV_SESSION);
}

/* The collector expands the template, so percent signs of the directory are escaped. */
static char *absolute_template(const char *template)
{
	char *directory;
	char *result;
	char *to;
	const char *from;

	if (template[0] == '/')
		return strdup(template);
	directory = getcwd(NULL, 0);
	result = directory ? malloc(2 * strlen(directory) + strlen(template) + 2) : NULL;
	if (result) {
		for (from = directory, to = result; *from; from++) {
			if (*from == '%')
				*to++ = '%';
			*to++ = *from;
		}
		*to++ = '/';
		strcpy(to, template);
	}
	free(directory);
	return result;
}

/* --- summary and exit --- */

static long long number_in(const json_t *summary, const char *member)
{
	return (long long)json_integer_value(json_object_get(summary, member));
}

static void print_trace_summary(const json_t *summary, const char *path, const char *session, const struct run_end *end)
{
	long long processes = number_in(summary, "processes");
	long long running = number_in(summary, "running"), unsampled = number_in(summary, "unsampled");
	static char text[SHOWN_PATH_BYTES];
	const char *shown = shown_path(path, text);
	struct setting_keep keep = {0};
	unsigned events = run_settings_recorded(&keep);
	char kept[64];

	setting_keep_text(&keep, kept, sizeof(kept));
	if (!*path) {
		fprintf(stderr,
			"evprof: %lld events of %lld process%s, %lld lost; no trace is kept (" ENV_OUTPUT "=none)\n",
			number_in(summary, "events"), processes, processes == 1 ? "" : "es",
			number_in(summary, "lost"));
		return;
	}
	fprintf(stderr, "evprof: %s%lld events of %lld process%s, %lld lost, in %s; ", kept,
		number_in(summary, "events"), processes, processes == 1 ? "" : "es", number_in(summary, "lost"), shown);
	if (running > 0)
		fprintf(stderr, "%lld still run%s and the trace grows; ", running, running == 1 ? "s" : "");
	fprintf(stderr, "show it with: evprof %s %s\n", setting_verb(events), shown);
	if (unsampled > 0)
		output_message("evprof: the sampler of %lld process%s was killed; later samples are missing", unsampled,
			       unsampled == 1 ? "" : "es");
	if (!running)
		run_summary_print(&(const struct run_recording){.trace = path,
								.session = session,
								.events = (uint64_t)number_in(summary, "events")},
				  end);
}

/* reason: that of the first process that did not join; NULL: unknown */
static void print_nothing_joined(const char *program, const char *reason)
{
	if (reason)
		output_message("evprof: nothing was recorded: %s", reason);
	else
		output_message("evprof: nothing was recorded: no Python process joined; unless a line above says why, "
			       "%s is not CPython 3.6 or later, is statically linked or setuid, or " ENV_SWITCH
			       "=0 is set (--log info shows more)",
			       program);
}

/* seconds: the result of run_session_summary() */
static void print_no_summary(int seconds)
{
	char why[80] = "the collector has ended without a summary";

	if (seconds)
		snprintf(why, sizeof(why), "the collector gave no summary within %d s", seconds);
	fprintf(stderr, "evprof: %s: the trace may be incomplete; evprof info shows what it holds\n", why);
}

/* quiet: print errors only */
static void print_summary(const json_t *summary, const struct run_program *program, const struct run_end *end,
			  bool quiet)
{
	const char *error = json_string_value(json_object_get(summary, "error"));
	const char *path = json_string_value(json_object_get(summary, "trace"));

	if (error)
		output_message("evprof: %s", error);
	else if (quiet)
		return;
	else if (number_in(summary, "processes") == 0 || !path)
		print_nothing_joined(program->argv[0], json_string_value(json_object_get(summary, "absent")));
	else
		print_trace_summary(summary, path, program->session->id, end);
}

/* Ends with the program's status, or by its signal. */
static int end_like(int status)
{
	struct rlimit no_core = {0, 0};
	int number;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	number = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &no_core); /* the program has dumped its own core */
	fflush(NULL);
	signal(number, SIG_DFL);
	raise(number);
	return 128 + number;
}

/* The folder of the part of the template that is the same for every trace. */
static void fixed_folder(const char *template, char *folder, size_t bytes)
{
	size_t used = 0;

	for (; *template && used + 1 < bytes; template ++) {
		if (*template == '%' && *++template != '%')
			break;
		folder[used++] = *template;
	}
	while (used > 1 && folder[used - 1] != '/')
		used--;
	folder[used] = 0;
}

/* Creates the output folder. False after one line: a run that cannot be recorded is not started. */
static bool make_folders(const char *output)
{
	char folder[PATH_MAX];
	int error;

	fixed_folder(output, folder, sizeof(folder));
	error = folders_make(folder);
	if (!error && access(folder, W_OK | X_OK) < 0)
		error = -errno;
	if (error)
		fprintf(stderr, "evprof run: cannot write to %s: %s; use -o with another path\n", folder,
			strerror(-error));
	return !error;
}

static int record_program(const struct request *request, const struct run_places *places, struct run_session *session,
			  int *running)
{
	const struct run_command *command = &request->command;
	const struct run_program program = {.argv = command->words,
					    .any_python = command->any_python,
					    .library = places->preload,
					    .session = session,
					    .host = request->socket != NULL};
	json_t *summary;
	struct run_end end = {.status = EXIT_FAILED << 8};
	int error = run_program(&program, &end), seconds;

	if (error == -ECHILD) {
		output_message("evprof run: the exit status of %s is not known: %s", command->words[0],
			       strerror(-error));
	} else if (error) {
		char *problem = run_command_problem(command, error);

		output_message("evprof run: cannot run %s: %s", command->words[0],
			       problem ? problem : strerror(-error));
		free(problem);
		return (error == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN) << 8;
	}
	/* The exit status must be the program's, even if stderr is a closed pipe or a file at its size limit. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	summary = run_session_summary(session, &seconds);
	if (summary)
		print_summary(summary, &program, &end, request->quiet);
	else
		print_no_summary(seconds);
	*running = !summary || number_in(summary, "running") > 0;
	json_decref(summary);
	return end.status;
}

int cmd_run(int argc, char **argv)
{
	struct request request = {0};
	struct run_session session = {.hold = -1};
	struct run_places places;
	int status, running = 0;
	char *output;

	if (!take_options(&request, argc, argv, &status)) {
		run_command_done(&request.command);
		return status;
	}
	use_environment(&request);
	session.wait_ms = request.wait_ms;
	if (run_places_find(&places) < 0) {
		run_places_done(&places, 0);
		run_command_done(&request.command);
		return EXIT_FAILED;
	}
	status = EXIT_FAILED << 8;
	output = absolute_template(request.output);
	if (!output)
		fprintf(stderr, "evprof run: the working directory has no path; use -o with an absolute path\n");
	else if ((request.socket || setting_output_is_none(output) || make_folders(output)) &&
		 run_session_open(&session, request.socket, places.collector, output) == 0)
		status = record_program(&request, &places, &session, &running);
	free(output);
	run_session_done(&session);
	run_places_done(&places, running);
	run_command_done(&request.command);
	return end_like(status);
}
