/*
 * test_variables.c - each EVPROF_* variable with good and bad values: what it does, and the one line for a mistake.
 */
#include <string.h>

#include "harness.h"

/* kinds that must be there and kinds that must not */
static void expect_kinds(const struct python *python, const char *value, const char *with, const char *without)
{
	char *variable = text("EVPROF_EVENTS=%s", value), *words;
	struct outcome *outcome = run(.python = python, .args = {"@raises.py"}, .env = {variable});
	json_t *info = expect_trace(outcome, 1);

	words = text("%s", with);
	for (char *at = words, *kind; (kind = strsep(&at, " "));)
		expect(outcome, !*kind || info_events(info, kind) > 0, "EVPROF_EVENTS=%s records %s", value, kind);
	words = text("%s", without);
	for (char *at = words, *kind; (kind = strsep(&at, " "));)
		expect(outcome, !*kind || info_events(info, kind) == 0, "EVPROF_EVENTS=%s records no %s", value, kind);
	expect_closing_line(outcome);
	json_decref(info);
}

#define PYTHON_KINDS "call return resume throw yield unwind"
#define C_KINDS "c_call c_return c_exception"
#define MEMORY_KINDS "malloc realloc free"

SCENARIO(variables, events, SUPPORTED)
{
	bool monitoring = python->minor >= 12;

	expect_kinds(python, "call", PYTHON_KINDS, C_KINDS " exception " MEMORY_KINDS);
	expect_kinds(python, "c_call", C_KINDS, PYTHON_KINDS " exception " MEMORY_KINDS);
	expect_kinds(python, "mem", MEMORY_KINDS, PYTHON_KINDS " exception " C_KINDS);
	expect_kinds(python, "call,mem", PYTHON_KINDS " " MEMORY_KINDS, "exception " C_KINDS);
	expect_kinds(python, "exception", monitoring ? "exception" : "", PYTHON_KINDS " " C_KINDS " " MEMORY_KINDS);
	expect_kinds(python, "call,c_call,exception,mem", PYTHON_KINDS " " C_KINDS " " MEMORY_KINDS,
		     monitoring ? "" : "exception");
}

SCENARIO(variables, off, SCENARIO_ANY)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@known.py"});
	struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {"EVPROF=0"});

	expect_same(bare, outcome);
	expect(outcome, outcome->traces == 0, "no trace is written");
	expect(outcome, stderr_evprof_lines(outcome) == 0, "not a word is said");
}

SCENARIO(variables, children, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@processes.py", "subprocesses"}, .env = {"EVPROF_CHILDREN=0"});

	json_decref(expect_trace(outcome, 1));
	outcome = run(.python = python, .args = {"@processes.py", "forks"}, .env = {"EVPROF_CHILDREN=0"});
	json_decref(expect_trace(outcome, 1));
	outcome = run(.python = python, .args = {"@processes.py", "subprocesses"}, .env = {"EVPROF_CHILDREN=1"});
	json_decref(expect_trace(outcome, 3));
}

SCENARIO(variables, output, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@known.py"}, .env = {"EVPROF_OUTPUT=of-%n-%p-%h-%t-100%%.evp"});
	char *expected = text("/of-known");
	char *pid = text("-%d-", outcome->pid);

	expect(outcome, strstr(outcome->trace, expected), "%%n is the program: %s", outcome->trace);
	expect(outcome, strstr(outcome->trace, pid), "%%p is the process: %s", outcome->trace);
	expect(outcome, strstr(outcome->trace, "-100%.evp"), "%%%% is a per cent sign: %s", outcome->trace);
	expect(outcome, !strstr(outcome->trace, "%h") && !strstr(outcome->trace, "%t"),
	       "%%h and %%t stand for something");
	json_decref(expect_trace(outcome, 1));
	outcome = run(.python = python, .args = {"@processes.py", "forks"}, .env = {"EVPROF_OUTPUT=one.evp"});
	json_decref(expect_trace(outcome, 4));
}

SCENARIO(variables, ring_and_full, SUPPORTED)
{
	static const char *const good[] = {"EVPROF_RING_SIZE=64K",
					   "EVPROF_RING_SIZE=1M",
					   "EVPROF_RING_SIZE=1048576",
					   "EVPROF_ON_FULL=wait",
					   "EVPROF_LOG=error",
					   "EVPROF_LOG=warning",
					   "EVPROF=1"};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {good[i]});
		json_t *info = expect_trace(outcome, 1);

		expect(outcome, info_events(info, "call") > 1000, "%s records all", good[i]);
		expect(outcome, stderr_evprof_lines(outcome) <= 1, "%s is understood", good[i]);
		json_decref(info);
	}
}

/* drop: nothing waits, what was lost is counted, and emitted = written + lost by a count that the program knows. */
SCENARIO(variables, drop, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@flood.py", "400000"},
				      .env = {"EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K", "EVPROF_EVENTS=call"});
	json_t *info = trace_info(outcome->trace);
	long written = info_events(info, "call"), lost = info_lost(info, "call");

	expect(outcome, outcome->status == 0, "the program runs");
	expect(outcome, written + lost >= 400000 && written + lost < 420000, "%ld written + %ld lost are all calls",
	       written, lost);
	expect(outcome, json_integer_value(json_object_get(info, "lost")) >= lost, "the total counts them too");
	json_decref(info);
}

struct mistake {
	const char *variable, *name, *allowed;
};

#define TENFOLD(text) text text text text text text text text text text

static const struct mistake mistakes[] = {
    {"EVPROF_EVENTS=call,nonsense", "EVPROF_EVENTS", "c_call"},
    {"EVPROF_EVENTS=calls", "EVPROF_EVENTS", "exception"},
    {"EVPROF_RING_SIZE=12", "EVPROF_RING_SIZE", "64K"},
    {"EVPROF_RING_SIZE=lots", "EVPROF_RING_SIZE", "1G"},
    {"EVPROF_RING_SIZE=-1", "EVPROF_RING_SIZE", "64K"},
    {"EVPROF_RING_SIZE=99999999999999999999", "EVPROF_RING_SIZE", "64K"},
    {"EVPROF_ON_FULL=panic", "EVPROF_ON_FULL", "drop"},
    {"EVPROF_CHILDREN=yes", "EVPROF_CHILDREN", "1"},
    {"EVPROF_LOG=loud", "EVPROF_LOG", "debug"},
    {"EVPROF=maybe", "EVPROF", "0"},
    {"EVPROF_SIGNAL=KILL", "EVPROF_SIGNAL", "USR2"},
    {"EVPROF_TRIGGER=app.views>5", "EVPROF_TRIGGER", "loop>TIME"},
    {"EVPROF_OUTPUT=x-%q.evp", "EVPROF_OUTPUT", "%p"},
    {"EVPROF_OUTPUT=100%", "EVPROF_OUTPUT", "%%"},
    {"EVPROF_OUTPTU=x", "EVPROF_OUTPTU", "EVPROF_OUTPUT"},
    {"EVPROF_=x", "EVPROF_", "EVPROF_OUTPUT"},
    {"EVPROF_LOG=two\nlines", "EVPROF_LOG=two?lines", "debug"},
    {"EVPROF_SOCKET=/" TENFOLD(TENFOLD("a")) "1234567", "EVPROF_SOCKET=/aaa", "107 bytes"},
};

SCENARIO(variables, mistakes, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@known.py"});

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {mistakes[i].variable});
		char *line = stderr_evprof_line(outcome, 0);
		json_t *info = expect_trace(outcome, 1);

		expect_same(bare, outcome);
		expect(outcome, strstr(line, mistakes[i].name), "%s: a line names it", mistakes[i].variable);
		expect(outcome, strstr(line, mistakes[i].allowed), "%s: the line names %s", mistakes[i].variable,
		       mistakes[i].allowed);
		expect(outcome, stderr_evprof_lines(outcome) == 2, "%s: one line, and the closing line, not %u",
		       mistakes[i].variable, stderr_evprof_lines(outcome));
		expect(outcome, info_events(info, "call") > 1000, "%s: the default holds", mistakes[i].variable);
		json_decref(info);
	}
}

/* Children do not say it again. */
SCENARIO(variables, mistake_said_once, SUPPORTED)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@processes.py", "subprocesses"}, .env = {"EVPROF_RING_SIZE=lots"});

	json_decref(expect_trace(outcome, 3));
	expect(outcome, stderr_evprof_lines(outcome) == 2, "one line for the tree, and the closing line, not %u",
	       stderr_evprof_lines(outcome));
}

SCENARIO(variables, too_many_patterns, SUPPORTED)
{
	char value[4000] = "EVPROF_INCLUDE=leaf";
	struct outcome *outcome;
	json_t *report;

	for (int i = 0; i < 500; i++)
		strcat(value, text(",p%d", i));
	outcome = run(.python = python, .args = {"@known.py"}, .env = {value, "EVPROF_EXCLUDE=recurse"});
	expect(outcome, stderr_evprof_lines(outcome) == 3 && strstr(stderr_evprof_line(outcome, 0), "\"p63\" on"),
	       "a line for each variable and the closing one, not %u", stderr_evprof_lines(outcome));
	report = trace_report(outcome->trace, NULL);
	expect(outcome, report_calls(report, "known.py", "leaf") == 1000, "the first ones hold");
	json_decref(report);
}

/* What is shown of paths does not write to the user's terminal. */
SCENARIO(variables, control_characters, SUPPORTED)
{
	static const char *const settings[] = {"EVPROF_SOCKET=/nonexistent/\033[2J\302\233",
					       "EVPROF_SOCKET=@\033[2J\302\233",
					       "EVPROF_OUTPUT=/proc/\033[2J\302\233/x"};

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {settings[i]});

		expect(outcome, stderr_evprof_lines(outcome) >= 1 && strstr(outcome->err, "?[2J??"), "a line names it");
		expect(outcome, !strchr(outcome->err, '\033') && !strstr(outcome->err, "\302\233"),
		       "as question marks");
	}
}

/* Longer than a line is: the value is cut, what is allowed is not. */
SCENARIO(variables, long_mistake, SCENARIO_ONCE)
{
	char *value = text("EVPROF_EVENTS=%05000d", 0);
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", "pass"}, .env = {value});

	(void)python;
	expect(outcome, strncmp(outcome->err, "evprof: EVPROF_EVENTS=000", 25) == 0, "a line");
	expect(outcome, strstr(outcome->err, "000... is not understood; allowed: a list"), "that says that it was cut");
	expect(outcome, stderr_evprof_lines(outcome) == 2, "and the closing line");
}
