/*
 * push.c - see push.h.
 *
 * Two threads: this one reads traces and makes requests, the other one sends them (sender.h). SIGTERM and SIGINT end it
 * after the current interval has been queued, and what waits has been sent or the time for that is over; a second one
 * ends it at once.
 */
#include "push/push.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/collectors.h"
#include "push/follow.h"
#include "push/sender.h"
#include "push/settings.h"
#include "push/watch_folder.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/grow.h"
#include "util/output.h"
#include "watch/host.h"

#define LOOK_MS 1000 /* between two looks at what is recorded: memory events of that time are in memory */
#define END_MS 50
#define SILENT_NS INT64_C(10000000000) /* a file that is not written for so long will not become a trace */

struct push_run {
	const struct push_request *request;
	struct push_settings settings;
	struct sender sender;
	struct push_target target;
	int signal_fd; /* -1: signals are ignored */
	volatile bool stop;
	struct push_source **sources;
	size_t source_count, sources_allocated;
	struct watch_folder folder;
	struct u64_map taken; /* traces that were taken, by session and time */
	size_t unread;	      /* traces that cannot be read */
	int64_t began_ns;     /* CLOCK_MONOTONIC: traces that began later are pushed from their start */
};

/* --- sources --- */

/* A program that is run again has another file at its path; what the first one wrote is taken to its end. */
static struct push_source *find_source(const struct push_run *run, const char *path)
{
	for (size_t i = 0; i < run->source_count; i++) {
		const struct trace *trace = run->sources[i]->trace;

		if ((strcmp(trace->path, path) == 0 && !trace_is_replaced(trace)) || trace_is_at(trace, path))
			return run->sources[i];
	}
	return NULL;
}

/* Parts, snapshots and cuts have what the trace has whose session and time they keep. */
static uint64_t key_of(const struct trace *trace)
{
	const struct trace_header *header = &trace->header;
	struct text session = {(const char *)header->session, sizeof(header->session)};

	return (text_hash(TEXT_HASH_BEGIN, session) ^ header->created_ns) | 1;
}

/* NAME-part-N.evp: what has left the trace by then (--rotate), and is in no other part. */
static bool is_part(const char *path)
{
	const char *name = strrchr(path, '/'), *part = NULL;

	for (name = name ? name + 1 : path; (name = strstr(name, "-part-")); name += strlen("-part-"))
		part = name + strlen("-part-");
	return part && *part && strcmp(part + strspn(part, "0123456789"), ".evp") == 0;
}

/* Whether the trace has become another file, as that of a session that has ended: evprof cut makes it anew. */
static bool is_followed(const struct push_run *run, const struct trace *trace)
{
	for (size_t i = 0; i < run->source_count; i++)
		if (key_of(run->sources[i]->trace) == key_of(trace))
			return true;
	return false;
}

/* Returns as push_source_open() does. What was found in the folder is not taken if it has what was taken already. */
static int open_source(struct push_run *run, struct push_source **source, const char *path, int64_t now_ns)
{
	int error = grow_by_one(&run->sources, &run->sources_allocated, run->source_count, sizeof(*run->sources));
	uint64_t *taken;

	*source = NULL;
	if (!error)
		error = push_source_open(source, path, run->began_ns, now_ns);
	if (!*source)
		return error;
	taken = u64_map_make(&run->taken, key_of((*source)->trace));
	if (!taken || (*taken && now_ns == INT64_MAX) || is_followed(run, (*source)->trace)) {
		push_source_free(*source);
		*source = NULL;
		return taken ? 0 : -ENOMEM;
	}
	*taken |= !is_part(path);
	run->sources[run->source_count++] = *source;
	return 0;
}

static void note_failure(struct push_run *run, const struct push_source *source, int error)
{
	if (error && !run->target.failed)
		output_message("evprof push: %s: %s", source->path, strerror(-error));
	run->target.failed |= error != 0;
}

/* A trace that has just begun has no header yet. */
static void note_unread(struct push_run *run, const char *path, int error)
{
	if (error && error != -EINVAL && !run->unread++)
		output_message("evprof push: %s: %s; such traces are not pushed", path, strerror(-error));
}

/* A trace that the answer of a collector names: all events until that time are in the file. */
static void take_trace(struct push_run *run, const json_t *described)
{
	const char *path = json_string_value(json_object_get(described, "path"));
	int64_t until_ns = json_integer_value(json_object_get(described, "until_ns"));
	struct push_source *source = path ? find_source(run, path) : NULL;
	int error = 0;

	if (!path || until_ns <= 0)
		return;
	if (source)
		error = trace_follow(source->trace);
	else
		note_unread(run, path, open_source(run, &source, path, until_ns));
	if (!source)
		return;
	source->is_listed = true;
	if (!error)
		error = push_source_count(source, &run->target, until_ns);
	note_failure(run, source, error);
}

/* No collector names it any more. Returns whether it is still written: its collector does not answer. */
static bool follow_unlisted(struct push_run *run, struct push_source *source)
{
	int error = trace_follow(source->trace);

	if (!error)
		error = push_source_count(source, &run->target, INT64_MAX);
	if (!error && !source->trace->damage.growing)
		error = push_source_emit(source, &run->target);
	note_failure(run, source, error);
	return source->trace->damage.growing;
}

static void take_unlisted(struct push_run *run)
{
	size_t kept = 0;

	for (size_t i = 0; i < run->source_count; i++) {
		struct push_source *source = run->sources[i];

		if (source->is_listed || follow_unlisted(run, source))
			run->sources[kept++] = source;
		else
			push_source_free(source);
	}
	run->source_count = kept;
}

/* For how long it has not been written; clocks of file systems are coarse. -1: it is not there. */
static int64_t silent_ns(const char *path)
{
	struct stat status;
	int64_t silent;

	if (stat(path, &status) < 0)
		return -1;
	silent = time_ns(CLOCK_REALTIME) - (status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec);
	return silent > 0 ? silent : 0;
}

/*
 * A trace that is new in the folder. What began before this process is taken where a collector names it. One that
 * cannot be read yet may have just begun.
 */
static bool take_found(void *owner, const char *path)
{
	struct push_run *run = owner;
	int64_t silent = silent_ns(path), age_ns = time_ns(CLOCK_MONOTONIC) - run->began_ns;
	struct push_source *source;
	int error;

	if (silent < 0 || silent > age_ns + SILENT_NS || find_source(run, path))
		return true;
	error = open_source(run, &source, path, INT64_MAX);
	note_unread(run, path, error);
	if (source)
		note_failure(run, source, push_source_count(source, &run->target, INT64_MAX));
	return !error || silent > SILENT_NS;
}

static void look(struct push_run *run)
{
	struct watch_host asked = {.socket = run->request->socket, .target = "all"};
	struct control_collectors collectors;
	const json_t *described;
	size_t k;

	for (size_t i = 0; i < run->source_count; i++)
		run->sources[i]->is_listed = false;
	if (watch_host_ask(&asked, &collectors) == 0)
		for (size_t i = 0; i < collectors.count; i++)
			json_array_foreach(json_object_get(collectors.at[i].answer, "traces"), k, described)
			{
				take_trace(run, described);
			}
	control_collectors_done(&collectors);
	watch_folder_look(&run->folder, take_found, run);
	take_unlisted(run);
}

static void emit_all(struct push_run *run)
{
	for (size_t i = 0; i < run->source_count; i++)
		note_failure(run, run->sources[i], push_source_emit(run->sources[i], &run->target));
}

/* --- the loops --- */

/* Whether a signal came within that time. */
static bool await_signal(const struct push_run *run, int64_t ms)
{
	struct pollfd poller = {.fd = run->signal_fd, .events = POLLIN};
	struct signalfd_siginfo ignored;

	return poll(&poller, 1, ms > 0 ? (int)ms : 0) > 0 &&
	       read(run->signal_fd, &ignored, sizeof(ignored)) == (ssize_t)sizeof(ignored);
}

/* Whether it is to end. */
static bool await_end(const struct push_run *run, int64_t ms)
{
	struct pollfd closed = {.fd = STDIN_FILENO, .events = POLLIN};
	char ignored[64];

	if (!run->request->until_closed)
		return await_signal(run, ms);
	return poll(&closed, 1, ms > 0 ? (int)ms : 0) > 0 && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0;
}

/* Each followed trace is an open file. */
static void raise_file_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void follow_all(struct push_run *run)
{
	int64_t interval_ms = run->request->interval_ns / 1000000, next_ms = time_ms(CLOCK_MONOTONIC) + interval_ms;
	bool ends = false;

	raise_file_limit();
	run->began_ns = run->request->since_ns ? run->request->since_ns : time_ns(CLOCK_MONOTONIC);
	while (!ends) {
		int64_t now_ms, look_ms = time_ms(CLOCK_MONOTONIC) + LOOK_MS;

		look(run);
		now_ms = time_ms(CLOCK_MONOTONIC);
		if (now_ms >= next_ms) {
			emit_all(run);
			next_ms += (now_ms - next_ms) / interval_ms * interval_ms + interval_ms;
		}
		ends = await_end(run, (look_ms < next_ms ? look_ms : next_ms) - now_ms);
	}
	look(run);
	emit_all(run);
}

static int push_file(struct push_run *run, const char *path)
{
	struct trace *trace = trace_open_with_message(path);
	int status, error;

	if (!trace)
		return CLI_FAILED;
	error = push_whole(trace, &run->target, run->request->interval_ns, &run->stop);
	if (error)
		output_message("evprof push: %s", strerror(-error));
	status = trace_print_verdict(trace);
	trace_close(trace);
	return error ? CLI_FAILED : status;
}

static int push_files(struct push_run *run)
{
	int status = CLI_FINE;

	for (char **path = run->request->traces; *path && !await_signal(run, 0); path++)
		status = cli_status_worst(status, push_file(run, *path));
	return status;
}

/* --- begin and end --- */

/* Returns a descriptor, or -1: they are ignored, or with errno an error. */
static int block_signals(bool ignores)
{
	sigset_t ending;

	errno = 0;
	signal(SIGPIPE, SIG_IGN);
	if (ignores) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGINT, SIG_IGN);
		return -1;
	}

	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	return signalfd(-1, &ending, SFD_CLOEXEC);
}

static void wait_for_sender(struct push_run *run)
{
	int64_t patience_ms = run->request->patience_ms, timeout_ms = run->settings.timeout_ms;

	sender_finish(&run->sender, time_ms(CLOCK_MONOTONIC) + (patience_ms > timeout_ms ? patience_ms : timeout_ms));
	while (!sender_is_done(&run->sender) && !await_signal(run, END_MS))
		;
}

/* What happened to all requests. Returns the exit status. */
static int print_counts(const struct sender_counts *counts)
{
	uint64_t lost = counts->rejected + counts->dropped + counts->rejected_profiles;

	printf("%" PRIu64 " requests sent (%" PRIu64 " bytes), %" PRIu64 " tries again, %" PRIu64 " rejected, %" PRIu64
	       " profiles rejected, %" PRIu64 " dropped, %" PRIu64 " left in the spool\n",
	       counts->sent, counts->sent_bytes, counts->tried_again, counts->rejected, counts->rejected_profiles,
	       counts->dropped, counts->left);
	return fflush(stdout) ? CLI_FAILED : lost || counts->left ? CLI_DAMAGED : CLI_FINE;
}

static int run_push(struct push_run *run)
{
	int status = CLI_FINE;
	struct sender_counts counts;

	push_target_init(&run->target, &run->sender, &run->settings);
	if (run->request->traces[0])
		status = push_files(run);
	else
		follow_all(run);
	wait_for_sender(run);
	counts = sender_stop(&run->sender);
	for (size_t i = 0; i < run->source_count; i++)
		push_source_free(run->sources[i]);
	free(run->sources);
	watch_folder_done(&run->folder);
	u64_map_done(&run->taken);
	push_target_done(&run->target);
	if (run->target.failed)
		status = CLI_FAILED;
	return cli_status_worst(status, print_counts(&counts));
}

int push(const struct push_request *request)
{
	struct push_run run = {.request = request, .folder = {.path = request->folder}};
	char why[512] = "no signals can be awaited";
	int status = CLI_FAILED;

	run.signal_fd = block_signals(request->until_closed);
	if (!errno && push_settings_read(&run.settings, request->endpoint, why, sizeof(why)) &&
	    sender_start(&run.sender, &run.settings, request->spool, request->spool_bytes, why, sizeof(why)))
		status = run_push(&run);
	else
		output_message("evprof push: %s", why);
	push_settings_done(&run.settings);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	return status;
}
