/*
 * snapshots.c - see snapshots.h.
 */
#include "serve/snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "util/clock.h"
#include "watch/json.h"

#define PATH_BYTES (PATH_MAX + 32)

static void file_path(const struct snapshots *snapshots, uint32_t number, const char *ending, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%u%s", snapshots->folder, number, ending);
}

/* --- processes --- */

/* In the child of a program with threads: only what a signal handler may do. */
static void become(char *const arguments[], int errors)
{
	struct rlimit limit = {.rlim_cur = SNAPSHOT_LIMIT_BYTES, .rlim_max = SNAPSHOT_LIMIT_BYTES};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_FSIZE, &limit);
	dup2(null, 0);
	dup2(null, 1);
	dup2(errors, 2);
	execv(arguments[0], arguments);
	_exit(127);
}

/* Its messages go to a file. Returns the pid or -errno. */
static pid_t start(const struct snapshots *snapshots, uint32_t number, char *const arguments[])
{
	char path[PATH_BYTES];
	pid_t pid = -1;
	int errors, error;

	file_path(snapshots, number, ".log", path);
	errors = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (errors < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become(arguments, errors);
	error = -errno;
	close(errors);
	return pid < 0 ? error : pid;
}

static int start_copy(struct snapshots *snapshots, struct snapshot *snapshot)
{
	char own[PATH_MAX], pid[24], last[24], output[PATH_BYTES];
	char *arguments[] = {own, "snapshot", "-q", "-o", output, pid, NULL, NULL, NULL, NULL, NULL};
	unsigned count = 6;

	if (proc_own_path(own) < 0)
		return -ENOENT;
	snprintf(pid, sizeof(pid), "%" PRId64, snapshot->pid);
	snprintf(last, sizeof(last), "%us", snapshot->last_s);
	file_path(snapshots, snapshot->number, ".evp", output);
	if (snapshot->last_s) {
		arguments[count++] = "--last";
		arguments[count++] = last;
	}
	if (snapshots->socket) {
		arguments[count++] = "--socket";
		arguments[count++] = (char *)(uintptr_t)snapshots->socket;
	}
	return start(snapshots, snapshot->number, arguments);
}

static int start_export(struct snapshots *snapshots, struct snapshot *snapshot)
{
	char own[PATH_MAX], input[PATH_BYTES], output[PATH_BYTES];
	char *arguments[] = {own, "export", "--format", "html", "-o", output, input, NULL};

	if (proc_own_path(own) < 0)
		return -ENOENT;
	file_path(snapshots, snapshot->number, ".evp", input);
	file_path(snapshots, snapshot->number, ".html", output);
	return start(snapshots, snapshot->number, arguments);
}

/* --- one snapshot --- */

static void begin_step(struct snapshot *snapshot, enum snapshot_state state, int child)
{
	snapshot->child = child > 0 ? child : 0;
	snapshot->since_ns = time_ns(CLOCK_MONOTONIC);
	snapshot->state = child > 0 ? state : SNAPSHOT_FAILED;
	if (child <= 0)
		snprintf(snapshot->error, sizeof(snapshot->error), "evprof does not start: %s", strerror(-child));
}

/* The last line that the process has written. */
static void take_error(const struct snapshots *snapshots, struct snapshot *snapshot, const char *otherwise)
{
	char path[PATH_BYTES], text[4096] = "", *line;

	file_path(snapshots, snapshot->number, ".log", path);
	proc_read(path, text, sizeof(text));
	for (line = text + strlen(text); line > text && line[-1] == '\n';)
		*--line = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	snprintf(snapshot->error, sizeof(snapshot->error), "%.290s", line[0] ? line : otherwise);
}

static bool has_file(const struct snapshots *snapshots, const struct snapshot *snapshot, const char *ending)
{
	char path[PATH_BYTES];

	file_path(snapshots, snapshot->number, ending, path);
	return access(path, R_OK) == 0;
}

/* A trace that is incomplete is shown: its report says so. */
static void end_step(struct snapshots *snapshots, struct snapshot *snapshot)
{
	bool copied = snapshot->state == SNAPSHOT_COPIES;

	snapshot->child = 0;
	if (!has_file(snapshots, snapshot, copied ? ".evp" : ".html")) {
		take_error(snapshots, snapshot, copied ? "the trace is not copied" : "the report is not made");
		snapshot->state = SNAPSHOT_FAILED;
	} else if (copied) {
		begin_step(snapshot, SNAPSHOT_EXPORTS, start_export(snapshots, snapshot));
	} else {
		snapshot->state = SNAPSHOT_READY;
	}
}

static void end_process(struct snapshot *snapshot)
{
	if (!snapshot->child)
		return;
	kill(snapshot->child, SIGTERM); /* it removes what it was writing */
	waitpid(snapshot->child, NULL, 0);
	snapshot->child = 0;
}

static void remove_files(const struct snapshots *snapshots, const struct snapshot *snapshot)
{
	static const char *const endings[] = {".evp", ".html", ".log"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		file_path(snapshots, snapshot->number, endings[i], path);
		unlink(path);
	}
}

static void tend(struct snapshots *snapshots, struct snapshot *snapshot)
{
	if (waitpid(snapshot->child, NULL, WNOHANG) == snapshot->child) {
		end_step(snapshots, snapshot);
	} else if (time_ns(CLOCK_MONOTONIC) - snapshot->since_ns > SNAPSHOT_LIMIT_S * INT64_C(1000000000)) {
		end_process(snapshot);
		remove_files(snapshots, snapshot);
		snapshot->state = SNAPSHOT_FAILED;
		snprintf(snapshot->error, sizeof(snapshot->error),
			 "it has taken more than %d s: ask for a shorter time", SNAPSHOT_LIMIT_S);
	}
}

/* --- all --- */

int snapshots_init(struct snapshots *snapshots, const char *socket)
{
	const char *temporary = getenv("TMPDIR");

	*snapshots = (struct snapshots){.socket = socket};
	if (snprintf(snapshots->folder, sizeof(snapshots->folder), "%s/evprof-serve-XXXXXX",
		     temporary && temporary[0] == '/' ? temporary : "/tmp") >= (int)sizeof(snapshots->folder))
		return -ENAMETOOLONG;
	return mkdtemp(snapshots->folder) ? 0 : -errno;
}

void snapshots_done(struct snapshots *snapshots)
{
	for (size_t i = 0; i < SNAPSHOTS_KEPT; i++) {
		if (snapshots->at[i].state == SNAPSHOT_FREE)
			continue;
		end_process(&snapshots->at[i]);
		remove_files(snapshots, &snapshots->at[i]);
	}
	rmdir(snapshots->folder);
}

bool snapshots_tend(struct snapshots *snapshots)
{
	bool any = false;

	for (size_t i = 0; i < SNAPSHOTS_KEPT; i++) {
		if (snapshots->at[i].child)
			tend(snapshots, &snapshots->at[i]);
		any |= snapshots->at[i].child != 0;
	}
	return any;
}

/* A free place, or that of the oldest which is done. NULL: enough are being made. */
static struct snapshot *find_place(struct snapshots *snapshots)
{
	struct snapshot *place = NULL;
	unsigned running = 0;

	for (size_t i = 0; i < SNAPSHOTS_KEPT; i++) {
		struct snapshot *snapshot = &snapshots->at[i];

		running += snapshot->child != 0;
		if (!snapshot->child && (!place || snapshot->number < place->number))
			place = snapshot; /* a free one has number 0 */
	}
	return running < SNAPSHOTS_AT_ONCE ? place : NULL;
}

int64_t snapshots_begin(struct snapshots *snapshots, int64_t pid, const char *program, uint32_t last_s)
{
	struct snapshot *snapshot = find_place(snapshots);

	if (!snapshot)
		return 0;
	if (snapshot->state != SNAPSHOT_FREE)
		remove_files(snapshots, snapshot);
	*snapshot = (struct snapshot){
	    .number = ++snapshots->made, .pid = pid, .last_s = last_s, .at_ms = time_ms(CLOCK_REALTIME)};
	snprintf(snapshot->program, sizeof(snapshot->program), "%s", program);
	begin_step(snapshot, SNAPSHOT_COPIES, start_copy(snapshots, snapshot));
	return snapshot->number;
}

const struct snapshot *snapshots_find(const struct snapshots *snapshots, uint32_t number)
{
	for (size_t i = 0; i < SNAPSHOTS_KEPT; i++)
		if (snapshots->at[i].state != SNAPSHOT_FREE && snapshots->at[i].number == number)
			return &snapshots->at[i];
	return NULL;
}

int snapshots_open(const struct snapshots *snapshots, const struct snapshot *snapshot, const char *ending,
		   uint64_t *bytes)
{
	char path[PATH_BYTES];
	struct stat status;
	int fd;

	file_path(snapshots, snapshot->number, ending, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &status) < 0) {
		int error = -errno;

		if (fd >= 0)
			close(fd);
		return error;
	}
	*bytes = (uint64_t)status.st_size;
	return fd;
}

static void put_snapshot(const struct snapshot *snapshot, struct output *output)
{
	static const char *const states[] = {"", "copies", "exports", "ready", "failed"};

	output_format(output, "{\"number\": %u, \"pid\": %" PRId64 ", ", snapshot->number, snapshot->pid);
	watch_json_put_text(output, "program", text_of(snapshot->program));
	output_format(output, ", \"at_ms\": %" PRId64 ", \"last_s\": %u, \"state\": \"%s\", ", snapshot->at_ms,
		      snapshot->last_s, states[snapshot->state]);
	watch_json_put_text(output, "error", text_of(snapshot->error));
	output_char(output, '}');
}

void snapshots_put(const struct snapshots *snapshots, struct output *output)
{
	const struct snapshot *snapshot;
	bool put = false;

	output_char(output, '[');
	for (uint32_t number = snapshots->made; number && number + SNAPSHOTS_KEPT + SNAPSHOTS_AT_ONCE > snapshots->made;
	     number--) {
		snapshot = snapshots_find(snapshots, number);
		if (!snapshot)
			continue;
		output_string(output, put ? ", " : "");
		put_snapshot(snapshot, output);
		put = true;
	}
	output_char(output, ']');
}
