/*
 * strike.h - counts that a program shares with its test, and blows that fall while it runs.
 *
 * An oracle is a file of counters that a program (programs/counting.py) maps: it counts each call before it begins and
 * after it has ended, so that after a death at any moment the test knows how many calls there were, to within one for
 * each thread. A striker is another process of the test. It waits until the program counts and then does something to
 * it or to its collector. Used by the tests of deaths and losses.
 */
#ifndef EVPROF_E2E_STRIKE_H
#define EVPROF_E2E_STRIKE_H

#include <stdint.h>
#include <sys/types.h>

#include "harness.h"

#define ORACLE_PAIRS 255

/* Whether a scenario that takes long runs with this interpreter: with every one if EVPROF_TEST_ALL=1. */
bool runs_by_default(const struct python *python);

/* What stands in the file. Written by the program; each word is stored whole. */
struct oracle {
	volatile uint64_t pid;	/* of the program, in its own namespace; 0: not begun */
	volatile uint64_t stop; /* set by the test: programs/steady.py ends before its time */
	struct {
		volatile uint64_t begun, ended;
	} calls[ORACLE_PAIRS]; /* of one thread or process each */
};

/* Makes the file "oracle" of zeros in a directory, and maps it. */
struct oracle *oracle_new(const char *directory);
void oracle_clear(struct oracle *oracle);
long oracle_begun(const struct oracle *oracle);
long oracle_ended(const struct oracle *oracle);
/* How many threads or processes have called. */
unsigned oracle_entries(const struct oracle *oracle);

/* What a striker does once the program counts, a file is there if one is named, and a delay has passed. */
struct strike {
	const struct oracle *oracle;
	long delay_us;
	void (*act)(const struct strike *strike);
	long argument;
	const char *path;
	const char *after; /* the file; NULL: none */
};

/* Starts a striker; it ends by itself, or with the test. */
void strike(struct strike strike);

/* For strikers: the private collector of the test's program; 0 where none is (any more). */
pid_t strike_collector(void);

/* argument: the signal. */
void strike_program(const struct strike *strike);
/* The same, while the collector is stopped. */
void strike_program_while_stopped(const struct strike *strike);
void strike_program_group(const struct strike *strike);
void strike_collector_signal(const struct strike *strike);
/* Stops the collector for some milliseconds (the argument), then lets it go on. */
void strike_collector_pause(const struct strike *strike);
/* Stops it for nine tenths of the time, until it is gone. argument: milliseconds of one round. */
void strike_collector_slow(const struct strike *strike);

/*
 * What was recorded of a program of which many events (EVPROF_EVENTS=..., or NULL: the default) are lost, with gaps in
 * between.
 */
struct outcome *strike_run_with_losses(const struct python *python, const char *events);

/* Makes a control group with 96 MiB of memory; NULL where none can be made. Its path; remove it at the end. */
const char *strike_memory_group(void);

#endif
