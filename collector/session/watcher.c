/*
 * watcher.c - see watcher.h.
 */
#include "session/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/users.h"

static void take_line(struct watcher *watcher)
{
	struct watcher_found *found = &watcher->found[watcher->found_count];
	unsigned long long begin_ns;
	unsigned tid;

	watcher->line[watcher->used] = '\0';
	if (!watcher->skips && watcher->found_count < WATCHER_FOUND_MAX &&
	    sscanf(watcher->line, "%u\t%d\t%u\t%llu\t", &found->trigger, &found->pid, &tid, &begin_ns) == 4) {
		found->begin_ns = begin_ns;
		watcher->found_count++;
	}
	watcher->used = 0;
	watcher->skips = false;
}

static void take_bytes(struct watcher *watcher, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n')
			take_line(watcher);
		else if (watcher->used + 1 < sizeof(watcher->line))
			watcher->line[watcher->used++] = bytes[i];
		else
			watcher->skips = true;
	}
}

static void close_source(struct watcher *watcher)
{
	loop_remove(watcher->loop, &watcher->source);
	close(watcher->source.fd);
	watcher->open = false;
}

static void lines_ready(struct loop_source *source)
{
	struct watcher *watcher = LOOP_OWNER(source, struct watcher, source);
	char bytes[4096];
	ssize_t count = read(source->fd, bytes, sizeof(bytes));

	if (count > 0)
		take_bytes(watcher, bytes, (size_t)count);
	else if (count == 0 || (errno != EAGAIN && errno != EINTR))
		close_source(watcher);
}

static void close_input(struct watcher *watcher)
{
	if (watcher->input >= 0)
		close(watcher->input);
	watcher->input = -1;
}

/* Both ends of evprof's are closed here; it has copies. */
static int start(struct watcher *watcher, const struct watcher_config *config, int input[2], int output[2])
{
	bool drops = geteuid() == 0 && config->uid != 0 && config->uid != USER_NOBODY;
	char user[32];
	const char *argv[] = {"evprof",	   "watch",	 "--sparse",	"--until-closed",
			      "--trigger", config->list, config->trace, drops ? "--user" : NULL,
			      user,	   NULL};
	int error;

	snprintf(user, sizeof(user), "%u:%u", (unsigned)config->uid, (unsigned)config->gid);
	fcntl(output[0], F_SETFL, O_NONBLOCK);
	watcher->source = (struct loop_source){.fd = output[0], .ready = lines_ready};
	error = loop_add(watcher->loop, &watcher->source);
	if (error)
		return error;
	watcher->open = true;
	watcher->run.input = input[0];
	watcher->run.output = output[1];
	tool_run_start(&watcher->run, watcher->loop, argv);
	return 0;
}

void watcher_start(struct watcher *watcher, struct loop *loop, const struct watcher_config *config)
{
	int input[2] = {-1, -1}, output[2] = {-1, -1}, error = 0;

	watcher->loop = loop;
	watcher->input = -1;
	watcher->started = true;
	if (pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0)
		error = -errno;
	if (!error)
		error = start(watcher, config, input, output);
	if (!error)
		watcher->input = input[1];
	else
		log_error("no call can fire a trigger: %s", strerror(-error));
	for (int i = 0; i < 4; i++) {
		int fd = i < 2 ? input[i] : output[i - 2];

		if (fd >= 0 && (error || i == 0 || i == 3))
			close(fd);
	}
}

bool watcher_take(struct watcher *watcher, struct watcher_found *found)
{
	if (!watcher->found_count)
		return false;
	*found = watcher->found[0];
	memmove(&watcher->found[0], &watcher->found[1], --watcher->found_count * sizeof(*found));
	return true;
}

void watcher_finish(struct watcher *watcher)
{
	if (watcher->started)
		close_input(watcher);
}

bool watcher_runs(const struct watcher *watcher)
{
	return watcher->open || watcher->run.running;
}

void watcher_stop(struct watcher *watcher)
{
	if (!watcher->started)
		return;
	close_input(watcher);
	if (watcher->open)
		close_source(watcher);
	tool_run_stop(&watcher->run);
}
