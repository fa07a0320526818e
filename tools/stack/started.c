/*
 * started.c - see started.h.
 *
 * The module __main__ gets its builtins once import works and before the program runs: a script that runs there earlier
 * has no names.
 */
#include "stack/started.h"

#include <errno.h>
#include <time.h>

#include "stack/objects.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/why.h"

#define LOOK_MS 5
#define INTERPRETER_MODULES 16 /* PyInterpreterState of 3.6: next, tstate_head, modules */

static bool has_builtins(const struct layout *layout, struct process *process)
{
	uint64_t modules, program, builtins;

	for (size_t i = 0; i < layout->interpreter_count; i++)
		if (process_word(process, layout->interpreters[i] + INTERPRETER_MODULES, &modules) &&
		    object_item(layout, process, modules, "__main__", &program) &&
		    object_attribute(layout, process, program, "__builtins__", &builtins))
			return true;
	return false;
}

/* 0; -EAGAIN: not yet; -1 with a line in why. */
static int look(pid_t pid, char *why, size_t bytes)
{
	static struct process process;
	static struct layout layout;
	bool found = false;
	int r = process_open(&process, pid, why, bytes);

	if (r == 0) {
		found = layout_find(&layout, &process, why, bytes) == 0 && has_builtins(&layout, &process);
		layout_done(&layout);
	}
	process_close(&process);
	return r || found ? r : -EAGAIN;
}

int started_wait(pid_t pid, int wait_ms, char *why, size_t bytes)
{
	int64_t end = time_ms(CLOCK_MONOTONIC) + wait_ms;
	int r;

	while ((r = look(pid, why, bytes)) == -EAGAIN && !cli_interrupted && time_ms(CLOCK_MONOTONIC) < end)
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
	if (r == -EAGAIN)
		return complain(why, bytes, "Python of process %d still starts, or has ended its program", (int)pid);
	return r;
}
