/*
 * two_traces.h - up to two traces that a test makes, one after the other, and the verb that reads them. Included by one
 * file of each test program: what it defines is that program's own.
 */
#ifndef EVPROF_TESTS_TWO_TRACES_H
#define EVPROF_TESTS_TWO_TRACES_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools_verb.h"
#include "trace_fixture.h"

static struct fixture *fixture;
static uint32_t process, thread;
static char *paths[2];
static struct tools_verb ran;

static void begin_trace(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	thread = fixture_thread(fixture, process, 10, 1000);
}

static void save(int number)
{
	fixture_end(fixture);
	paths[number] = fixture_save(fixture);
	fixture_free(fixture);
	fixture = NULL;
}

static void tear_down(void)
{
	for (int i = 0; i < 2; i++) {
		if (paths[i])
			unlink(paths[i]);
		free(paths[i]);
		paths[i] = NULL;
	}
	if (fixture)
		fixture_free(fixture);
	fixture = NULL;
	tools_verb_done(&ran);
}

static void event(unsigned kind, uint32_t argument, uint32_t ticks)
{
	fixture_event(fixture, thread, kind, argument, ticks);
}

static void code(uint32_t id, const char *file, uint32_t line, const char *name, const char *qualified)
{
	fixture_define(fixture, process, WIRE_DEFINE_CODE, id, line, file, name, qualified, "pack.mod");
}

/* So many calls of a function, each of that time. */
static void called(uint32_t id, int times, uint32_t ticks)
{
	while (times--) {
		event(WIRE_CALL, id, 1);
		event(WIRE_RETURN, id, ticks);
	}
}

static int run(int (*verb)(int argc, char **argv), const char *words)
{
	tools_verb_done(&ran);
	ran = tools_verb_run(verb, words, paths[0], paths[1]);
	return ran.status;
}

#endif
