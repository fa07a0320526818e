/*
 * one_trace.h - the trace of the fixture that a test of the tools makes, and the verb that reads it. Each test runs in
 * a process of its own, so it begins with none.
 */
#ifndef EVPROF_TESTS_ONE_TRACE_H
#define EVPROF_TESTS_ONE_TRACE_H

#include <stdint.h>

#include "tools_verb.h"
#include "trace_fixture.h"

extern struct fixture *fixture;	 /* made by the test's .init */
extern uint32_t process, thread; /* numbers of the first ones, set by the test's .init */
extern char *path;		 /* of the saved trace; NULL: none */
extern struct tools_verb ran;	 /* the last verb */

/* An event of the thread. */
void event(unsigned kind, uint32_t argument, uint32_t ticks);
/* Ends the trace and saves it, in place of an earlier one. */
void save(void);
/* Runs the verb over the trace, which is saved if it was not; TRACE in the words is its path. Returns its status. */
int run(int (*verb)(int argc, char **argv), const char *words);
/* The same over another trace, with OTHER (may be NULL). */
int run_on(int (*verb)(int argc, char **argv), const char *words, const char *trace, const char *other);
/* The test's .fini. */
void end_trace(void);

#endif
