/*
 * one_trace.c - see one_trace.h.
 */
#include "one_trace.h"

#include <stdlib.h>
#include <unistd.h>

struct fixture *fixture;
uint32_t process, thread;
char *path;
struct tools_verb ran;

void event(unsigned kind, uint32_t argument, uint32_t ticks)
{
	fixture_event(fixture, thread, kind, argument, ticks);
}

static void remove_saved(void)
{
	if (path)
		unlink(path);
	free(path);
}

void save(void)
{
	remove_saved();
	fixture_end(fixture);
	path = fixture_save(fixture);
}

int run_on(int (*verb)(int argc, char **argv), const char *words, const char *trace, const char *other)
{
	tools_verb_done(&ran);
	ran = tools_verb_run(verb, words, trace, other);
	return ran.status;
}

int run(int (*verb)(int argc, char **argv), const char *words)
{
	if (!path)
		save();
	return run_on(verb, words, path, NULL);
}

void end_trace(void)
{
	remove_saved();
	tools_verb_done(&ran);
	fixture_free(fixture);
}
