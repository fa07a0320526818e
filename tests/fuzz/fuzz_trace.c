/*
 * fuzz_trace.c - any bytes as a trace, read by each verb of evprof and written in each format.
 *
 * The first byte is the number of the command line, the second that of the filter, the rest is the file. Nothing may
 * crash or leak, the exit status is one of evprof's, what claims to be JSON is JSON, and a cut of any trace is whole.
 * Built by `make fuzz`.
 */
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/trace/reader.h"
#include "tools/cmd/verbs.h"
#include "trace_mutator.h"

#define PREFIX 2
#define WORDS_MAX 40
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
				 uint8_t *out, size_t room, unsigned seed);

static const struct command {
	int (*verb)(int argc, char **argv);
	const char *words;
	bool filters; /* takes the options about what is shown */
	bool json;
} commands[] = {
    {cmd_export, "-f chrome -o - TRACE", true, true},
    {cmd_export, "-f perfetto -o - TRACE", true, false},
    {cmd_export, "-f pstats -o - TRACE", true, false},
    {cmd_export, "-f csv -o - --clean-file-name re:^/ --no-freed-sizes TRACE", true, false},
    {cmd_export, "-f callgrind -o - TRACE", true, false},
    {cmd_export, "-f callgrind --zip -o - TRACE", true, false},
    {cmd_export, "-f folded --weight bytes -o - TRACE", true, false},
    {cmd_export, "-f folded --weight live --from 1us -o - TRACE", true, false},
    {cmd_export, "-f folded --weight peak -o - TRACE", true, false},
    {cmd_export, "-f speedscope -o - TRACE", true, true},
    {cmd_export, "-f speedscope-sampled -o - TRACE", true, true},
    {cmd_export, "-f pprof -o - TRACE", true, false},
    {cmd_export, "-f firefox -o - TRACE", true, true},
    {cmd_export, "-f html -o - TRACE", true, false},
    {cmd_info, "TRACE", false, false},
    {cmd_info, "--json TRACE", false, true},
    {cmd_info, "--quick TRACE", false, false},
    {cmd_dump, "TRACE", true, false},
    {cmd_report, "TRACE", true, false},
    {cmd_report, "--callers --sort time --limit 5 TRACE", true, false},
    {cmd_report, "--callees --calibrate --strip-dirs TRACE", true, false},
    {cmd_report, "--by process --format json TRACE", true, true},
    {cmd_report, "--by thread --format csv --reverse TRACE", true, false},
    {cmd_report, "--by module --restrict 0.5 --restrict a --restrict 3 TRACE", true, false},
    {cmd_report, "--between a,b --callers --json TRACE", true, true},
    {cmd_report, "TRACE TRACE", true, false},
    {cmd_report, "--by thread --format json --callers --callees TRACE", true, true},
    {cmd_report, "--by module --format json --sort cumulative,name,line TRACE", true, true},
    {cmd_report, "--sort pcalls,stdname,filename,nfl --restrict (a|b) --format csv --callers TRACE", true, false},
    {cmd_annotate, "TRACE", true, false},
    {cmd_annotate, "--by thread -f json TRACE", true, false},
    {cmd_diff, "TRACE TRACE", true, false},
    {cmd_diff, "--json --sort calls TRACE TRACE", true, true},
    {cmd_diff, "--csv TRACE TRACE", true, false},
    {cmd_check, "--max-calls TOTAL=9 --max-calls *:*=1 --max-time *:a*=1us --max-alloc 1K --junit /dev/null TRACE",
     false, false},
    {cmd_check, "--max-lost 0 --max-calls a:b=0 --from 5 --to 1us TRACE", false, false},
    {cmd_cut, "--from 10 --to 1us -o CUT TRACE", false, false},
    {cmd_cut, "--span a --number 1 -o CUT TRACE", false, false},
    {cmd_cut, "--between a,b --number 1 -o CUT TRACE", false, false},
    {cmd_cut, "--to 100 -o CUT TRACE", false, false},
    {cmd_cut, "--alive -o CUT TRACE", false, false},
    {cmd_memory, "--json --leaks=all TRACE", true, true},
};

static const char *const filters[] = {
    "",
    "",
    "",
    "--max-depth 2",
    "--min-duration 5",
    "--from 10 --to 1us",
    "--from 1us",
    "--to 100",
    "--include *a*",
    "--exclude re:^a --exclude-syspath",
    "--process 1",
    "--thread 1 --max-depth 3",
};

static int file = -1;
static int out = -1;
static char path[64];
static char cut[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	file = memfd_create("trace", MFD_CLOEXEC);
	out = memfd_create("out", MFD_CLOEXEC);
	if (file < 0 || out < 0 || dup2(out, STDOUT_FILENO) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	snprintf(cut, sizeof(cut), "/tmp/evprof-fuzz-%d.evp", (int)getpid());
	/* Whoever reports a finding has its own way to descriptor 2. */
	stderr = fopen("/dev/null", "we");
	if (!stderr)
		abort();
	return 0;
}

static void fill(int fd, const uint8_t *bytes, size_t count)
{
	if (ftruncate(fd, 0) < 0 || pwrite(fd, bytes, count, 0) != (ssize_t)count)
		abort();
}

/* Splits at spaces, in place. */
static int add_words(char **arguments, int count, char *words)
{
	char *state = NULL;

	for (char *word = strtok_r(words, " ", &state); word && count < WORDS_MAX; word = strtok_r(NULL, " ", &state))
		arguments[count++] = strcmp(word, "TRACE") == 0 ? path : strcmp(word, "CUT") == 0 ? cut : word;
	return count;
}

static void check_json(void)
{
	json_error_t error;
	json_t *object;
	FILE *stream = fopen("/proc/self/fd/1", "re");

	object = stream ? json_loadf(stream, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error) : NULL;
	if (!object) {
		dprintf(STDERR_FILENO, "no JSON: %s at byte %d\n", error.text, error.position);
		abort();
	}
	json_decref(object);
	fclose(stream);
}

static void check_cut(void)
{
	char *arguments[] = {(char *)"info", (char *)"--json", cut, NULL};
	struct trace *trace = NULL;
	char text[512];

	if (trace_open(&trace, cut, text, sizeof(text)) < 0) {
		dprintf(STDERR_FILENO, "the cut cannot be read: %s\n", text);
		abort();
	}
	trace_check(trace, NULL, NULL);
	if (!trace->complete || trace->damage.holes || trace->damage.chunks || trace->damage.bad_index) {
		trace_verdict(trace, text, sizeof(text));
		dprintf(STDERR_FILENO, "the cut is damaged: %s\n", text);
		abort();
	}
	trace_close(trace);
	optind = 0;
	if (cmd_info(3, arguments) > CLI_DAMAGED)
		abort();
	unlink(cut);
}

static void run(const struct command *command, const char *filter)
{
	char *arguments[WORDS_MAX + 1] = {(char *)"verb"};
	char options[128];
	char words[256];
	int count = 1;
	int status;

	snprintf(options, sizeof(options), "%s", command->filters ? filter : "");
	snprintf(words, sizeof(words), "%s", command->words);
	count = add_words(arguments, count, options);
	count = add_words(arguments, count, words);
	optind = 0;
	status = command->verb(count, arguments);
	fflush(stdout);
	if (status < 0 || status > 2)
		abort();
	if (command->json && status < CLI_FAILED)
		check_json();
	if (command->verb == cmd_cut && status < CLI_FAILED)
		check_cut();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < PREFIX)
		return 0;
	fill(file, data + PREFIX, size - PREFIX);
	fill(out, NULL, 0);
	lseek(STDOUT_FILENO, 0, SEEK_SET);
	run(&commands[data[0] % COUNT_OF(commands)], filters[data[1] % COUNT_OF(filters)]);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	return trace_mutate(data, size, room, PREFIX, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size,
				 uint8_t *into, size_t room, unsigned seed)
{
	return trace_cross(one, one_size, other, other_size, into, room, PREFIX, seed);
}
