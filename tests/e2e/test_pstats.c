/*
 * test_pstats.c - the pstats export and the report against Python itself: cProfile and pstats are the oracles.
 *
 * pstats_oracle.py runs in the interpreter that is tested, so the file is loaded by the pstats of each version.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

/* The time of a mark in ns since the start of the trace, as --from and --to want it. */
static char *mark_time(const struct outcome *outcome, const char *name)
{
	size_t count;
	struct event *events = trace_dump(outcome->trace, &count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(events[i].kind, "mark") == 0 && strcmp(events[i].name, name) == 0)
			return text("%lld", events[i].time_ns);
	expect(outcome, false, "the mark \"%s\" is in the trace", name);
	return NULL;
}

static char *exported(const struct outcome *outcome, const char *from, const char *to)
{
	char *path = text("%s/ours.pstats", outcome->directory);
	struct outcome *export =
	    from ? tool("export", "--format", "pstats", "--from", from, "--to", to, outcome->trace, "-o", path)
		 : tool("export", "--format", "pstats", outcome->trace, "-o", path);

	expect(export, export->status == 0, "the export ends with 0");
	return path;
}

/* ---- calls and callers, against cProfile ----------------------------------------------------------------------- */

static void expect_same_callers(const struct python *python, const char *name)
{
	char *program = text("%s", program_path(text("../counted/%s.py", name)));
	struct outcome *theirs = run(.python = python, .how = JOB_BARE,
				     .args = {"@../pstats_oracle.py", "profile", program, "their.pstats"});
	struct outcome *outcome = run(.python = python, .args = {"@../count.py", "evprof", program},
				      .env = {"EVPROF_EVENTS=call,c_call,exception"});
	char *path, *their_path = text("%s/their.pstats", theirs->directory), *rest;
	struct outcome *judge;

	expect(theirs, theirs->status == 0, "%s runs under cProfile", name);
	expect(outcome, outcome->status == 0, "%s runs under evprof", name);
	path = exported(outcome, mark_time(outcome, "begin"), mark_time(outcome, "end"));
	judge = run(.python = python, .how = JOB_BARE, .args = {"@../pstats_oracle.py", "compare", path, their_path});
	expect(judge, judge->status == 0, "pstats loads both files");
	expect(judge, strtol(judge->out, &rest, 10) > 40, "%s is a program with calls", name);
	expect(judge, strcmp(rest, "\n") == 0, "calls and callers are those of cProfile");
	judge = run(.python = python, .how = JOB_BARE, .args = {"@../pstats_oracle.py", "shape", path, their_path});
	rest = strchr(judge->out, '\n') ? strchr(judge->out, '\n') + 1 : NULL;
	expect(judge, rest && strncmp(judge->out, rest, (size_t)(rest - judge->out)) == 0,
	       "the file has the shape of cProfile's");
}

#define CALLERS(Name)                                                                                                  \
	SCENARIO(callers, Name, SUPPORTED)                                                                             \
	{                                                                                                              \
		expect_same_callers(python, #Name);                                                                    \
	}

/* Not thread_work: cProfile knows one thread until 3.11, and takes all for one from 3.12 on. */
CALLERS(parsing)
CALLERS(expressions)
CALLERS(async_tasks)
CALLERS(generator_chains)
CALLERS(recursion)
CALLERS(failing)
CALLERS(class_tools)
CALLERS(number_types)
CALLERS(text_tools)
CALLERS(containers)

/* Times against the clock: what sleeps takes that long, its callers take it with what they call, and none else does. */
SCENARIO(callers, times, SUPPORTED)
{
	static const char *const naps = "import time\n"
					"def nap(): time.sleep(0.1)\n"
					"def outer(): nap(); nap(); nap()\n"
					"outer()\n";
	static const char *const judgement =
	    "import pstats, sys\n"
	    "stats = pstats.Stats(sys.argv[1]).stats\n"
	    "rows = {key[2]: row for key, row in stats.items() if key[2] in ('nap', 'outer') or 'sleep' in key[2]}\n"
	    "nap, outer = rows.pop('nap'), rows.pop('outer')\n"
	    "(sleep,) = rows.values()\n"
	    "assert nap[:2] == sleep[:2] == (3, 3) and outer[:2] == (1, 1), (nap, sleep, outer)\n"
	    "assert 0.3 <= sleep[2] == sleep[3] <= nap[3] <= outer[3] < 3, (nap, sleep, outer)\n"
	    "assert nap[2] < 0.1 and outer[2] < 0.1, (nap, outer)\n"
	    "(by_nap,), (by_outer,) = sleep[4].values(), nap[4].values()\n"
	    "assert by_nap == (3, 3, sleep[2], sleep[3]) and by_outer == (3, 3, nap[2], nap[3]), (by_nap, by_outer)\n";
	struct outcome *outcome = run(.python = python, .args = {"-c", naps});
	struct outcome *judge =
	    run(.python = python, .how = JOB_BARE, .args = {"-c", judgement, exported(outcome, NULL, NULL)});

	expect(judge, judge->status == 0, "times are those of the clock");
}

SCENARIO(callers, strange_names, SUPPORTED)
{
	static const char *const judgement = "import pstats, sys\n"
					     "names = [key[2] for key in pstats.Stats(sys.argv[1]).stats]\n"
					     "def some(part): assert any(part in name for name in names), part\n"
					     "some('quo\"te'); some('new\\nline'); some('back\\\\slash')\n"
					     "some('\\xfcml\\xe4ut'); some('\\U0001f600'); some('surrogate')\n"
					     "assert max(map(len, names)) >= 5000\n";
	struct outcome *outcome = run(.python = python, .args = {"@names.py"});
	struct outcome *judge =
	    run(.python = python, .how = JOB_BARE, .args = {"-c", judgement, exported(outcome, NULL, NULL)});

	expect(judge, judge->status == 0, "pstats reads all names");
}

/* ---- the report, against pstats -------------------------------------------------------------------------------- */

/* Options of evprof report, to which pstats is asked for the same. Words are apart by one space. */
static const char *const cases[] = {
    "",
    "--sort calls",
    "--sort ncalls",
    "--sort pcalls",
    "--sort time",
    "--sort tottime",
    "--sort cumulative",
    "--sort cumtime",
    "--sort file",
    "--sort filename",
    "--sort module",
    "--sort line",
    "--sort name",
    "--sort nfl",
    "--sort stdname",
    "--sort -1",
    "--sort 0",
    "--sort 1",
    "--sort 2",
    "--sort calls,cumulative",
    "--sort file,line,name",
    "--sort nfl,time",
    "--sort line,pcalls,stdname",
    "--sort ca",
    "--sort f,l,na",
    "--sort cumu",
    "--sort std",
    "--sort calls --reverse",
    "--sort time --reverse --restrict 20",
    "--restrict 10",
    "--restrict 0",
    "--restrict 1000000",
    "--restrict 0.1",
    "--restrict .25",
    "--restrict 0.0",
    "--restrict 1.0",
    "--restrict 0.123456789",
    "--restrict init",
    "--restrict {built-in",
    "--restrict ^{method.*'list'",
    "--restrict :\\d+\\(",
    "--restrict [\\d_]a",
    "--restrict (?:json|decoder).py:[0-9]{2,3}\\b",
    "--restrict (?i)JSON --restrict 5",
    "--restrict nothing-has-this-name",
    "--restrict json --restrict 0.5 --restrict 8",
    "--sort cumulative --restrict 30 --restrict importlib",
    "--restrict a'b|c\"|e --restrict \"|i --restrict '|o|u",
    "--callers",
    "--callees",
    "--callers --restrict 12",
    "--callees --sort cumulative --restrict 0.05",
    "--callers --sort calls,name --reverse --restrict json",
    "--callees --restrict recurse",
    "--callees --restrict nothing-has-this-name",
    "--strip-dirs",
    "--strip-dirs --sort stdname",
    "--strip-dirs --sort nfl",
    "--strip-dirs --sort file,line,name --reverse",
    "--strip-dirs --sort cumulative --restrict 25",
    "--strip-dirs --callers --restrict deterministic.py",
    "--strip-dirs --callees --restrict deterministic.py",
};

#define CASES (sizeof(cases) / sizeof(*cases))

/* Modules of the standard library, recursion, generators, and functions whose lines sort otherwise as text. */
static const char program[] = "import json, textwrap\n"
			      "def recurse(n):\n"
			      "    return n and 1 + recurse(n - 1)\n"
			      "def even(n): return n == 0 or odd(n - 1)\n"
			      "def odd(n): return n != 0 and even(n - 1)\n"
			      "def numbers(n):\n"
			      "    for i in range(n):\n"
			      "        yield i\n"
			      "class Thing:\n"
			      "    def __init__(self, n): self.n = n\n"
			      "    def __lt__(self, other): return self.n < other.n\n"
			      "def main():\n"
			      "    for n in numbers(20):\n"
			      "        recurse(n), even(n)\n"
			      "    sorted(Thing(n % 7) for n in numbers(50))\n"
			      "    for i in range(10):\n"
			      "        json.loads(json.dumps({'a': [1, 2, {'b': None}]}, indent=1))\n"
			      "    textwrap.wrap('words and words ' * 50)\n"
			      "main()\n";

/* What evprof prints with the options of a case. */
static char *printed(const struct outcome *outcome, const char *options)
{
	const char *args[24] = {"report"}, *word;
	char *rest = text("%s", options);
	struct outcome *report;
	int count = 1;

	while (*options && (word = strsep(&rest, " ")))
		args[count++] = word;
	args[count] = outcome->trace;
	report = tool_run(args);
	expect(report, report->status == 0, "evprof report %s", options);
	return report->out;
}

/* Empty lines at the end are pstats' own. */
static void cut_end(char *text)
{
	size_t length = strlen(text);

	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
}

/* The part of the oracle's output that belongs to a case. */
static char *next_part(struct outcome *judge, char **rest, const char *options)
{
	char *title = text("=== %s\n", options), *part = *rest, *end;

	expect(judge, strncmp(part, title, strlen(title)) == 0, "the oracle knows \"%s\"", options);
	part += strlen(title);
	end = strstr(part, "=== ");
	*rest = end ? end : part + strlen(part);
	part = text("%.*s", (int)(*rest - part), part);
	cut_end(part);
	return part;
}

/* The first line that differs, for the message. */
static void expect_same_lines(struct outcome *judge, const char *options, char *ours, char *theirs)
{
	int line = 1;

	while (ours && theirs) {
		char *mine = strsep(&ours, "\n"), *other = strsep(&theirs, "\n");

		expect(judge, strcmp(mine, other) == 0, "report %s, line %d:\n    evprof \"%s\"\n    pstats \"%s\"",
		       options, line, mine, other);
		line++;
	}
	expect(judge, !ours && !theirs, "report %s: %s has more lines than %d", options, ours ? "evprof" : "pstats",
	       line - 1);
}

SCENARIO(pstats, same_tables, SUPPORTED)
{
	struct outcome *outcome, *judge;
	char *cases_path, *program_file, *rest, *all = text("%s", "");

	judge = run(.python = python, .how = JOB_BARE, .args = {"-c", "pass"});
	program_file = text("%s/deterministic.py", judge->directory);
	file_write(program_file, program, strlen(program));
	outcome = run(.python = python, .args = {program_file}, .env = {"EVPROF_EVENTS=call,c_call"});
	for (size_t i = 0; i < CASES; i++)
		all = text("%s%s\n", all, cases[i]);
	cases_path = text("%s/cases", outcome->directory);
	file_write(cases_path, all, strlen(all));
	judge = run(.python = python, .how = JOB_BARE,
		    .args = {"@../pstats_oracle.py", "print", exported(outcome, NULL, NULL), cases_path},
		    .env = {"PYTHONIOENCODING=utf-8"});
	expect(judge, judge->status == 0, "the oracle prints all cases");
	rest = judge->out;
	for (size_t i = 0; i < CASES; i++) {
		char *theirs = next_part(judge, &rest, cases[i]), *ours = printed(outcome, cases[i]);

		cut_end(ours);
		expect_same_lines(judge, cases[i], ours, theirs);
	}
}

/* What 2.7 loads, every Python loads. */
SCENARIO(pstats, loaded_by_all, SCENARIO_ANY)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@known.py"});
	struct outcome *judge =
	    run(.python = python, .how = JOB_BARE, .args = {"-m", "pstats", exported(outcome, NULL, NULL)},
		.input = "sort calls\nstats leaf\ncallers leaf\n");

	expect(judge, judge->status == 0 && strstr(judge->out, "     1000 "), "1000 calls of leaf");
	expect(judge, strstr(judge->out, "known.py:9(work)"), "by work");
}

/* ---- other readers of the format ------------------------------------------------------------------------------- */

SCENARIO(pstats, gprof2dot, SCENARIO_ONCE)
{
	const struct python *any = python_any();
	const char *packages = package_variable(any, "gprof2dot");
	struct outcome *outcome = run(.python = any, .args = {"@known.py"});
	struct outcome *graph =
	    run(.python = any, .how = JOB_BARE, .env = {packages},
		.args = {"-m", "gprof2dot", "-f", "pstats", "-n", "0", "-e", "0", exported(outcome, NULL, NULL)});

	(void)python;
	expect(graph, graph->status == 0 && strncmp(graph->out, "digraph", 7) == 0, "gprof2dot makes a graph");
	expect(graph, strstr(graph->out, "leaf") && strstr(graph->out, "1000"), "with leaf, called 1000 times");
}

/* The two functions that make snakeviz's page. */
SCENARIO(pstats, snakeviz, SCENARIO_ONCE)
{
	static const char *const judgement =
	    "import json, pstats, sys\n"
	    "from snakeviz.stats import json_stats, table_rows\n"
	    "stats = pstats.Stats(sys.argv[1])\n"
	    "rows = table_rows(stats)\n"
	    "assert len(rows) == len(stats.stats), len(rows)\n"
	    "assert [row[0] for row in rows if 'leaf' in row[-2]] == [['1000', 1000]], rows\n"
	    "functions = json.loads(json.dumps(json_stats(stats)))\n"
	    "(leaf,) = [value for key, value in functions.items() if 'leaf' in key]\n"
	    "assert [value[:2] for key, value in leaf['callers'].items() if 'work' in key] == [[1000, 1000]], leaf\n";
	const struct python *any = python_any();
	const char *packages = package_variable(any, "snakeviz");
	struct outcome *outcome = run(.python = any, .args = {"@known.py"});
	struct outcome *judge = run(.python = any, .how = JOB_BARE, .env = {packages},
				    .args = {"-c", judgement, exported(outcome, NULL, NULL)});

	(void)python;
	expect(judge, judge->status == 0, "snakeviz reads it");
}
