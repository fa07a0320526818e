/*
 * test_instructions.c - how many instructions of the library an event takes, by callgrind. The numbers do not vary from
 * run to run, so a change that adds or saves 2 % fails until instructions.txt says so.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define STEPS 10000 /* in a round, see instructions.py */
#define ROUNDS 2.0  /* that the longer run has more */
#define MOST 0.02

#if defined(__clang__)
#define COMPILER text("clang-%d", __clang_major__)
#else
#define COMPILER text("gcc-%d", __GNUC__)
#endif

/* What the numbers depend on: the library reads the clock of the processor, or the kernel's. */
static const char *machine(void)
{
	char *source = file_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL);
	const char *name = text("%s-%s", COMPILER, source && strcmp(source, "tsc\n") == 0 ? "tsc" : "monotonic");

	free(source);
	return name;
}

static const char *folder_of(const struct python *python, const char *kind, const char *rounds, unsigned unused)
{
	struct outcome *outcome =
	    run(.env = {strcmp(kind, "calls") == 0 ? "EVPROF_EVENTS=call,c_call" : "EVPROF_EVENTS=mem",
			"PYTHONHASHSEED=0"},
		.args = {"valgrind", "--tool=callgrind", "--callgrind-out-file=counts.%p", python->command[0],
			 "@instructions.py", kind, rounds, text("%u", unused)},
		.timeout_s = 300);

	outcome_find_traces(outcome, NULL);
	if (!outcome->traces)
		cr_skip_test("under this valgrind nothing is recorded: %s", outcome->err);
	expect(outcome, outcome->status == 0, "it runs");
	return outcome->directory;
}

static double measure(const struct python *python, const char *kind, unsigned unused)
{
	const char *shorter = folder_of(python, kind, "1", unused), *longer = folder_of(python, kind, "3", unused);
	struct outcome *counted =
	    run(.how = JOB_BARE, .args = {"python3", "@own_instructions.py", shorter, longer}, .lingers = true);

	expect(counted, counted->status == 0, "callgrind says how many");
	return atof(counted->out) / (ROUNDS * STEPS);
}

/* A line: version of Python, compiler and clock, kind, instructions a step. 0: there is none. */
static double kept(const struct python *python, const char *kind)
{
	char *lines = file_read(program_path("../instructions.txt"), NULL);
	const char *wanted = text("\n%s %s %s ", python->version, machine(), kind), *found;
	double number;

	cr_assert(lines, "instructions.txt is there");
	found = strstr(lines, wanted);
	number = found ? atof(found + strlen(wanted)) : 0;
	free(lines);
	return number;
}

static void expect_instructions(const struct python *python, const char *kind)
{
	double number, wanted;

	if (python->command[1]) /* valgrind is the host's */
		return;
	if (run(.how = JOB_BARE, .args = {"sh", "-c", "command -v valgrind"})->status)
		cr_skip_test("valgrind is not installed");
#ifdef EVPROF_DEBUG
	cr_skip_test("a build with invariants or a sanitizer has other instructions");
#endif
	wanted = kept(python, kind);
	number = measure(python, kind, 0);
	/* A function whose id has the place of another one's takes more. With others in between, it is elsewhere. */
	for (unsigned unused = 1; unused < 4 && wanted && fabs(number / wanted - 1) > MOST; unused++)
		number = measure(python, kind, unused);
	if (!wanted)
		cr_skip_test("tests/e2e/instructions.txt has no \"%s %s %s %.1f\"", python->version, machine(), kind,
			     number);
	cr_assert_leq(fabs(number / wanted - 1), MOST,
		      "a step takes %.1f instructions instead of %.1f; if that is right, the line of "
		      "tests/e2e/instructions.txt is \"%s %s %s %.1f\"",
		      number, wanted, python->version, machine(), kind, number);
}

/* A call of a Python function with a C call in it, and their ends. */
SCENARIO(instructions, calls, SUPPORTED)
{
	expect_instructions(python, "calls");
}

/* A list of 50 elements is allocated and freed, in two blocks. */
SCENARIO(instructions, memory, SUPPORTED)
{
	expect_instructions(python, "memory");
}
