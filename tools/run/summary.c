/*
 * summary.c - see summary.h.
 *
 *   own time     262 ms  JSONEncoder.iterencode  json/encoder.py:205
 *                196 ms  _thread.lock.acquire
 *   waiting    21 % of the time of its threads: they slept, or waited for a lock or a processor
 *   memory     12.3 MiB at the peak, in Python's allocators
 *   recording  1372425 events, 1.21 MiB of trace, 45.6 ms of the time
 *
 * A line is left out if the trace does not have what it takes: memory needs mem events, the time of recording a
 * calibration, waiting cpu events or, of a single process, the CPU time that evprof run has read. A sampled trace has
 * one more line, with the rate.
 */
#include "run/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/heap_curve.h"
#include "analysis/profile.h"
#include "evprof/control.h"
#include "evprof/system_calls.h"
#include "report/account.h"
#include "report/readable.h"
#include "trace/calibration.h"
#include "trace/cpu_time.h"
#include "trace/reader.h"
#include "trace/stream.h"
#include "util/clock.h"
#include "util/terminal.h"

#define FUNCTIONS 5
#define PREFIX "evprof:   "
#define LABEL_COLUMNS 11
#define NUMBER_COLUMNS 8
#define WHOLE_PERCENT 90 /* of its life a process is recorded in, unless recording begins late or is stopped */
#define TEXT_COLUMNS 120 /* where stderr is not a terminal */

struct summary {
	struct trace *trace;
	struct filter filter; /* everything */
	struct output *output;
	struct terminal terminal;
	uint64_t own_ns; /* of all functions */
	/* Functions of which not all calls were recorded (--budget): estimated, and in no burst. */
	uint32_t estimates, unsampled;
	struct run_end end;
};

/* --- counting --- */

static int count(struct summary *summary, struct profile *profile, bool calibrate)
{
	const struct profile_options options = {.filter = &summary->filter, .calibrate = calibrate};
	struct progress progress = {0};

	return profile_add(profile, summary->trace, &options, &progress);
}

static uint64_t own_ns(const struct profile *profile)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < profile->labels.count; i++)
		sum += profile->times[i].own_ns;
	return sum;
}

/* Counts once more, otherwise. Returns 0 or -ENOMEM. */
static int count_again(struct summary *summary, enum cpu_clock clock, bool calibrate, uint64_t *ns)
{
	struct profile profile = {0};
	int error;

	summary->trace->clock = clock;
	error = count(summary, &profile, calibrate);
	*ns = own_ns(&profile);
	summary->trace->clock = CPU_CLOCK_WALL;
	profile_done(&profile);
	return error;
}

/* --- lines --- */

static void put_label(struct summary *summary, const char *label)
{
	output_format(summary->output, PREFIX "%-*s", LABEL_COLUMNS, label);
}

/* The numbers of the functions with most own time, the most first. Returns how many there are. */
static size_t find_first(const struct profile *profile, uint32_t first[FUNCTIONS])
{
	size_t found = 0, at;

	for (uint32_t i = 0; i < profile->labels.count; i++) {
		uint64_t own = profile->times[i].own_ns;

		for (at = found; at && profile->times[first[at - 1]].own_ns < own; at--)
			if (at < FUNCTIONS)
				first[at] = first[at - 1];
		if (at == FUNCTIONS || !own)
			continue;
		first[at] = i;
		found += found < FUNCTIONS;
	}
	return found;
}

static int put_functions(struct summary *summary)
{
	unsigned rest = summary->terminal.columns - (unsigned)strlen(PREFIX) - LABEL_COLUMNS - NUMBER_COLUMNS - 2;
	char text[TERMINAL_NUMBER_BYTES];
	struct profile profile = {0};
	struct readable readable;
	uint32_t first[FUNCTIONS];
	unsigned name = 0, place = 0;
	int error = readable_init(&readable);
	size_t functions;

	if (error)
		return error;
	error = count(summary, &profile, false);
	summary->own_ns = own_ns(&profile);
	for (uint32_t i = 0; i < profile.labels.count; i++) {
		summary->estimates += profile_is_estimate(&profile.times[i]);
		summary->unsampled += profile_is_least(&profile.times[i]);
	}
	functions = error ? 0 : find_first(&profile, first);
	for (size_t i = 0; i < functions; i++) {
		readable_set_label(&readable, &profile.labels.at[first[i]]);
		name = readable.name_width > name ? readable.name_width : name;
		place = readable.place_width > place ? readable.place_width : place;
	}
	for (size_t i = 0; i < functions; i++) {
		put_label(summary, i ? "" : "own time");
		output_format(summary->output, "%*s  ", NUMBER_COLUMNS,
			      terminal_time((double)profile.times[first[i]].own_ns, text));
		readable_set_label(&readable, &profile.labels.at[first[i]]);
		readable_put(&readable, &summary->terminal, summary->output, readable_name_columns(name, place, rest),
			     rest);
		output_char(summary->output, '\n');
	}
	readable_done(&readable);
	profile_done(&profile);
	return error;
}

static void put_sampling(struct summary *summary)
{
	char text[TRACE_SAMPLING_BYTES];
	int rate = trace_sample_rate(summary->trace);

	if (!rate)
		return;
	put_label(summary, "sampling");
	output_format(summary->output, "%s\n", trace_sampling_text(rate, text));
}

static void put_waiting_share(struct summary *summary, double share)
{
	put_label(summary, "waiting");
	output_format(summary->output,
		      "%.0f %% of the time of its threads: they slept, or waited for a lock or a processor\n",
		      100.0 * share);
}

/*
 * The lives of the threads, from their first event to their last. 0: there are other processes than the program, or
 * less than nearly all of its life was recorded.
 */
static int64_t lives_ns(const struct summary *summary)
{
	const struct trace *trace = summary->trace;
	int64_t lives = 0, main_ns = 0, life;

	for (uint32_t i = 0; i < trace->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[i];
		const struct trace_process *process;

		if (!thread || !thread->place_count)
			continue;
		process = trace_process_of(trace, thread);
		if (process->pid != summary->end.pid)
			return 0;
		life = trace_ns(process, thread->places[thread->place_count - 1].last_ticks) -
		       trace_ns(process, thread->places[0].first_ticks);
		lives += life;
		main_ns += (pid_t)thread->tid == summary->end.pid ? life : 0;
	}
	return main_ns >= summary->end.wall_ns / 100 * WHOLE_PERCENT ? lives : 0;
}

/* The share is a little too small: the process runs before its first event, and may have threads that run no Python. */
static void put_waiting_of_process(struct summary *summary)
{
	int64_t lives = summary->end.cpu_ns > 0 ? lives_ns(summary) : 0;

	if (lives > summary->end.cpu_ns)
		put_waiting_share(summary, 1 - (double)summary->end.cpu_ns / (double)lives);
}

static int put_waiting(struct summary *summary)
{
	uint64_t waited;
	int error;

	if (!trace_records(summary->trace, "cpu") || !cpu_time_known(summary->trace) || !summary->own_ns) {
		put_waiting_of_process(summary);
		return 0;
	}
	error = count_again(summary, CPU_CLOCK_WAITED, false, &waited);
	put_waiting_share(summary, (double)waited / (double)summary->own_ns);
	return error;
}

static void note_bytes(void *owner, int64_t ns, uint64_t bytes)
{
	uint64_t *most = owner;

	(void)ns;
	*most = bytes > *most ? bytes : *most;
}

static int put_memory(struct summary *summary)
{
	const struct trace *trace = summary->trace;
	const struct trace_process *largest = NULL;
	bool native = trace_records(trace, "malloc");
	uint64_t most = 0;
	char text[TERMINAL_NUMBER_BYTES];
	int error = 0;

	if (!trace_records(trace, "mem"))
		return 0;
	for (uint32_t i = 0; i < trace->process_count && !error; i++) {
		uint64_t peak = 0;

		if (!trace->processes[i])
			continue;
		error = heap_curve(summary->trace, trace->processes[i], &summary->filter,
				   native ? HEAP_ALL : HEAP_PYTHON, 0, note_bytes, &peak);
		largest = !largest || peak > most ? trace->processes[i] : largest;
		most = peak > most ? peak : most;
	}
	put_label(summary, "memory");
	output_format(summary->output, "%s at the %s, %s", terminal_bytes(most, text),
		      trace_is_alive_only(trace) ? "end" : "peak",
		      native ? "with what native code allocates" : "in Python's allocators");
	if (trace_memory_interval(trace))
		output_string(summary->output, " (estimated)");
	if (largest && trace->process_count > 1)
		output_format(summary->output, " (process %lld)", (long long)largest->pid);
	output_char(summary->output, '\n');
	return error;
}

/* What recording has cost under a budget, in all processes whose account the trace has. */
static void put_account(struct summary *summary)
{
	char text[TERMINAL_NUMBER_BYTES];
	struct trace_account account;

	if (!trace_account(summary->trace, &account))
		return;
	output_format(summary->output, "; it cost %s of CPU time until Python's end, %.1f%% (budget: %s)",
		      terminal_time(account.cost_ms * 1e6, text), trace_account_percent(&account),
		      getenv(ENV_BUDGET) ? getenv(ENV_BUDGET) : "?");
	account_put_left_out(&account, summary->output);
}

static int put_recording(struct summary *summary, uint64_t events)
{
	char text[TERMINAL_NUMBER_BYTES];
	uint64_t left;
	int error = 0;

	put_label(summary, "recording");
	output_format(summary->output, "%" PRIu64 " events, %s of trace", events,
		      terminal_bytes(summary->trace->size_bytes, text));
	if (calibration_state(summary->trace) == CALIBRATION_GOOD) {
		error = count_again(summary, CPU_CLOCK_WALL, true, &left);
		if (left < summary->own_ns)
			output_format(summary->output, ", %s of the time (measured; report --calibrate subtracts it)",
				      terminal_time((double)(summary->own_ns - left), text));
	} else if (summary->estimates) {
		output_format(summary->output, "; estimates of %u of the functions", summary->estimates);
	} else if (summary->unsampled) {
		output_format(summary->output, "; calls of %u of the functions may be missing", summary->unsampled);
	} else if (!getenv(ENV_BUDGET) && !trace_sample_rate(summary->trace)) {
		output_string(summary->output, "; --calibrate measures its time");
	}
	put_account(summary);
	output_char(summary->output, '\n');
	return error;
}

/* Whether events may have left the trace: it keeps a stretch, or what is alive. */
static bool is_kept(const struct trace *trace)
{
	bool kept = trace_is_alive_only(trace);

	for (uint32_t i = 0; i < trace->process_count; i++)
		kept |= trace->processes[i] && trace_process_is_kept(trace->processes[i]);
	return kept;
}

/* A collector with another root directory may have written elsewhere. Of a trace in parts (--rotate) it is the last. */
static bool is_of_run(const struct trace *trace, const struct run_recording *recording)
{
	char digits[CONTROL_SESSION_DIGITS + 1];

	for (size_t i = 0; i < sizeof(trace->header.session); i++)
		snprintf(digits + 2 * i, 3, "%02x", trace->header.session[i]);
	return trace->complete && strcmp(digits, recording->session) == 0 &&
	       (trace->end.events == recording->events || is_kept(trace));
}

/* Writes the summary. Returns 0, or another number if it is of no use. */
static int summarize(const struct run_recording *recording, const struct run_end *end, struct output *output)
{
	struct summary summary = {.output = output, .terminal = terminal_find(STDERR_FILENO), .end = *end};
	char why[256];
	int error = trace_open(&summary.trace, recording->trace, why, sizeof(why));

	if (error)
		return error;
	if (!summary.terminal.is)
		summary.terminal.columns = TEXT_COLUMNS;
	summary.terminal.columns = summary.terminal.columns < 50 ? 50 : summary.terminal.columns;
	if (!is_of_run(summary.trace, recording) || summary.trace->end.events > RUN_SUMMARY_EVENTS)
		error = -ESTALE;
	if (!error)
		error = put_functions(&summary);
	put_sampling(&summary);
	if (!error)
		error = put_waiting(&summary);
	if (!error)
		error = put_memory(&summary);
	if (!error)
		error = put_recording(&summary, recording->events);
	trace_close(summary.trace);
	return error ? error : output->error;
}

/* --- another process, so that nothing that happens in it changes what evprof run does --- */

static void become_reader(const struct run_recording *recording, const struct run_end *end, int to)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct output output;

	/* terminal_find() looks at stderr; a message of the reader must not be shown. */
	if (output_open_memory(&output) < 0 || summarize(recording, end, &output) != 0 || null < 0)
		_exit(1);
	dup2(null, STDERR_FILENO);
	_exit(system_write_all(to, output.buffer, output.used) ? 1 : 0);
}

/* Reads up to the end, or to the time. Returns the number of bytes, or -1. */
static ssize_t read_until(int from, char *text, size_t room, int64_t end_ms)
{
	size_t used = 0;

	for (;;) {
		struct pollfd wait = {.fd = from, .events = POLLIN};
		int64_t left = end_ms - time_ms(CLOCK_MONOTONIC);
		ssize_t bytes;

		if (left <= 0 || poll(&wait, 1, (int)left) <= 0 || used == room)
			return -1;
		bytes = read(from, text + used, room - used);
		if (bytes <= 0)
			return bytes < 0 ? -1 : (ssize_t)used;
		used += (size_t)bytes;
	}
}

void run_summary_print(const struct run_recording *recording, const struct run_end *end)
{
	static char text[16384];
	int ends[2], status = -1;
	ssize_t bytes;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	fflush(NULL);
	child = fork();
	if (child == 0)
		become_reader(recording, end, ends[1]);
	close(ends[1]);
	bytes = child > 0 ? read_until(ends[0], text, sizeof(text), time_ms(CLOCK_MONOTONIC) + RUN_SUMMARY_MS) : -1;
	if (child > 0 && bytes < 0)
		kill(child, SIGKILL);
	close(ends[0]);
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0 && bytes > 0)
		fwrite(text, 1, (size_t)bytes, stderr);
}
