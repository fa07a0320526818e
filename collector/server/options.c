/*
 * options.c - parses the command line of evprof-collector. Called by main() only.
 */
#include "server/options.h"

#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/control.h"
#include "evprof/settings.h"
#include "evprof/trigger.h"
#include "evprof/version.h"
#include "server/metrics_http.h"
#include "trace/folder_list.h"
#include "trace/output.h"

enum {
	OPTION_PRIVATE = 256,
	OPTION_RESUME,
	OPTION_SAMPLE,
	OPTION_SOCKET,
	OPTION_OUTPUT_DIR,
	OPTION_OUTPUT,
	OPTION_FORMAT,
	OPTION_ALLOW,
	OPTION_CONTROL_GROUP,
	OPTION_MAX_PROCESSES,
	OPTION_MAX_TRACE_BYTES,
	OPTION_KEEP,
	OPTION_KEEP_FOR,
	OPTION_KEEP_LAST,
	OPTION_MIN_FREE,
	OPTION_TRIGGER,
	OPTION_ROTATE,
	OPTION_METRICS,
	OPTION_PUSH,
	OPTION_SHIP,
	OPTION_REDACT,
	OPTION_REDACT_ARGV,
	OPTION_LOG,
	OPTION_FOREGROUND
};

static const struct option long_options[] = {
    {"private", no_argument, NULL, OPTION_PRIVATE},
    {"resume", required_argument, NULL, OPTION_RESUME},
    {"sample", required_argument, NULL, OPTION_SAMPLE},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"output-dir", required_argument, NULL, OPTION_OUTPUT_DIR},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"allow-other-users", no_argument, NULL, OPTION_ALLOW},
    {"control-group", required_argument, NULL, OPTION_CONTROL_GROUP},
    {"max-processes-per-user", required_argument, NULL, OPTION_MAX_PROCESSES},
    {"max-trace-bytes-per-user", required_argument, NULL, OPTION_MAX_TRACE_BYTES},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"keep-for", required_argument, NULL, OPTION_KEEP_FOR},
    {"keep-last", required_argument, NULL, OPTION_KEEP_LAST},
    {"min-free", required_argument, NULL, OPTION_MIN_FREE},
    {"trigger", required_argument, NULL, OPTION_TRIGGER},
    {"rotate", required_argument, NULL, OPTION_ROTATE},
    {"metrics", required_argument, NULL, OPTION_METRICS},
    {"push", required_argument, NULL, OPTION_PUSH},
    {"ship", required_argument, NULL, OPTION_SHIP},
    {"redact", required_argument, NULL, OPTION_REDACT},
    {"redact-argv", no_argument, NULL, OPTION_REDACT_ARGV},
    {"log", required_argument, NULL, OPTION_LOG},
    {"foreground", no_argument, NULL, OPTION_FOREGROUND},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "usage: evprof-collector --socket SOCKET --output-dir FOLDER [option]...\n"
    "\n"
    "Receives the events of processes that run with libevprof.so and EVPROF_SOCKET=SOCKET, and writes one trace file\n"
    "for each process tree into FOLDER. Ends on SIGTERM, after it has written all events.\n"
    "\n"
    "  --socket SOCKET      a path, or @NAME for an abstract socket; not needed under systemd's socket activation\n"
    "  --output-dir FOLDER  where trace files go\n"
    "  --output TEMPLATE    their names: %n program, %p pid, %h host, %t time (default: " OUTPUT_DEFAULT ")\n"
    "  --format LIST        also write each finished trace in these formats of evprof export: pstats,html,...\n"
    "  --allow-other-users  accept processes of all users, not only those of this one\n"
    "  --control-group GROUP  whose members may see and control the processes of all users (evprof status, ...)\n"
    "  --max-processes-per-user N  that another user than root and this one may have recorded at a time\n"
    "                       (default: a twentieth of the limit of open files, 4096 at most)\n"
    "  --max-trace-bytes-per-user N  of the traces that are being written for such a user; K, M or G may follow\n"
    "                       (default: a quarter of the room in FOLDER when the collector starts)\n"
    "  --keep SIZE          remove the oldest finished traces, and exports of them, when all take more: 20G\n"
    "  --keep-for TIME      remove finished traces that are older: 7d, 12h, 30m\n"
    "  --keep-last STRETCH  of each trace that is being written: 30s, 256M, or 10m,1G; evprof snapshot copies it\n"
    "                       (default: as EVPROF_KEEP of the program says)\n"
    "  --rotate STRETCH     write a trace in parts, each a trace of its own, after so much: 1h, 1G, or 1h,1G\n"
    "  --trigger LIST       copy what a process did last when a call or a step of an event loop took too long, its\n"
    "                       memory grew, an exception went uncaught: 'app.views:*>500ms,loop>200ms,rss>1G,exception'\n"
    "                       (default: as EVPROF_TRIGGER of the program says)\n"
    "  --min-free SIZE      keep so much of the disk free: remove the oldest, then stop recording\n"
    "  --metrics FILE       write the status for Prometheus each 15 s, for the node exporter's textfile collector;\n"
    "                       FILE ends with .prom\n"
    "  --metrics ADDRESS    ... or let Prometheus ask for it at http://ADDRESS/metrics: 127.0.0.1:PORT or [::1]:PORT;\n"
    "                       both may be given\n"
    "  --push URL           run evprof push with it: profiles to OpenTelemetry at http://HOST:4318; "
    "OTEL_EXPORTER_OTLP_...\n"
    "                       variables count, and what is not sent yet is in FOLDER/.push\n"
    "  --ship COMMAND       run evprof ship with it: a command of the shell for each finished trace and snapshot; $1 "
    "is\n"
    "                       its path, $2 its name; or s3://BUCKET/PREFIX\n"
    "  --redact EXPRESSION  ... of a copy without the texts that it matches, as evprof redact; may come again\n"
    "  --redact-argv        ... of a copy without the words of command lines and titles\n"
    "  --log LEVEL          error, warning (default), info or debug; messages go to stderr\n"
    "  --foreground         stay in the foreground (the default)\n"
    "  --private            serve one process tree on descriptor 3, then end; used by libevprof.so and evprof run\n"
    "  --resume PID         ... after the collector of this first process is gone, in a second trace next to the "
    "first\n"
    "  --sample PID[:ADDRESS]  sample the stacks of one process into its ring; used by libevprof.so and evprof attach\n"
    "  --help, --version\n"
    "\n"
    "SIGTERM and SIGINT end it, after it has written all events. SIGUSR1 writes its status, as evprof status --json,\n"
    "to its log. SIGHUP and SIGUSR2 are ignored.\n";

static enum options_result option_error(const char *text, const char *value)
{
	fprintf(stderr, "evprof-collector: %s%s; see evprof-collector --help\n", text, value);
	return OPTIONS_WRONG;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), bytes = strlen(ending);

	return length >= bytes && strcmp(text + length - bytes, ending) == 0;
}

static enum options_result check_options(const struct options *options)
{
	if (options->resumes && !options->private)
		return option_error("--resume goes with --private", "");
	if (options->sampled)
		return options->private || options->socket ? option_error("--sample goes alone", "") : OPTIONS_RUN;
	if (options->private)
		return options->socket || options->output_dir ? option_error("--private goes alone", "") : OPTIONS_RUN;
	if (!options->socket && !getenv("LISTEN_FDS"))
		return option_error("--socket SOCKET is missing", "");
	if (!options->output_dir)
		return option_error("--output-dir FOLDER is missing", "");
	if ((options->rotate.ns || options->rotate.bytes) && (options->keep.ns || options->keep.bytes))
		return option_error("--rotate and --keep-last exclude each other", "");
	if (options->rotate.alive)
		return option_error("--rotate is a time, a size, or both with a comma, not ", SETTING_KEEP_ALIVE);
	if (!options->ship.command && (options->ship.pattern_count || options->ship.no_arguments))
		return option_error("--redact and --redact-argv are for --ship", "");
	if (!output_is_below(options->output))
		return option_error("--output must be a file name below --output-dir, not ", options->output);
	if ((options->folder_limits.keep_bytes || options->folder_limits.keep_s || options->folder_limits.free_bytes) &&
	    !ends_with(options->output, FOLDER_TRACE_ENDING))
		return option_error("--keep, --keep-for and --min-free need an --output that ends with .evp, not ",
				    options->output);
	return OPTIONS_RUN;
}

static enum options_result take_formats(const char *list, struct options *options)
{
	char known[CONTROL_FORMATS_MAX_BYTES];

	if (setting_formats(list, known, sizeof(known))) {
		fprintf(stderr, "evprof-collector: --format is %s, not %s; see evprof-collector --help\n", known, list);
		return OPTIONS_WRONG;
	}
	if (strlen(list) >= CONTROL_FORMATS_MAX_BYTES)
		return option_error("--format is a list of less than 256 bytes, not ", list);
	options->formats = list;
	return OPTIONS_RUN;
}

static enum options_result take_limit(int option, struct options *options)
{
	uint64_t amount = setting_size(optarg);

	if (!amount || (option == OPTION_MAX_PROCESSES && amount > UINT32_MAX))
		return option == OPTION_MAX_PROCESSES
			   ? option_error("--max-processes-per-user is a number, not ", optarg)
			   : option_error("--max-trace-bytes-per-user is a size, not ", optarg);
	if (option == OPTION_MAX_PROCESSES)
		options->limits.processes = (uint32_t)amount;
	else
		options->limits.trace_bytes = amount;
	return OPTIONS_RUN;
}

static enum options_result take_stretch(const char *option, struct setting_keep *stretch)
{
	const char *allowed = setting_keep(optarg, stretch);

	if (!allowed)
		return OPTIONS_RUN;
	fprintf(stderr, "evprof-collector: %s is %s, not %s; see evprof-collector --help\n", option, allowed, optarg);
	return OPTIONS_WRONG;
}

static enum options_result take_trigger(struct options *options)
{
	struct triggers triggers;
	const char *allowed = setting_triggers(optarg, &triggers);

	options->trigger = optarg;
	if (!allowed)
		return OPTIONS_RUN;
	fprintf(stderr, "evprof-collector: --trigger is %s, not %s; see evprof-collector --help\n", allowed, optarg);
	return OPTIONS_WRONG;
}

static enum options_result take_group(const char *name, struct options *options)
{
	const struct group *group = getgrnam(name);
	char *end;

	if (group) {
		options->control_group = group->gr_gid;
	} else {
		unsigned long number = strtoul(name, &end, 10);

		if (name[0] < '0' || name[0] > '9' || *end || number >= UINT32_MAX)
			return option_error("--control-group is a group of this system, not ", name);
		options->control_group = (gid_t)number;
	}
	options->has_control_group = true;
	return OPTIONS_RUN;
}

/* In seconds; 0: invalid. */
static uint64_t read_duration(const char *text)
{
	static const char units[] = "smhd";
	static const unsigned seconds[] = {1, 60, 3600, 86400};
	char *end;
	unsigned long long number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
	const char *unit = number && *end && !end[1] ? strchr(units, *end) : NULL;

	return unit && number < UINT32_MAX ? number * seconds[unit - units] : 0;
}

static enum options_result take_folder_limit(int option, struct folder_limits *limits)
{
	uint64_t amount = option == OPTION_KEEP_FOR ? read_duration(optarg) : setting_size(optarg);

	if (!amount && option == OPTION_KEEP_FOR)
		return option_error("--keep-for is a time with s, m, h or d, not ", optarg);
	if (!amount)
		return option_error(option == OPTION_KEEP ? "--keep is a size, not " : "--min-free is a size, not ",
				    optarg);
	*(option == OPTION_KEEP_FOR ? &limits->keep_s
	  : option == OPTION_KEEP   ? &limits->keep_bytes
				    : &limits->free_bytes) = amount;
	return OPTIONS_RUN;
}

static enum options_result take_redaction(struct ship_options *ship)
{
	regex_t pattern;

	if (ship->pattern_count == SHIP_PATTERNS_MAX)
		return option_error("there are too many expressions of --redact: ", optarg);
	if (regcomp(&pattern, optarg, REG_EXTENDED))
		return option_error("--redact is a POSIX extended regular expression, not ", optarg);
	regfree(&pattern);
	ship->patterns[ship->pattern_count++] = optarg;
	return OPTIONS_RUN;
}

static enum options_result take_metrics(const char *where, struct options *options)
{
	if (ends_with(where, ".prom"))
		options->metrics = where;
	else if (metrics_http_is_address(where))
		options->metrics_address = where;
	else
		return option_error("--metrics is a file that ends with .prom, or 127.0.0.1:PORT or [::1]:PORT, not ",
				    where);
	return OPTIONS_RUN;
}

static enum options_result take_resume(const char *pid, struct options *options)
{
	options->resumes = strtol(pid, NULL, 10);
	return options->resumes > 0 ? OPTIONS_RUN : option_error("--resume is the pid of a process, not ", pid);
}

static enum options_result take_sample(const char *place, struct options *options)
{
	int found = sscanf(place, "%d:%" SCNx64, &options->sampled, &options->sampling);

	return options->sampled > 0 && (found == 1 || (found == 2 && options->sampling))
		   ? OPTIONS_RUN
		   : option_error("--sample is a pid, or a pid and an address, not ", place);
}

static enum options_result take_output(const char *output, struct options *options)
{
	if (setting_output(output))
		return option_error("--output is a path with %p, %n, %h, %t, and %% for a per cent sign, not ", output);
	options->output = output;
	return OPTIONS_RUN;
}

static enum options_result take_log(const char *level, struct options *options)
{
	if (setting_log_level(level, &options->log_level))
		return option_error("--log is error, warning, info or debug, not ", level);
	return OPTIONS_RUN;
}

/* Options that set a text or a flag as it stands. False: it is none of these. */
static bool take_as_it_is(int option, struct options *options)
{
	const struct {
		int option;
		const char **text;
		bool *flag;
	} fields[] = {
	    {OPTION_SOCKET, &options->socket, NULL},
	    {OPTION_OUTPUT_DIR, &options->output_dir, NULL},
	    {OPTION_PUSH, &options->push, NULL},
	    {OPTION_SHIP, &options->ship.command, NULL},
	    {OPTION_PRIVATE, NULL, &options->private},
	    {OPTION_ALLOW, NULL, &options->allow_other_users},
	    {OPTION_REDACT_ARGV, NULL, &options->ship.no_arguments},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].option != option)
			continue;
		if (fields[i].text)
			*fields[i].text = optarg;
		else
			*fields[i].flag = true;
		return true;
	}
	return false;
}

/* Handles one option. word: its spelling on the command line. OPTIONS_RUN: continue. */
static enum options_result take_option(int option, const char *word, struct options *options)
{
	if (take_as_it_is(option, options))
		return OPTIONS_RUN;
	switch (option) {
	case OPTION_RESUME:
		return take_resume(optarg, options);
	case OPTION_SAMPLE:
		return take_sample(optarg, options);
	case OPTION_OUTPUT:
		return take_output(optarg, options);
	case OPTION_FORMAT:
		return take_formats(optarg, options);
	case OPTION_CONTROL_GROUP:
		return take_group(optarg, options);
	case OPTION_MAX_PROCESSES:
	case OPTION_MAX_TRACE_BYTES:
		return take_limit(option, options);
	case OPTION_KEEP:
	case OPTION_KEEP_FOR:
	case OPTION_MIN_FREE:
		return take_folder_limit(option, &options->folder_limits);
	case OPTION_KEEP_LAST:
		return take_stretch("--keep-last", &options->keep);
	case OPTION_ROTATE:
		return take_stretch("--rotate", &options->rotate);
	case OPTION_TRIGGER:
		return take_trigger(options);
	case OPTION_METRICS:
		return take_metrics(optarg, options);
	case OPTION_REDACT:
		return take_redaction(&options->ship);
	case OPTION_FOREGROUND:
		return OPTIONS_RUN;
	case OPTION_LOG:
		return take_log(optarg, options);
	case 'h':
		fputs(help_text, stdout);
		return OPTIONS_DONE;
	case 'V':
		puts("evprof-collector " EVPROF_VERSION);
		return OPTIONS_DONE;
	default:
		return option_error("an option is not known or lacks its value: ", word);
	}
}

enum options_result options_parse(int argc, char **argv, struct options *options)
{
	enum options_result result = OPTIONS_RUN;
	int option;

	opterr = 0;
	*options = (struct options){.output = OUTPUT_DEFAULT, .log_level = LOG_WARNING};
	while (result == OPTIONS_RUN && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		/* There are no short options: optind stays at a word like -abc. */
		result = take_option(option, argv[optind - (argv[optind - 1][0] == '-')], options);
	if (result != OPTIONS_RUN)
		return result;
	if (optind < argc)
		return option_error("unexpected argument ", argv[optind]);
	return check_options(options);
}
