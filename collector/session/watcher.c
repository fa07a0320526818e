/*
 * watcher.c - see watcher.h.
 */
#include "session/watcher.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/users.h"
#include "evprof/system_calls.h"

static void take_line(struct tool_lines *lines, const char *line)
{
	struct watcher *watcher = LOOP_OWNER(lines, struct watcher, lines);
	struct watcher_found *found = &watcher->found[watcher->found_count];
	unsigned long long begin_ns;
	unsigned tid;

	if (watcher->found_count < WATCHER_FOUND_MAX &&
	    sscanf(line, "%u\t%d\t%u\t%llu\t", &found->trigger, &found->pid, &tid, &begin_ns) == 4) {
		found->begin_ns = begin_ns;
		watcher->found_count++;
	}
}

void watcher_start(struct watcher *watcher, struct loop *loop, const struct watcher_config *config)
{
	bool drops = system_geteuid() == 0 && config->uid != 0 && config->uid != USER_NOBODY;
	char user[32];
	const char *argv[] = {"evprof",	   "watch",	 "--sparse",	"--until-closed",
			      "--trigger", config->list, config->trace, drops ? "--user" : NULL,
			      user,	   NULL};
	int error;

	snprintf(user, sizeof(user), "%u:%u", (unsigned)config->uid, (unsigned)config->gid);
	watcher->lines.take = take_line;
	error = tool_lines_start(&watcher->lines, loop, argv);
	if (error)
		log_error("no call can fire a trigger: %s", strerror(-error));
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
	tool_lines_finish(&watcher->lines);
}

bool watcher_runs(const struct watcher *watcher)
{
	return tool_lines_run(&watcher->lines);
}

void watcher_stop(struct watcher *watcher)
{
	tool_lines_stop(&watcher->lines, false);
}
