/*
 * ship.c - see ship.h. Looks at the folder once a second, and tries the traces that are due, the oldest first.
 */
#include "ship/ship.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/trace.h"
#include "ship/command.h"
#include "ship/put.h"
#include "ship/shipped.h"
#include "trace/reader.h"
#include "util/clock.h"
#include "util/jitter.h"
#include "util/output.h"
#include "util/text.h"

#define LOOK_MS 1000
#define RETRY_MAX_MS 300000
#define MS_NS INT64_C(1000000)
#define FRESH_NS (200 * MS_NS)	 /* a trace that was just made may not be locked yet */
#define LOCKED_NS (5000 * MS_NS) /* at the end: a collector that has just finished its trace has it for a moment */
#define COPY_FOLDER ".evprof-ship"
#define ENDING ".evp"

struct shipping {
	const struct ship_request *request;
	int folder;
	struct shipped shipped;
	uint64_t sent, failed, dropped;
	int64_t last_ns; /* since then no new traces are waited for; 0: not yet */
	uint64_t random; /* jitter.h */
	bool fresh;	 /* a trace was just made, and may be locked in the next look */
};

/* --- the folder --- */

static bool is_trace(const char *name)
{
	size_t length = strlen(name), ending = strlen(ENDING);

	return name[0] != '.' && length > ending && strcmp(name + length - ending, ENDING) == 0;
}

/* Whether a collector writes it: it locks its traces. */
static bool is_being_written(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool locked = fd < 0 || trace_is_being_written(fd);

	if (fd >= 0)
		close(fd);
	return locked;
}

static void look_at(struct shipping *shipping, const char *name)
{
	struct shipped_one *one;
	struct stat status;
	int64_t changed_ns;

	if (!is_trace(name) || fstatat(shipping->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(status.st_mode))
		return;
	if (is_being_written(shipping->folder, name)) {
		shipping->fresh |= time_ns(CLOCK_MONOTONIC) - shipping->last_ns < LOCKED_NS;
		return;
	}
	changed_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	if (time_ns(CLOCK_REALTIME) - changed_ns < FRESH_NS && time_ns(CLOCK_REALTIME) >= changed_ns) {
		shipping->fresh = true;
		return;
	}
	one = shipped_find(&shipping->shipped, name, (uint64_t)status.st_size, changed_ns);
	if (one)
		one->there = true;
}

/* Forgets what has left the folder. What was removed before it could be shipped is counted. */
static void forget_missing(struct shipping *shipping)
{
	struct shipped *shipped = &shipping->shipped;
	size_t kept = 0;

	for (size_t i = 0; i < shipped->count; i++) {
		struct shipped_one *one = &shipped->at[i];

		if (one->there) {
			shipped->at[kept++] = *one;
			continue;
		}
		if (!one->done) {
			shipping->dropped++;
			output_message("evprof ship: %s was removed before it was shipped", one->name);
		}
		free(one->name);
	}
	shipped->count = kept;
}

static int compare_ages(const void *a, const void *b)
{
	const struct shipped_one *one = a, *other = b;

	return (one->changed_ns > other->changed_ns) - (one->changed_ns < other->changed_ns);
}

static int look(struct shipping *shipping)
{
	int fd = openat(shipping->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	for (size_t i = 0; i < shipping->shipped.count; i++)
		shipping->shipped.at[i].there = false;
	shipping->fresh = false;
	while ((entry = readdir(folder)))
		look_at(shipping, entry->d_name);
	closedir(folder);
	forget_missing(shipping);
	if (shipping->shipped.count)
		qsort(shipping->shipped.at, shipping->shipped.count, sizeof(*shipping->shipped.at), compare_ages);
	return 0;
}

/* --- a trace --- */

static bool hand_over(const struct ship_request *request, const char *path, const char *name)
{
	return request->store ? put_file(request->store, path, name, request->timeout_ms)
			      : ship_command(request->command, path, name, request->timeout_ms);
}

/*
 * What traces differ in, besides their names: session and time of the header, which parts and snapshots share, size and
 * time of the last change. Nothing of that is secret, and it stays when the trace is sent again.
 */
static uint64_t stamp_of(int folder, const struct shipped_one *one)
{
	struct trace_header header = {0};
	struct {
		uint64_t size_bytes;
		int64_t changed_ns;
	} file = {one->size_bytes, one->changed_ns};
	int fd = openat(folder, one->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && pread(fd, &header, sizeof(header), 0) < (ssize_t)sizeof(header))
		header = (struct trace_header){0};
	if (fd >= 0)
		close(fd);
	return text_hash(text_hash(TEXT_HASH_BEGIN, (struct text){(const char *)&header, sizeof(header)}),
			 (struct text){(const char *)&file, sizeof(file)});
}

/* Others of the folder may have the same masked name, so a stamp tells it from them. */
static void add_stamp(const struct shipping *shipping, const struct shipped_one *one, char shown[NAME_MAX + 1])
{
	char ending[sizeof("-0123456789abcdef" ENDING)];
	size_t length, most = NAME_MAX + 1 - sizeof(ending);

	snprintf(ending, sizeof(ending), "-%016" PRIx64 ENDING, stamp_of(shipping->folder, one));
	length = strlen(shown) - strlen(ENDING);
	strcpy(shown + (length < most ? length : most), ending);
}

/* The name without what matches. */
static void find_shown(const struct shipping *shipping, const struct shipped_one *one, char shown[NAME_MAX + 1])
{
	snprintf(shown, NAME_MAX + 1, "%s", one->name);
	if (redact_text(&shipping->request->redact, one->name, strlen(shown), shown))
		add_stamp(shipping, one, shown);
}

static bool copy_path(const struct ship_request *request, const char *name, char copy[PATH_MAX])
{
	return snprintf(copy, PATH_MAX, "%s/" COPY_FOLDER "/%s", request->folder, name) < PATH_MAX;
}

/* The name has words of a title, of which the trace says no more: it is masked whole, and the copy with it. */
static bool mask_name(const struct shipping *shipping, const struct shipped_one *one, char copy[PATH_MAX],
		      char shown[NAME_MAX + 1])
{
	char masked[PATH_MAX];

	strcpy(shown, "*" ENDING);
	add_stamp(shipping, one, shown);
	if (!copy_path(shipping->request, shown, masked) || rename(copy, masked) < 0)
		return false;
	strcpy(copy, masked);
	return true;
}

/* Ships a redacted copy. Its folder is the owner's alone. */
static bool ship_copy(const struct shipping *shipping, const struct shipped_one *one, const char *path,
		      char shown[NAME_MAX + 1])
{
	const struct ship_request *request = shipping->request;
	char copy[PATH_MAX];
	bool sent, name_tells;

	if (mkdirat(shipping->folder, COPY_FOLDER, 0700) < 0 && errno != EEXIST) {
		output_message("evprof ship: cannot make %s/" COPY_FOLDER ": %s", request->folder, strerror(errno));
		return false;
	}
	if (!copy_path(request, shown, copy))
		return false;
	sent = ship_redact(&request->redact, path, copy, request->timeout_ms, &name_tells) &&
	       (!name_tells || mask_name(shipping, one, copy, shown)) && hand_over(request, copy, shown);
	unlink(copy);
	return sent;
}

static bool ship_one(const struct shipping *shipping, const struct shipped_one *one)
{
	const struct ship_request *request = shipping->request;
	char path[PATH_MAX], shown[NAME_MAX + 1];

	if (snprintf(path, sizeof(path), "%s/%s", request->folder, one->name) >= (int)sizeof(path))
		return false;
	find_shown(shipping, one, shown);
	return request->redact.count || request->redact.arguments ? ship_copy(shipping, one, path, shown)
								  : hand_over(request, path, shown);
}

static void note_failure(struct shipping *shipping, struct shipped_one *one, int64_t now_ns)
{
	int64_t wait_ms = shipping->request->retry_ms;

	for (int i = 0; i < one->failures && wait_ms < RETRY_MAX_MS; i++)
		wait_ms *= 2;
	one->failures++;
	shipping->failed++;
	one->next_ns =
	    now_ns + jitter_around(&shipping->random, wait_ms < RETRY_MAX_MS ? wait_ms : RETRY_MAX_MS) * MS_NS;
	output_message("evprof ship: %s was not shipped (try %d)", one->name, one->failures);
}

/* Tries what is due. last: each has its tries, and no more. Returns whether some are left to try. */
static bool ship_due(struct shipping *shipping, bool last)
{
	bool left = false;

	for (size_t i = 0; i < shipping->shipped.count && !ship_ends; i++) {
		struct shipped_one *one = &shipping->shipped.at[i];
		int64_t now_ns = time_ns(CLOCK_MONOTONIC);

		if (one->done || (last && one->failures >= shipping->request->tries))
			continue;
		if (now_ns < one->next_ns) {
			left = true;
			continue;
		}
		if (!ship_one(shipping, one)) {
			note_failure(shipping, one, time_ns(CLOCK_MONOTONIC));
			left = true;
			continue;
		}
		one->done = true;
		shipping->sent++;
		if (shipped_save(&shipping->shipped, shipping->folder) < 0)
			output_message("evprof ship: %s/" SHIPPED_FILE
				       " cannot be written; a restart ships traces again",
				       shipping->request->folder);
	}
	return left || shipping->fresh;
}

/* --- the loop --- */

/* Waits for the next look. Returns whether standard input was closed. */
static bool wait_for_look(const struct shipping *shipping, bool closed)
{
	struct pollfd input = {.fd = shipping->request->until_closed && !closed ? STDIN_FILENO : -1, .events = POLLIN};
	char ignored[256];

	if (poll(&input, 1, closed || shipping->request->once ? LOOK_MS / 10 : LOOK_MS) == 1)
		return read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0;
	return closed;
}

static int run(struct shipping *shipping)
{
	bool closed = false, left = true;

	while (!ship_ends) {
		bool last = closed || shipping->request->once;
		int error;

		if (last && !shipping->last_ns)
			shipping->last_ns = time_ns(CLOCK_MONOTONIC);
		error = look(shipping);
		if (error)
			return error;

		left = ship_due(shipping, last);
		if (last && !left)
			break;
		closed = wait_for_look(shipping, closed);
	}
	return 0;
}

static void end_soon(int number)
{
	(void)number;
	ship_ends = 1;
}

static int report(const struct shipping *shipping)
{
	uint64_t left = 0;

	for (size_t i = 0; i < shipping->shipped.count; i++)
		left += !shipping->shipped.at[i].done;
	output_message("evprof ship: %" PRIu64 " shipped, %" PRIu64 " tries failed, %" PRIu64
		       " removed before, %" PRIu64 " left",
		       shipping->sent, shipping->failed, shipping->dropped, left);
	return left || shipping->dropped ? 1 : 0;
}

int ship(const struct ship_request *request)
{
	struct shipping shipping = {.request = request,
				    .random = jitter_seed(),
				    .folder = open(request->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	struct sigaction action = {.sa_handler = end_soon};
	int error = shipping.folder < 0 ? -errno : shipped_load(&shipping.shipped, shipping.folder), status = 2;

	/* systemd sends SIGTERM to the daemon and to what runs beside it, but the daemon's last traces are to go. */
	if (request->until_closed)
		action.sa_handler = SIG_IGN;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!error)
		error = run(&shipping);
	if (error)
		output_message("evprof ship: cannot read %s: %s", request->folder, strerror(-error));
	else
		status = report(&shipping);
	if (shipping.folder >= 0) {
		unlinkat(shipping.folder, COPY_FOLDER, AT_REMOVEDIR);
		close(shipping.folder);
	}
	shipped_done(&shipping.shipped);
	return status;
}
