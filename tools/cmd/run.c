/*
 * run.c - evprof run: runs a program with the library preloaded, and prints what was recorded.
 *
 * Ends as the program ends: with its exit status, or by its signal.
 */
#include <errno.h>
#include <getopt.h>
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
#include "evprof/shown_path.h"
#include "cmd/verbs.h"
#include "run/places.h"
#include "run/program.h"
#include "run/session.h"
#include "run/settings.h"
#include "util/cli.h"
#include "util/output.h"

/* As in env(1) and nohup(1). */
enum { EXIT_FAILED = 125, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static const char help_text[] =
    "usage: evprof run [options] -- PROGRAM [arguments]\n"
    "\n"
    "Runs a program and records what Python does in it and in its children. Its input, output, exit status and "
    "signals\n"
    "are its own. A file.py that cannot be executed is run by python3.\n"
    "\n"
    "  -o, --output TEMPLATE   the trace file; %p pid, %n program, %h host, %t time\n"
    "                          (default: $EVPROF_OUTPUT or " OUTPUT_DEFAULT ")\n"
    "      --events LIST       of call, c_call, exception, mem (all of these), line, cpu\n"
    "      --sample[=RATE]     sample stacks RATE times a second (default: 100), nearly free\n"
    "      --include LIST, --exclude LIST, --exclude-syspath\n"
    "                          which functions are recorded: patterns as for evprof report, with commas\n"
    "      --format LIST       also write the trace in these formats of evprof export, next to it\n"
    "      --calibrate         measure the cost of the hooks, for evprof report --calibrate\n"
    "      --native            record the native stack of each allocation\n"
    "      --ring-size BYTES   buffer of each thread\n"
    "      --on-full WHAT      when a buffer is full: wait or drop\n"
    "      --no-children       do not follow child processes\n"
    "      --socket SOCKET     use the host's collector, which decides where the trace goes (or $EVPROF_SOCKET)\n"
    "      --log LEVEL         messages of evprof in the program\n"
    "      --wait[=SECONDS]    wait for processes that still run when the program has ended\n"
    "  -q, --quiet             no line at the end, unless something went wrong\n"
    "\n"
    "Exit status: that of the program; 125 if evprof fails, 126 or 127 if the program cannot be run or found.\n";

struct request {
	const char *output;
	const char *socket;
	bool quiet;
	int wait_ms;
	char *const *program;
};

/* --- options --- */

static bool take_wait(struct request *request, const char *text)
{
	int64_t seconds = INT_MAX / 1000;

	if (text && !cli_number("run", "--wait", text, 0, &seconds))
		return false;
	request->wait_ms = seconds < INT_MAX / 1000 ? (int)seconds * 1000 : INT_MAX;
	return true;
}

/* False after one line on stderr. */
static bool take_option(struct request *request, struct run_settings *settings, int option, const char *word)
{
	if (run_is_setting(option))
		return run_settings_take(settings, option, optarg);
	switch (option) {
	case 'o':
		request->output = optarg;
		return run_settings_output_is_good(optarg);
	case 's':
		request->socket = optarg;
		return true;
	case 'w':
		return take_wait(request, optarg);
	case 'q':
		return request->quiet = true;
	}
	return cli_option_wrong("run", word);
}

/* Returns 0 to continue, else the exit status + 1. */
static int take_options(struct request *request, int argc, char **argv)
{
	static const struct option options[] = {{"output", required_argument, NULL, 'o'},
						{"socket", required_argument, NULL, 's'},
						RUN_SETTINGS,
						{"wait", optional_argument, NULL, 'w'},
						{"quiet", no_argument, NULL, 'q'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct run_settings settings = {0};
	int option;

	opterr = 0;
	while ((option = cli_getopt(argc, argv, "+o:qh", options)) != -1) {
		if (option == 'h') {
			fputs(help_text, stdout);
			return 1;
		}
		if (!take_option(request, &settings, option, cli_option(argv)))
			return EXIT_FAILED + 1;
	}
	request->program = argv + optind;
	if (optind == argc) {
		cli_misused("run", "a program is missing");
		return EXIT_FAILED + 1;
	}
	return run_settings_finish(&settings) ? 0 : EXIT_FAILED + 1;
}

static void use_environment(struct request *request)
{
	const char *output = getenv(ENV_OUTPUT);
	const char *socket = getenv(ENV_SOCKET);

	if (!request->output) /* the library reports an invalid one and uses the default */
		request->output = output && output[0] && !setting_output(output) ? output : OUTPUT_DEFAULT;
	if (!request->socket && socket && socket[0])
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

static void print_trace_summary(const json_t *summary, const char *path)
{
	long long processes = number_in(summary, "processes");
	long long running = number_in(summary, "running"), unsampled = number_in(summary, "unsampled");
	static char text[SHOWN_PATH_BYTES];
	const char *shown = shown_path(path, text);

	fprintf(stderr, "evprof: %lld events of %lld process%s, %lld lost, in %s; ", number_in(summary, "events"),
		processes, processes == 1 ? "" : "es", number_in(summary, "lost"), shown);
	if (running > 0)
		fprintf(stderr, "%lld still run%s and the trace grows; ", running, running == 1 ? "s" : "");
	fprintf(stderr, "show it with: evprof report %s\n", shown);
	if (unsampled > 0)
		output_message("evprof: the sampler of %lld process%s was killed; later samples are missing", unsampled,
			       unsampled == 1 ? "" : "es");
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
static void print_summary(const json_t *summary, const char *program, bool quiet)
{
	const char *error = json_string_value(json_object_get(summary, "error"));
	const char *path = json_string_value(json_object_get(summary, "trace"));

	if (error)
		output_message("evprof: %s", error);
	else if (quiet)
		return;
	else if (number_in(summary, "processes") == 0 || !path)
		print_nothing_joined(program, json_string_value(json_object_get(summary, "absent")));
	else
		print_trace_summary(summary, path);
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
	const struct run_program program = {
	    .argv = request->program, .library = places->preload, .session = session, .host = request->socket != NULL};
	json_t *summary;
	int status = EXIT_FAILED << 8, seconds;
	int error = run_program(&program, &status);

	if (error == -ECHILD) {
		output_message("evprof run: the exit status of %s is not known: %s", request->program[0],
			       strerror(-error));
	} else if (error) {
		output_message("evprof run: cannot run %s: %s", request->program[0], strerror(-error));
		return (error == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN) << 8;
	}
	/* The exit status must be the program's, even if stderr is a closed pipe. */
	signal(SIGPIPE, SIG_IGN);
	summary = run_session_summary(session, &seconds);
	if (summary)
		print_summary(summary, request->program[0], request->quiet);
	else
		print_no_summary(seconds);
	*running = !summary || number_in(summary, "running") > 0;
	json_decref(summary);
	return status;
}

int cmd_run(int argc, char **argv)
{
	struct request request = {0};
	struct run_session session = {.hold = -1};
	struct run_places places;
	int status = take_options(&request, argc, argv);
	int running = 0;
	char *output;

	if (status)
		return status - 1;
	use_environment(&request);
	session.wait_ms = request.wait_ms;
	if (run_places_find(&places) < 0) {
		run_places_done(&places, 0);
		return EXIT_FAILED;
	}
	status = EXIT_FAILED << 8;
	output = absolute_template(request.output);
	if (!output)
		fprintf(stderr, "evprof run: the working directory has no path; use -o with an absolute path\n");
	else if ((request.socket || make_folders(output)) &&
		 run_session_open(&session, request.socket, places.collector, output) == 0)
		status = record_program(&request, &places, &session, &running);
	free(output);
	run_session_done(&session);
	run_places_done(&places, running);
	return end_like(status);
}
