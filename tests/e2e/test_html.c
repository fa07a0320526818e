/*
 * test_html.c - the HTML report in a headless browser: what the page holds and what it counts from its own calls is
 * what evprof report and evprof info print, whatever the names are; its memory is that of folded stacks, and
 * tracemalloc's; it moves, zooms, searches; and it does so with ten million events.
 *
 * Without Chromium all of it is skipped.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "browser.h"
#include "harness.h"
#include "strike.h"

/*
 * What is asked of the page. counted(): the functions as the page counts them from the calls of the timeline, in the
 * form of evprof report --json; table(): the same from its table. Names are compared as the page shows them, with any
 * number of U+FFFD as one: report and browser put a different number of them for broken text.
 */
static const char *const helpers =
    "globalThis.plain = (name) => evprof.visible(name).replace(/\\ufffd+/g, '\\ufffd');"
    "globalThis.rows = (from) => { const all = []; const f = evprof.functions;"
    "  for (let i = 0; i < f.count; i++) if (from.calls[i] || from.own[i] || from.total[i])"
    "    all.push({key: plain(evprof.functionFile(i)) + '|' + f.line[i] + '|' + plain(evprof.cname(i)),"
    "      calls: from.calls[i], primitive: from.calls[i] - from.recursive[i], own: from.own[i], total: "
    "from.total[i]});"
    "  return all; };"
    "globalThis.reported = (report) => report.functions.map((f) => ({key: plain(f.file) + '|' + f.line + '|' + "
    "plain(f.function),"
    "  calls: f.ncalls, primitive: f.primitive_calls, own: f.tottime_ns, total: f.cumtime_ns}));"
    "globalThis.sorted = (list) => list.sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : a.calls - b.calls || "
    "a.own - b.own);"
    /* The first difference as a text; '' where there is none. near(calls): how far times may be apart, in ns. */
    "globalThis.differs = (mine, theirs, near, nested) => { sorted(mine); sorted(theirs);"
    "  if (mine.length !== theirs.length) return `${mine.length} functions, not ${theirs.length}`;"
    "  for (let i = 0; i < mine.length; i++) { const a = mine[i], b = theirs[i];"
    "    if (a.key !== b.key || a.calls !== b.calls || Math.abs(a.own - b.own) > near(b.calls) ||"
    "      (nested && (a.primitive !== b.primitive || Math.abs(a.total - b.total) > near(b.calls))))"
    "      return JSON.stringify([a, b]); }"
    "  return ''; };"
    "1";

struct page {
	struct browser *browser;
	char *path;
	double ready_ms;
};

static struct page page_open(const struct outcome *outcome)
{
	struct page page = {.path = text("%s/report.html", outcome->directory)};
	struct outcome *export;

	page.browser = browser_open(outcome->directory);
	export = tool("export", "--format", "html", outcome->trace, "-o", page.path);
	expect(export, export->status == 0 && !*export->err, "the export ends with 0 and complains of nothing");
	browser_load(page.browser, page.path);
	page.ready_ms = browser_number(page.browser, "evprof.ready");
	browser_ask(page.browser, "%s", helpers);
	return page;
}

static void page_close(struct page *page)
{
	browser_expect_quiet(page->browser);
	cr_assert(browser_number(page->browser, "performance.getEntriesByType('resource').length") == 0,
		  "the page loads nothing");
	browser_close(page->browser);
}

static void expect_same_text(const struct page *page, const char *what, const char *expression)
{
	const json_t *difference = browser_ask(page->browser, "(async () => %s)()", expression);

	cr_assert(json_is_string(difference) && !*json_string_value(difference), "%s: page and report differ: %s", what,
		  json_string_value(difference) ? json_string_value(difference) : "?");
}

static void give_report(const struct page *page, json_t *report)
{
	char *json = json_dumps(report, JSON_COMPACT | JSON_ENSURE_ASCII);

	browser_ask(page->browser, "globalThis.report = %s; 1", json);
	free(json);
}

/* The table is that of the report to the last ns; the calls in the timeline add up to it but for rounding. */
static void expect_counts(const struct page *page, const struct outcome *outcome)
{
	json_t *report = trace_report(outcome->trace, NULL);
	json_t *info = trace_info(outcome->trace);

	give_report(page, report);
	expect_same_text(page, "table", "differs(rows(evprof.functions), reported(report), () => 0, true)");
	expect_same_text(page, "calls",
			 "differs(rows(await evprof.aggregate(-1, Infinity)), reported(report), (calls) => 2 * calls + "
			 "1000, false)");
	cr_assert(browser_number(page->browser, "evprof.meta.calls") ==
		  (double)json_integer_value(json_object_get(report, "calls")));
	cr_assert(browser_number(page->browser, "evprof.meta.events") ==
		  (double)json_integer_value(json_object_get(info, "events")));
	cr_assert(browser_number(page->browser, "evprof.meta.processes.length") ==
		  (double)json_array_size(json_object_get(info, "processes")));
	cr_assert(browser_number(page->browser, "evprof.meta.threads.length") == (double)info_threads(info));
	/* The flame graph has the time of the table. */
	cr_assert(fabs(browser_number(page->browser, "evprof.shown.tree.total[0]") -
		       browser_number(page->browser, "evprof.functions.own.reduce((a, b) => a + b, 0)")) <
		      2000 + 2 * (double)json_integer_value(json_object_get(report, "calls")),
		  "flame graph and table have the same time");
	json_decref(report);
	json_decref(info);
}

SCENARIO_SOME(html, counts, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@known.py"});
	struct page page = page_open(outcome);

	expect_counts(&page, outcome);
	/* recurse(50): 51 calls, one of them the outermost, as the page counts it. */
	cr_assert(browser_number(page.browser,
				 "evprof.aggregate(-1, Infinity).then((all) => { const f = [...Array(evprof.functions."
				 "count).keys()].find((i) => evprof.functionName(i) === 'recurse');"
				 " return all.calls[f] * 1000 + all.recursive[f]; })") == 51050);
	/* Python's own start may allocate at more lines than a page shows at a moment. */
	cr_assert(browser_number(page.browser,
				 "[...document.querySelectorAll('#notes li')].filter((note) => "
				 "!note.textContent.includes('with the least memory alive')).length") == 0,
		  "nothing else is left out, and the page does not say so");
	page_close(&page);
}

/* Spans have rows below their thread, by name; those that overlap have a row each. */
SCENARIO_SOME(html, spans, SUPPORTED)
{
	static const struct {
		const char *name;
		double count;
	} spans[] = {{"task", 6}, {"step", 16}, {"coroutine", 1}, {"async generator", 1}};
	struct outcome *outcome;
	struct page page;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@spans.py", "tasks"},
		      .env = {text("PYTHONPATH=%s", program_path("../../../tools/python"))});
	page = page_open(outcome);
	browser_ask(page.browser, "globalThis.rows = (name) => evprof.tracks.filter((track) => track.kind === 'task' &&"
				  "  track.name.replace(/ #[0-9]+$/, '') === `span ${name}`); 1");
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		double count = browser_number(
		    page.browser, "rows('%s').reduce((sum, track) => sum + track.steps.length, 0)", spans[i].name);

		expect(outcome, count == spans[i].count, "%g spans %s", count, spans[i].name);
	}
	expect(outcome, browser_number(page.browser, "rows('task').length") > 1, "tasks overlap");
	expect(outcome,
	       browser_number(page.browser,
			      "rows('task').concat(rows('step')).every((track) => track.steps.every((step, i) =>"
			      "  step.start <= step.end && (!i || track.steps[i - 1].end <= step.start))) ? 1 : 0") ==
		   1,
	       "spans of a row do not overlap");
	expect(outcome,
	       browser_number(page.browser, "rows('step').flatMap((track) => track.steps).filter((step) =>"
					    "  /^n=5, i=[0-4]$/.test(evprof.textAt(step.more - 1))).length") == 5,
	       "spans have their arguments");
	page_close(&page);
}

/* Spans that another thread ends are below the one in which they began, whichever is read first. */
SCENARIO_SOME(html, spans_that_others_end, SUPPORTED)
{
	static const char *const program =
	    "import evprof, threading\n"
	    "def begin(): span.__enter__(); begun.set(); ended.wait()\n"
	    "def end(): started.set(); begun.wait(); span.__exit__(None, None, None); ended.set()\n"
	    "for late in 'begins', 'ends':\n"
	    "    begun, ended, started = (threading.Event() for _ in range(3))\n"
	    "    span = evprof.span(late + ' late')\n"
	    "    first, second = (threading.Thread(target=do, name=do.__name__)\n"
	    "                     for do in ((end, begin) if late == 'begins' else (begin, end)))\n"
	    "    first.start(); (started if late == 'begins' else begun).wait(); second.start()\n"
	    "    first.join(); second.join()\n";
	struct outcome *outcome;
	struct page page;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"-c", program},
		      .env = {text("PYTHONPATH=%s", program_path("../../../tools/python"))});
	page = page_open(outcome);
	browser_ask(page.browser,
		    "globalThis.threadOf = (i) => evprof.threadName("
		    "evprof.tracks.slice(0, i).reverse().find((track) => track.kind === 'thread').thread);"
		    "globalThis.spans = evprof.tracks.map((track, i) => track.kind === 'task' &&"
		    "  `${threadOf(i)}: ${track.name}`).filter((name) => name && name.includes(': span ')); 1");
	cr_assert(json_is_true(browser_ask(page.browser, "spans.length === 2 && spans.every((span) =>"
							 " /^begin( \\d+)?: span (begins|ends) late$/.test(span))")),
		  "%s", json_dumps(browser_ask(page.browser, "spans"), 0));
	page_close(&page);
}

/* Each counter has a row with all its values in order; the pointer finds the value of a time. */
SCENARIO_SOME(html, counters, SUPPORTED)
{
	struct outcome *outcome;
	struct page page;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@spans.py", "counters"},
		      .env = {text("PYTHONPATH=%s", program_path("../../../tools/python"))});
	page = page_open(outcome);
	browser_ask(page.browser, "globalThis.rows = evprof.tracks.filter((track) => track.kind === 'counter'); 1");
	expect(outcome, browser_number(page.browser, "rows.length") == 3, "three counters");
	expect(
	    outcome,
	    browser_number(
		page.browser,
		"rows.filter(({counter}, k) => counter.name === `counter ${k}` && counter.value.every((value, n) => {"
		"  const i = 3 * n + k; return value === [i, i / 7, -1e300, 2 ** 53][i & 3] &&"
		"  (!n || counter.time[n] >= counter.time[n - 1]); })).length") == 3,
	    "the values are those that the program set");
	expect(outcome,
	       browser_number(
		   page.browser,
		   "(() => { const {counter, y, height} = rows[1]; evprof.setView(counter.time[5], counter.time[6]);"
		   "  const box = document.getElementById('tracks'); box.scrollTop = y; evprof.drawNow();"
		   "  const hit = evprof.hit(evprof.view.width / 2, y - box.scrollTop + height / 2);"
		   "  return hit && hit.counter === counter ? hit.at : -1; })()") == 5,
	       "the pointer finds the value of a time");
	page_close(&page);
}

/* Each task has a row below its thread: name and steps as the program counts them. The pointer finds them. */
SCENARIO_SOME(html, tasks, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@named_tasks.py"});
	struct page page = page_open(outcome);
	json_t *counts = json_loads(outcome->out, 0, NULL), *steps;
	const char *name;

	expect(outcome, json_object_size(counts) == 6, "the program has counted");
	browser_ask(page.browser,
		    "globalThis.row = (name) => evprof.tracks.filter((track) => track.kind === 'task' &&"
		    "  track.name.startsWith(`task ${name} #`));"
		    "globalThis.found = (track) => { evprof.wholeView(); evprof.setView(track.steps[0].start - 1e4,"
		    "  track.steps[0].end + 1e4); const box = document.getElementById('tracks');"
		    "  box.scrollTop = track.y; evprof.drawNow();"
		    "  const hit = evprof.hit(evprof.view.width / 2, track.y - box.scrollTop + 5);"
		    "  const names = [...document.querySelectorAll('#names .task')].map((one) => one.textContent);"
		    "  return hit && hit.task === track && hit.step === track.steps[0] &&"
		    "    names.includes(track.name); }; 1");
	json_object_foreach(counts, name, steps)
	{
		json_t *wanted = json_string(name);
		char *quoted = json_dumps(wanted, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
		double rows = browser_number(page.browser, "row(%s).length", quoted);
		double shown = rows == 1 ? browser_number(page.browser, "row(%s)[0].steps.length", quoted) : -1;

		expect(outcome, shown == (double)json_integer_value(steps), "%s has %g rows, %g steps", name, rows,
		       shown);
		expect(outcome, browser_number(page.browser, "found(row(%s)[0]) ? 1 : 0", quoted) == 1,
		       "the row of %s is seen, and found by the pointer", name);
		free(quoted);
		json_decref(wanted);
	}
	json_decref(counts);
	page_close(&page);
}

/* Its own stopwatch and counters. Twice the call of itself, and one of two functions, are in the time of the first. */
static const char *const recursive = "import time\n"
				     "kept = []\n"
				     "def fib(n):\n"
				     "    if n < 2: time.sleep(0.002); kept.append(bytearray(10000)); return n\n"
				     "    return fib(n - 1) + fib(n - 2)\n"
				     "def even(n):\n"
				     "    time.sleep(0.002)\n"
				     "    began = time.perf_counter()\n"
				     "    found = n == 0 or odd(n - 1)\n"
				     "    if n == 30: print(time.perf_counter() - began)\n"
				     "    return found\n"
				     "def odd(n): return n != 0 and even(n - 1)\n"
				     "def main():\n"
				     "    began = time.perf_counter(); fib(8); print(time.perf_counter() - began)\n"
				     "    even(30)\n"
				     "main()\n";

/* The rows of callers or of called as the page counts them: {caller: [calls, amount]}. */
static const char *const call_helpers =
    "globalThis.number = (name) => [...Array(evprof.functions.count).keys()].find((f) => evprof.cname(f) === name &&"
    "  evprof.functionFile(f) === '<string>');"
    "globalThis.callOf = (name, called, other) => (evprof.callersAndCallees(number(name))[called].find(([f]) =>"
    "  f === number(other)) || [0, {calls: -1, total: -1}])[1]; 1";

/* ns. A page may add a tenth, and 10 ms where the machine is busy. */
static void expect_amount(const struct page *page, const char *expression, double least)
{
	double found = browser_number(page->browser, "%s", expression);

	cr_assert(found > least * 0.99 - 1e5 && found < least * 1.1 + 1e7, "%s: %.0f, not %.0f", expression, found,
		  least);
}

/* Of a number of bytearrays of 10000 bytes and a NUL, each with its head, and of little else. */
static void expect_bytes(const struct page *page, const char *expression, int arrays)
{
	double found = browser_number(page->browser, "%s", expression);

	cr_assert(found >= arrays * 10001 && found < arrays * 10300, "%s: %.0f bytes of %d arrays", expression, found,
		  arrays);
}

/* Callers and called of recursive functions have the time, and the memory, that their outermost calls have. */
SCENARIO_SOME(html, recursion, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"-c", recursive});
	struct page page = page_open(outcome);
	char *rest;
	double fib = strtod(outcome->out, &rest) * 1e9, odd = strtod(rest, NULL) * 1e9;

	browser_ask(page.browser, "%s", call_helpers);
	expect_amount(&page, "callOf('fib', 0, 'main').total", fib);
	cr_assert(browser_number(page.browser, "callOf('fib', 0, 'fib').total") <= fib * 1.1 + 1e7);
	cr_assert(browser_number(page.browser, "callOf('fib', 0, 'fib').calls") == 66);
	expect_amount(&page, "callOf('main', 1, 'fib').total", fib);
	expect_amount(&page, "callOf('even', 1, 'odd').total", odd);
	cr_assert(browser_number(page.browser, "callOf('odd', 0, 'even').calls") == 15);
	expect_bytes(&page, "evprof.selectWeight('bytes').then(() => callOf('fib', 0, 'fib').total)", 34);
	cr_assert(browser_number(page.browser, "callOf('fib', 0, 'fib').calls") < 34 * 8, "blocks count once, too");
	page_close(&page);
}

/* Lines are no marks: the exceptions that come after a hundred thousand of them are drawn, and nothing is left out. */
SCENARIO_SOME(html, lines_are_no_marks, SUPPORTED)
{
	static const char *const code = "for i in range(60000):\n    x = i\n    y = i\n"
					"for i in range(7):\n"
					"    try: raise ValueError(i)\n"
					"    except ValueError: pass\n";
	struct outcome *outcome =
	    run(.python = python, .args = {"-c", code}, .env = {"EVPROF_EVENTS=call,line,exception"});
	json_t *info = trace_info(outcome->trace);
	struct page page = page_open(outcome);

	cr_assert(info_events(info, "line") > 120000);
	cr_assert(browser_number(page.browser, "evprof.meta.instants_left_out") == 0);
	cr_assert(browser_number(page.browser, "evprof.instants.flat().filter(({kind}) => kind === 10).length") ==
		  (double)info_events(info, "exception"));
	cr_assert(browser_number(page.browser, "evprof.instants.flat().filter(({kind}) => kind === 28).length") == 0);
	json_decref(info);
	page_close(&page);
}

/* In a narrow window, too, a click shows what was clicked. */
SCENARIO(html, narrow, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@known.py"});
	struct page page = page_open(outcome);

	(void)python;
	browser_command(page.browser, "Emulation.setDeviceMetricsOverride",
			"{\"width\":600,\"height\":800,\"deviceScaleFactor\":1,\"mobile\":false}");
	browser_ask(page.browser, "document.getElementById('tab_table').click(), 1");
	browser_ask(page.browser, "document.querySelector('#rows tr').click(), 1");
	cr_assert(json_is_true(browser_ask(
		      page.browser,
		      "(() => { const box = document.querySelector('#details h2').getBoundingClientRect();"
		      "  const at = document.elementFromPoint(box.left + 20, box.top + 5);"
		      "  return box.width > 100 && box.bottom < innerHeight && at.closest('#details') !== null; })()")),
		  "the details can be seen");
	cr_assert(json_is_true(browser_ask(page.browser, "document.getElementById('panel_table').clientHeight > 100 && "
							 "document.documentElement.scrollWidth <= innerWidth")),
		  "next to the table, within the window");
	page_close(&page);
}

SCENARIO_SOME(html, threads_and_processes, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	struct page page = page_open(outcome);

	expect_counts(&page, outcome);
	page_close(&page);
	outcome = run(.python = python, .args = {"@processes.py", "forks"});
	page = page_open(outcome);
	expect_counts(&page, outcome);
	cr_assert(browser_number(page.browser, "document.querySelectorAll('.track.process').length") > 0);
	page_close(&page);
}

/* The page of an export with these words says what of the trace it shows. */
static void expect_part(struct page *page, const struct outcome *outcome, const char *const words[4], const char *note)
{
	struct outcome *export =
	    tool("export", "-f", "html", "-o", page->path, outcome->trace, words[0], words[1], words[2], words[3]);

	expect(export, export->status == 0, "the export of a part");
	browser_load(page->browser, page->path);
	browser_number(page->browser, "evprof.ready");
	cr_assert(json_is_true(browser_ask(page->browser,
					   "document.getElementById('notes').textContent.includes("
					   "'filtered by the export: %s.')",
					   note)),
		  "%s: %s", note,
		  json_string_value(browser_ask(page->browser, "document.getElementById('notes').textContent")));
}

SCENARIO(html, parts, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@processes.py", "forks"});
	struct page page = page_open(outcome);
	json_t *info = trace_info(outcome->trace);
	const json_t *processes = json_object_get(info, "processes");
	char *pids[2], *tid;

	(void)python;
	cr_assert(json_array_size(processes) >= 2);
	for (size_t i = 0; i < 2; i++)
		pids[i] = text("%lld", json_integer_value(json_object_get(json_array_get(processes, i), "pid")));
	tid = pids[0]; /* of the main thread */
	expect_part(&page, outcome, (const char *const[]){"--process", pids[1], NULL, NULL},
		    text("process %s", pids[1]));
	expect_part(&page, outcome, (const char *const[]){"--process", pids[0], "--process", pids[1]},
		    text("processes %s, %s", pids[0], pids[1]));
	expect_part(&page, outcome, (const char *const[]){"--process", pids[0], "--thread", tid},
		    text("process %s, thread %s", pids[0], tid));
	json_decref(info);
	page_close(&page);
}

SCENARIO_SOME(html, generators_and_exceptions, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	struct page page = page_open(outcome);

	expect_counts(&page, outcome);
	page_close(&page);
}

SCENARIO_SOME(html, strange_names, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@names.py"});
	struct page page = page_open(outcome);
	json_t *info = trace_info(outcome->trace), *threads, *process;

	expect_counts(&page, outcome);
	cr_assert(browser_number(page.browser, "document.scripts.length") > 5, "the page is whole");
	cr_assert(browser_number(page.browser, "[...Array(evprof.functions.count).keys()].filter((f) => "
					       "evprof.functionName(f).includes('</script>')).length") >= 1,
		  "a name may be </script>");
	process = json_array_get(json_object_get(info, "processes"), 0);
	threads = json_object_get(process, "threads");
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *name = json_object_get(json_array_get(threads, i), "name");
		char *json = json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

		cr_assert(json_is_true(browser_ask(page.browser, "!%s || plain(evprof.threadName(%zu)) === plain(%s)",
						   json, i, json)),
			  "thread %zu is called %s", i, json);
		free(json);
	}
	/* All of them are drawn and listed without an exception. */
	browser_ask(page.browser, "document.getElementById('tab_table').click(), evprof.drawNow(), 1");
	cr_assert(browser_number(page.browser, "document.querySelectorAll('#rows tr').length") > 10);
	json_decref(info);
	page_close(&page);
}

/* A selected stretch of time counts what evprof report counts in it. */
SCENARIO_SOME(html, stretch, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"}), *part;
	struct page page = page_open(outcome);
	double span = browser_number(page.browser, "evprof.meta.to");

	for (int i = 0; i < 4; i++) {
		char *from = text("%.0f", floor(span * i / 5)), *to = text("%.0f", floor(span * (i + 2) / 5));
		json_t *report;

		part = tool("report", "--json", "--from", from, "--to", to, outcome->trace);
		expect(part, part->status == 0, "a report of a stretch");
		report = json_loads(part->out, 0, NULL);
		cr_assert(browser_number(page.browser, "evprof.aggregate(%s, %s).then((all) => all.counted)", from,
					 to) == (double)json_integer_value(json_object_get(report, "calls")),
			  "calls from %s to %s ns", from, to);
		json_decref(report);
	}
	page_close(&page);
}

/* Text on each colour of a call, found or not, has a contrast of at least 4.5 to 1, as WCAG AA wants. */
static const char *const least_contrast =
    "(() => { const linear = (v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);"
    "  const light = (r, g, b) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);"
    "  const word = (w) => light(w & 255, w >> 8 & 255, w >> 16 & 255);"
    "  const css = (c) => word(parseInt(c.slice(5, 7) + c.slice(3, 5) + c.slice(1, 3), 16));"
    "  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); const p = evprof.palette;"
    "  return Math.min(...[...evprof.functions.line.map((_, f) => evprof.ownWord(f)), p.foundWord, "
    "p.otherWord].map((w) => ratio(css(p.text), word(w))),"
    "    ratio(css(p.faint), css(p.back)), ratio(css(p.faint), css(p.raised)), ratio(css(p.accent), css(p.back))); "
    "})()";

static void key(const struct page *page, const char *name, int code)
{
	browser_command(page->browser, "Input.dispatchKeyEvent",
			"{\"type\":\"keyDown\",\"key\":\"%s\",\"text\":\"%s\",\"windowsVirtualKeyCode\":%d}", name,
			strlen(name) == 1 ? name : "", code);
	browser_ask(page->browser, "new Promise((resolve) => setTimeout(resolve, 120))");
	browser_command(page->browser, "Input.dispatchKeyEvent",
			"{\"type\":\"keyUp\",\"key\":\"%s\",\"windowsVirtualKeyCode\":%d}", name, code);
}

static void mouse(const struct page *page, const char *type, double x, double y, const char *more)
{
	browser_command(page->browser, "Input.dispatchMouseEvent", "{\"type\":\"%s\",\"x\":%.1f,\"y\":%.1f%s}", type, x,
			y, more);
}

static double span_of(const struct page *page)
{
	return browser_number(page->browser, "evprof.view.to - evprof.view.from");
}

/* Scrolls until the first rows of the first thread are out of sight. */
static const char *const name_stays =
    "(async () => { const tracks = document.getElementById('tracks');"
    "  tracks.style.maxHeight = '80px'; window.dispatchEvent(new Event('resize'));"
    "  const name = () => document.querySelector('#names button');"
    "  const until = async (holds) => { for (let i = 0; i < 100 && !holds(); i++)"
    "    await new Promise((resolve) => setTimeout(resolve, 100)); return holds(); };"
    "  await until(() => tracks.clientHeight <= 80 && name());"
    "  const text = name().textContent, place = () => name().getBoundingClientRect().top - "
    "tracks.getBoundingClientRect().top;"
    "  const to = tracks.scrollTop + place() + 60;"
    "  tracks.scrollTop = to;"
    "  return until(() => tracks.scrollTop === to && name().textContent === text && Math.abs(place()) < 2); })()";

/* Wheel, drag and keys do what the help says. */
SCENARIO(html, hands, SCENARIO_ONCE)
{
	const struct python *any = python_any();
	struct outcome *outcome = run(.python = any, .args = {"@known.py"});
	struct page page = page_open(outcome);
	double left = browser_number(page.browser, "document.getElementById('calls').getBoundingClientRect().left");
	double top = browser_number(page.browser, "document.getElementById('calls').getBoundingClientRect().top");
	double before = span_of(&page), from;

	(void)python;
	mouse(&page, "mouseWheel", left + 300, top + 60, ",\"deltaX\":0,\"deltaY\":-240");
	browser_ask(page.browser, "new Promise((resolve) => setTimeout(resolve, 200))");
	cr_assert(span_of(&page) < before * 0.9, "the wheel zooms in");
	from = browser_number(page.browser, "evprof.view.from");
	mouse(&page, "mousePressed", left + 300, top + 60, ",\"button\":\"left\",\"buttons\":1,\"clickCount\":1");
	mouse(&page, "mouseMoved", left + 200, top + 60, ",\"button\":\"left\",\"buttons\":1");
	mouse(&page, "mouseReleased", left + 200, top + 60, ",\"button\":\"left\",\"clickCount\":1");
	cr_assert(browser_number(page.browser, "evprof.view.from") > from, "a drag to the left shows what is later");
	browser_ask(page.browser, "document.getElementById('calls').focus(), evprof.wholeView(), 1");
	before = span_of(&page);
	key(&page, "w", 87);
	cr_assert(span_of(&page) < before, "W zooms in");
	from = browser_number(page.browser, "evprof.view.from");
	key(&page, "d", 68);
	cr_assert(browser_number(page.browser, "evprof.view.from") > from, "D moves right");
	key(&page, "0", 48);
	cr_assert(span_of(&page) >= browser_number(page.browser, "evprof.meta.to - evprof.meta.from"),
		  "0 is everything");
	browser_ask(page.browser, "for (let i = 0; i < 400; i++) evprof.zoomAt(0.8, 300); 1");
	cr_assert(span_of(&page) <= 1000, "the view goes down to a microsecond");
	key(&page, "0", 48);
	cr_assert(json_is_true(browser_ask(page.browser, "%s", name_stays)),
		  "a thread's name stays while its rows are scrolled");
	page_close(&page);
}

static bool has_stretch(const struct page *page)
{
	return json_is_true(browser_ask(page->browser, "evprof.selection.stretch !== null"));
}

/* Only the primary button, or a finger, selects a stretch of time and moves the view, and only while it is down. */
SCENARIO(html, hands_on_the_ruler, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@known.py"});
	struct page page = page_open(outcome);
	double left = browser_number(page.browser, "document.getElementById('ruler').getBoundingClientRect().left");
	double top = browser_number(page.browser, "document.getElementById('ruler').getBoundingClientRect().top") + 8;
	double overview =
	    browser_number(page.browser, "document.getElementById('overview').getBoundingClientRect().top + 8");
	double from;

	(void)python;
	mouse(&page, "mousePressed", left + 100, top, ",\"button\":\"left\",\"buttons\":1,\"clickCount\":1");
	mouse(&page, "mouseMoved", left + 300, top, ",\"button\":\"left\",\"buttons\":1");
	mouse(&page, "mouseReleased", left + 300, top, ",\"button\":\"left\",\"clickCount\":1");
	cr_assert(has_stretch(&page), "a drag selects a stretch");
	mouse(&page, "mousePressed", left + 200, top, ",\"button\":\"right\",\"buttons\":2,\"clickCount\":1");
	mouse(&page, "mouseReleased", left + 200, top, ",\"button\":\"right\",\"clickCount\":1");
	cr_assert(has_stretch(&page), "the right button leaves it");
	browser_ask(page.browser, "evprof.setView(0, evprof.meta.to / 10), 1");
	from = browser_number(page.browser, "evprof.view.from");
	mouse(&page, "mousePressed", left + 400, overview, ",\"button\":\"right\",\"buttons\":2,\"clickCount\":1");
	mouse(&page, "mouseReleased", left + 400, overview, ",\"button\":\"right\",\"clickCount\":1");
	cr_assert(browser_number(page.browser, "evprof.view.from") == from, "and the view");
	mouse(&page, "mousePressed", left + 400, overview, ",\"button\":\"left\",\"buttons\":1,\"clickCount\":1");
	mouse(&page, "mouseReleased", left + 400, overview, ",\"button\":\"left\",\"clickCount\":1");
	cr_assert(browser_number(page.browser, "evprof.view.from") > from, "which a click moves");
	mouse(&page, "mousePressed", left + 200, top, ",\"button\":\"left\",\"buttons\":1,\"clickCount\":1");
	mouse(&page, "mouseReleased", left + 200, top, ",\"button\":\"left\",\"clickCount\":1");
	cr_assert(!has_stretch(&page), "a click on the ruler clears the stretch");
	cr_assert(json_is_true(browser_ask(
		      page.browser,
		      "(() => { const ruler = document.getElementById('ruler'); ruler.setPointerCapture = () => {};"
		      "  const at = (type, clientX, buttons) => ruler.dispatchEvent(new PointerEvent(type,"
		      "    {clientX, buttons, pointerId: 5, pointerType: 'touch'}));"
		      "  at('pointerdown', %f, 1); at('pointercancel', 0, 0); at('pointermove', %f, 0);"
		      "  return evprof.selection.stretch === null; })()",
		      left + 100, left + 300)),
		  "a touch that the browser takes away selects nothing");
	browser_command(page.browser, "Input.dispatchTouchEvent",
			"{\"type\":\"touchStart\",\"touchPoints\":[{\"x\":%f,\"y\":%f}]}", left + 100, top);
	for (int i = 1; i <= 10; i++)
		browser_command(page.browser, "Input.dispatchTouchEvent",
				"{\"type\":\"touchMove\",\"touchPoints\":[{\"x\":%f,\"y\":%f}]}", left + 100 + 20 * i,
				top + i);
	browser_command(page.browser, "Input.dispatchTouchEvent", "{\"type\":\"touchEnd\",\"touchPoints\":[]}");
	cr_assert(browser_number(page.browser, "(({stretch}) => stretch ? (stretch.to - stretch.from) / "
					       "(evprof.view.to - evprof.view.from) * evprof.view.width : 0)"
					       "(evprof.selection)") > 190,
		  "a finger selects a stretch as long as it moves");
	page_close(&page);
}

/* A call of inner_x() is within one of x(); right() lasts longer than left(). */
static const char *const adjacent = "import time\n"
				    "def spin(until):\n"
				    "    while time.perf_counter() < until: pass\n"
				    "def inner_left(): spin(time.perf_counter() + 0.01)\n"
				    "def left(): inner_left()\n"
				    "def inner_right(): spin(time.perf_counter() + 0.03)\n"
				    "def right(): inner_right()\n"
				    "def main():\n"
				    "    for _ in range(20): left(); right()\n"
				    "main()\n";

/* From each call of inner_x() up and down again: where the caller, in the details, too, is another one than x(). */
static const char *const wrong_callers =
    "(async () => { const name = (call) => evprof.functionName(call.fn), wrong = []; let compared = 0;"
    "  const press = (key) => document.getElementById('calls').dispatchEvent(new KeyboardEvent('keydown', {key, "
    "bubbles: true}));"
    "  const {from, to} = evprof.meta, depths = evprof.meta.threads[0].depth;"
    "  for (let at = from; at < to; at += (to - from) / 400)"
    "    for (let depth = 1; depth < depths; depth++) { const call = evprof.callAt(0, depth, at, at);"
    "      if (!call || call.how < 0 || !name(call).startsWith('inner_')) continue;"
    "      evprof.selection.call = call; press('ArrowUp'); const above = evprof.selection.call;"
    "      press('ArrowDown'); const below = evprof.selection.call;"
    "      const title = [...document.querySelectorAll('#details h3')].find((one) => one.textContent === 'Called "
    "from');"
    "      const first = title && title.nextElementSibling.querySelector('button').textContent;"
    "      if (name(call) !== `inner_${name(above)}` || name(below) !== name(call) || first !== name(above) ||"
    "        below.start < above.start || below.end > above.end)"
    "        wrong.push([name(call), name(above), name(below), first].join());"
    "      compared++; }"
    "  return compared > 50 ? wrong.slice(0, 3).join('; ') : `${compared} calls`; })()";

/* The calls of a sampled trace begin when the ones before end: the caller is the one around, the next inside within. */
SCENARIO(html, adjacent_samples, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", adjacent}, .env = {"EVPROF_EVENTS=sample"});
	struct page page = page_open(outcome);

	(void)python;
	expect_same_text(&page, "callers", wrong_callers);
	page_close(&page);
}

/* A call is selected by key, functions are found, and the colours are those of the system. */
SCENARIO(html, eyes, SCENARIO_ONCE)
{
	const struct python *any = python_any();
	struct outcome *outcome = run(.python = any, .args = {"@known.py"});
	struct page page = page_open(outcome);

	(void)python;
	browser_ask(page.browser, "document.getElementById('calls').focus(), 1");
	key(&page, "ArrowRight", 39);
	cr_assert(json_is_true(browser_ask(page.browser, "evprof.selection.call !== null && "
							 "document.querySelector('#details h2') !== null")),
		  "an arrow key selects a call, and its details are there");
	browser_ask(page.browser, "document.getElementById('query').value = 'LEAF', evprof.search(), 1");
	cr_assert(json_is_true(browser_ask(page.browser,
					   "document.getElementById('found').textContent.startsWith('1 function,')")),
		  "the search finds leaf");
	browser_ask(page.browser, "document.getElementById('tab_table').click(), 1");
	cr_assert(browser_number(page.browser, "document.querySelectorAll('#rows tr').length") == 1,
		  "the table shows what was found");
	cr_assert(browser_number(page.browser, "%s", least_contrast) >= 4.5, "the light colours can be read");
	browser_command(page.browser, "Emulation.setEmulatedMedia",
			"{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"dark\"}]}");
	cr_assert(json_is_true(browser_ask(page.browser,
					   "new Promise((resolve) => {"
					   "  let looks = 0;"
					   "  const timer = setInterval(() => {"
					   "    const dark = evprof.dark.matches && evprof.palette.back === '#14171c';"
					   "    if (dark || ++looks === 100) { clearInterval(timer); resolve(dark); }"
					   "  }, 100);"
					   "})")),
		  "the colours follow the system");
	cr_assert(browser_number(page.browser, "%s", least_contrast) >= 4.5, "the dark colours can be read");
	page_close(&page);
}

/* The calls of the process that was killed are open, and a file that is cut short is said to be. */
SCENARIO(html, killed_and_cut, SCENARIO_ONCE)
{
	const struct python *any = python_any();
	struct outcome *outcome = run(.python = any, .args = {"@ends.py", "SIGKILL"}), *export;
	struct page page = page_open(outcome);
	char *path = text("%s/cut.evp", outcome->directory), *target = text("%s/cut.html", outcome->directory);
	size_t bytes;
	char *data;

	(void)python;
	expect_counts(&page, outcome);
	data = file_read(outcome->trace, &bytes);
	file_write(path, data, bytes - bytes / 8);
	free(data);
	export = tool("export", "--format", "html", path, "-o", target);
	expect(export, export->status == 1, "the export of a cut trace ends with 1");
	browser_load(page.browser, target);
	browser_number(page.browser, "evprof.ready");
	cr_assert(json_is_true(
		      browser_ask(page.browser, "document.getElementById('notes').textContent.includes('not whole')")),
		  "the page says that the trace is cut");
	page_close(&page);
}

/* The program says what the kernel counts while it sleeps, and the collector looks meanwhile. */
SCENARIO(html, resident_size, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .env = {"EVPROF_EVENTS=call,mem"},
		.args = {"-c", "import re, time\nkept = b'x' * 60000000\n"
			       "text = open('/proc/self/status').read()\n"
			       "print(re.search(r'VmRSS:\\s*(\\d+)', text).group(1), flush=True)\ntime.sleep(1.2)\n"});
	struct page page;
	double own = atof(outcome->out) * 1024, found;

	(void)python;
	page = page_open(outcome);
	found = browser_number(page.browser, "Math.max(...evprof.heaps[0].resident.bytes)");
	cr_assert(own > 60000000 && fabs(found - own) < 4 << 20, "%.0f bytes, by its own reading %.0f", found, own);
	cr_assert(browser_number(page.browser, "evprof.heaps[0].top") == found, "the scale is that of both curves");
	page_close(&page);
}

/* Name and tip of the curve, with the pointer in the middle of it. */
static const char heap_is_pointed_at[] =
    "(() => { const track = evprof.tracks.find((one) => one.kind === 'heap'), calls = document.getElementById('calls');"
    "  const box = calls.getBoundingClientRect();"
    "  calls.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, "
    "    clientY: box.top + track.y + 20}));"
    "  return document.querySelector('#names .heap').textContent.startsWith('Heappeak ') &&"
    "    / in live blocks$/.test(document.querySelector('#tip b').textContent); })()";

/* The heap, which is of more than Python's allocators: a block of 50 MB is made and freed. */
SCENARIO(html, heap, SCENARIO_ONCE)
{
	const struct python *any = python_any();
	struct outcome *outcome = run(.python = any, .args = {"-c", "x = bytearray(50000017); del x"});
	struct page page = page_open(outcome);
	double peak = browser_number(page.browser, "evprof.heaps[0].peak");

	(void)python;
	cr_assert(peak > 50000017 && peak < 80000000, "the peak is %.0f", peak);
	cr_assert(browser_number(page.browser, "evprof.heaps[0].last.at(-1)") < 30000000, "it is gone at the end");
	cr_assert(json_is_true(browser_ask(page.browser, "%s", heap_is_pointed_at)), "the page calls it what it is");
	page_close(&page);
}

/* ---- memory ---- */

/*
 * stacks(): what each stack of the page's flame graph has by itself, as folded stacks name it, without its thread.
 * folded(): the same of the text of evprof export --format folded. byFunction(): sums over the stacks that end with a
 * function, or have it anywhere, of those whose name no other function has.
 */
static const char *const memory_helpers =
    "globalThis.label = (f) => { const file = evprof.functionFile(f), line = evprof.functions.line[f];"
    "  const place = [`${file.replace(/^.*\\//, '')}${line ? ':' + line : ''}`, '', file][evprof.functions.native[f]];"
    "  return evprof.display(f) + (place && ` (${place})`); };"
    "globalThis.stacks = (tree) => { const names = [''], sums = new Map();"
    "  for (let n = 1; n < tree.size; n++) { const parent = tree.parent[n], own = tree.total[n] - tree.inner[n];"
    "    names[n] = parent ? `${names[parent]};${label(tree.fn[n])}` : `${evprof.meta.processes[tree.process[n]].pid}`;"
    "    if (own) sums.set(names[n], (sums.get(names[n]) || 0) + own); }"
    "  return sums; };"
    "globalThis.folded = (text) => { const sums = new Map();"
    "  for (const line of text.trim().split('\\n').filter(Boolean)) { const at = line.lastIndexOf(' ');"
    "    const [process, , ...path] = line.slice(0, at).split(';');"
    "    const plain = path.map((name) => name.replace(/ \\((?!<)[^()]*\\/([^\\/]+:\\d+\\))$/, ' ($1'));"
    "    const key = [process.match(/\\((\\d+)\\)$/)[1], ...plain].join(';');"
    "    sums.set(key, (sums.get(key) || 0) + Number(line.slice(at + 1))); }"
    "  return sums; };"
    "globalThis.byFunction = (sums) => { const own = {}, total = {};"
    "  for (const [key, value] of sums) { const path = key.split(';').slice(1);"
    "    if (path.length) own[path.at(-1)] = (own[path.at(-1)] || 0) + value;"
    "    for (const name of new Set(path)) total[name] = (total[name] || 0) + value; }"
    "  return {own, total}; };"
    "globalThis.memoryDiffers = async (key, text) => { await evprof.selectWeight(key);"
    "  const mine = stacks(evprof.shown.tree), theirs = folded(text), sums = byFunction(theirs), names = {};"
    "  if (!theirs.size || mine.size !== theirs.size) return `${mine.size} stacks, not ${theirs.size}`;"
    "  for (const [name, value] of theirs) if (mine.get(name) !== value) return `${name}: ${mine.get(name)}, not "
    "${value}`;"
    "  const list = [...Array(evprof.functions.count).keys()];"
    "  for (const f of list) names[label(f)] = (names[label(f)] || 0) + 1;"
    "  for (const f of list) { const name = label(f); if (names[name] === 1)"
    "    for (const kind of ['own', 'total']) if (evprof.shown[kind][f] !== (sums[kind][name] || 0))"
    "      return `${name}, ${kind}: ${evprof.shown[kind][f]}, not ${sums[kind][name]}`; }"
    "  return ''; };"
    "1";

static const char *const weights[] = {"bytes", "allocations", "live", "peak", "temporary"};

/* Each weight has the stacks that evprof export --format folded has. */
static void expect_memory(const struct page *page, const struct outcome *outcome)
{
	browser_ask(page->browser, "%s", memory_helpers);
	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		struct outcome *result =
		    tool("export", "-f", "folded", "--weight", weights[i], outcome->trace, "-o", "-");
		json_t *lines = json_stringn_nocheck(result->out, result->out_bytes);
		char *json = json_dumps(lines, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

		expect(result, result->status == 0, "folded stacks by %s", weights[i]);
		expect_same_text(page, weights[i], text("memoryDiffers('%s', %s)", weights[i], json));
		free(json);
		json_decref(lines);
	}
}

/* Of the page, as folded stacks with a thread that it does not name. */
static void keep_stacks(const struct page *page, const struct outcome *outcome, const char *weight)
{
	const json_t *lines = browser_ask(page->browser,
					  "evprof.selectWeight('%s').then(() => [...stacks(evprof.shown.tree)].map("
					  "([name, value]) => `python (${name.replace(/;|$/, ');-;')} ${value}`)"
					  ".join('\\n'))",
					  weight);

	file_write(text("%s/%s.txt", outcome->directory, weight), json_string_value(lines), json_string_length(lines));
}

/* Blocks of two threads, of which the first frees some of the other's, and of a forked child. */
SCENARIO_SOME(html, memory, SUPPORTED)
{
	struct outcome *oracle = run(.python = python, .how = JOB_BARE, .args = {"@held.py", "tracemalloc"}), *judged;
	struct outcome *outcome = run(.python = python, .args = {"@held.py"});
	struct page page = page_open(outcome);
	char *pid;

	expect(oracle, oracle->status == 0, "tracemalloc has run");
	expect_counts(&page, outcome);
	expect_memory(&page, outcome);
	file_write(text("%s/oracle.json", outcome->directory), oracle->out, oracle->out_bytes);
	keep_stacks(&page, outcome, "live");
	keep_stacks(&page, outcome, "peak");
	pid = text("%.0f", browser_number(page.browser, "evprof.meta.processes[0].pid"));
	page_close(&page);
	judged = run(.python = python_any(), .how = JOB_BARE, .args = {"@judge_live.py", outcome->directory, pid});
	expect(judged, judged->status == 0 && atoi(judged->out) == 10,
	       "five sums at the peak, four at the end, one of the child");
}

SCENARIO(html, memory_of_native_functions, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"@held.py"}, .env = {"EVPROF_NATIVE=1"}, .timeout_s = 120);
	struct page page = page_open(outcome);

	(void)python;
	expect_counts(&page, outcome);
	expect_memory(&page, outcome);
	cr_assert(browser_number(page.browser, "evprof.functions.native.filter((kind) => kind === 2).length") > 10,
		  "native functions are there");
	cr_assert(browser_number(page.browser, "%s", least_contrast) >= 4.5, "their names can be read");
	page_close(&page);
}

static void expect_true(const struct page *page, const char *what, const char *expression)
{
	const json_t *value = browser_ask(page->browser, "(async () => %s)()", expression);

	cr_assert(json_is_true(value), "%s", what); /* json_is_true() evaluates its argument twice */
}

/* Chooses as a hand does, and waits until the page shows it. */
static const char *const set_weight =
    "globalThis.setWeight = async (key) => { const select = document.getElementById('weight'); select.value = key;"
    "  select.dispatchEvent(new Event('change'));"
    "  for (let i = 0; i < 200 && evprof.weight.key !== key; i++)"
    "    await new Promise((resolve) => setTimeout(resolve, 10));"
    "  return evprof.weight.key === key; };"
    "globalThis.textOf = (id) => document.getElementById(id).textContent;"
    "globalThis.cell = (name, column) => { const more = document.getElementById('more');"
    "  while (!more.hidden) more.click();"
    "  const row = [...document.querySelectorAll('#rows tr')].find((one) =>"
    "    evprof.functionName(Number(one.dataset.f)) === name); return row && row.children[column - 1]; };"
    "1";

static const char *const leaks = "kept = []\n"
				 "def keep():\n"
				 "    for _ in range(400): kept.append(bytes(1000))\n"
				 "def drop():\n"
				 "    spike = [bytes(3000) for _ in range(300)]\n"
				 "def both():\n"
				 "    keep(); drop()\n"
				 "both()\n";

/* The weight set in the page: table, search, zoom and details follow it, in units that can be read. */
SCENARIO(html, weights, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", leaks});
	struct page page = page_open(outcome);

	(void)python;
	browser_ask(page.browser, "%s", set_weight);
	expect_true(&page, "there are six weights",
		    "!document.getElementById('weight_choice').hidden && document.querySelectorAll('#weight "
		    "option').length === 6");
	expect_true(&page, "live bytes are the weight",
		    "await setWeight('live') && (document.getElementById('tab_table').click(), true)");
	expect_true(&page, "keep() holds what it keeps", "/^40\\d KiB$/.test(cell('keep', 2).textContent)");
	expect_true(&page, "a click shows all of it",
		    "(cell('keep', 1).click(), /live at the end40\\d KiB by itself/.test(textOf('details')))");
	/* As if calls had been left out for EVPROF_BUDGET. */
	expect_true(
	    &page, "its times are estimates, its bytes are not",
	    "(evprof.functions.estimate[evprof.selection.fn] = 5, await setWeight('time'), await setWeight('live'), "
	    "cell('keep', 1).click(), /calls~1an estimate.*by itself~/.test(textOf('details')) && "
	    "/^40\\d KiB$/.test(cell('keep', 2).textContent))");
	expect_true(&page, "drop() holds nothing", "!cell('drop', 4) || Number(cell('drop', 4).textContent) < 50");
	expect_true(&page, "a search shows its share",
		    "(document.getElementById('query').value = 'both', evprof.search(), /^1 function, [\\d.]+ % of the "
		    "bytes$/.test(textOf('found')))");
	expect_true(&page, "it does at the peak",
		    "await setWeight('peak') && (document.getElementById('query').value = '', evprof.search(), "
		    "/^(8|9)\\d\\d KiB$/.test(cell('drop', 5).textContent))");
	expect_true(&page, "the peak is that of the curve",
		    "evprof.shown.tree.total[0] === evprof.heaps[0].peak && textOf('scope').startsWith('at the peak')");
	expect_true(&page, "and stands where the curve has it",
		    "(({time, high, width, peak, peakTime}) => { const at = time.findLastIndex((t) => t <= peakTime);"
		    "  return high[at] === peak && peakTime < time[at] + width; })(evprof.heaps[0])");
	expect_true(&page, "the program ends before the interpreter does",
		    "evprof.heaps[0].peakTime < evprof.heaps[0].end && evprof.heaps[0].end < evprof.meta.to");
	browser_ask(page.browser,
		    "document.getElementById('tab_flame').click(), document.getElementById('flame').focus(), 1");
	for (int i = 0; i < 3; i++)
		key(&page, "ArrowDown", 40);
	key(&page, "Enter", 13);
	expect_true(&page, "Enter zooms",
		    "(globalThis.zoomed = textOf('crumbs').split(' · ')[0]).split('›').length === 4");
	expect_true(&page, "other memory keeps the zoom",
		    "await setWeight('bytes') && textOf('crumbs').split(' · ')[0] === zoomed");
	expect_true(&page, "and so does time",
		    "await setWeight('time') && textOf('crumbs').split(' · ')[0] === zoomed && "
		    "/[mµ]?s, /.test(textOf('crumbs'))");
	page_close(&page);
}

/* A stretch of time counts time anew; memory is that of the whole run, and the page says so. */
SCENARIO(html, weights_and_stretches, SCENARIO_ONCE)
{
	/* It runs in the middle of its time, however long it takes to begin and to end. */
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", text("import time\n%stime.sleep(0.5)\n", leaks)});
	struct page page = page_open(outcome);

	(void)python;
	browser_ask(page.browser, "%s", set_weight);
	expect_true(&page, "a stretch of time is set",
		    "(globalThis.all = evprof.shown.tree.total[0], "
		    "evprof.setView(0, evprof.meta.to / 2), document.getElementById('scope_view').click(), "
		    "await (async () => { for (let i = 0; i < 300 && !/ from /.test(textOf('scope')); i++)"
		    "  await new Promise((resolve) => setTimeout(resolve, 200)); })(), "
		    "globalThis.half = evprof.shown.tree.total[0], half > 0 && half < all)");
	expect_true(&page, "memory is that of all",
		    "await setWeight('bytes') && textOf('scope').includes('not counted by stretch') && "
		    "evprof.shown.tree.total[0] > 400 * 1000 + 300 * 3000");
	expect_true(&page, "time is that of the stretch",
		    "await setWeight('time') && evprof.shown.tree.total[0] === half");
	browser_ask(page.browser, "document.getElementById('calls').focus(), 1");
	key(&page, "m", 77);
	expect_true(&page, "M goes to the next weight", "evprof.weight.key === 'bytes'");
	page_close(&page);
}

/* What evprof memory --at has at a moment of the page, by line, and nothing else; small ones are summed up. */
static const char *const lines_differ =
    "globalThis.linesDiffer = async (time, csv) => { const heap = evprof.heaps[0], theirs = new Map();"
    "  document.getElementById('hide_imports').checked = false; evprof.showMoment(heap, time);"
    "  const {rows} = await evprof.pickSites(heap); let sum = 0, compared = 0, all = 0;"
    "  for (const line of csv.trim().split('\\n').slice(1)) {"
    "    const [, , , file, number, , end] = line.match(/^(\\d+),\"(.*)\",\"(.*)\",(\\d*),(\\d+),(\\d+),/);"
    "    theirs.set(`${file}:${number}`, (theirs.get(`${file}:${number}`) || 0) + Number(end)); all += Number(end); }"
    "  const mine = new Map();"
    "  for (const {f, now} of rows) { sum += now; if (f < 0 || evprof.functions.native[f]) continue;"
    "    const key = `${evprof.functionFile(f)}:${evprof.functions.line[f]}`; mine.set(key, (mine.get(key) || 0) + "
    "now); }"
    "  if (sum !== all) return `${sum} bytes, not ${all}`;"
    "  for (const [key, now] of mine) { if (!theirs.has(key)) continue; compared++;"
    "    if (now > theirs.get(key)) return `${key}: ${now}, not ${theirs.get(key)}`; }"
    "  const [a, b] = [mine, theirs].map((lines) => lines.get('<string>:4') || 0);" /* imports have one, too */
    "  return compared > 2 && Math.abs(a - b) < 200 ? '' : `${compared} lines; ${a}, not ${b}`; };"
    "globalThis.setHidden = (on) => { const box = document.getElementById('hide_imports'); box.checked = on;"
    "  box.dispatchEvent(new Event('change')); };"
    "globalThis.until = async (what) => { for (let i = 0; i < 300 && !what(); i++)"
    "    await new Promise((resolve) => setTimeout(resolve, 10)); return what(); };"
    "1";

/* Its lines that are alive. */
static struct page page_with_lines(const struct outcome *outcome)
{
	struct page page = page_open(outcome);

	browser_ask(page.browser, "%s", set_weight);
	browser_ask(page.browser, "%s", lines_differ);
	browser_ask(page.browser, "document.getElementById('tab_sites').click(), 1");
	return page;
}

/* Clicks into the middle of the curve: whether the moment is that of the middle of the view. */
static const char click_picks[] =
    "(() => { const track = evprof.tracks.find((one) => one.kind === 'heap'), box = "
    "document.getElementById('calls').getBoundingClientRect();"
    "  const at = {clientX: box.left + box.width / 2, clientY: box.top + track.y + 20, button: 0, bubbles: "
    "true, "
    "pointerId: 1, isPrimary: true};"
    "  document.getElementById('calls').setPointerCapture = () => {};"
    "  for (const type of ['pointerdown', 'pointerup']) document.getElementById('calls').dispatchEvent(new "
    "PointerEvent(type, at));"
    "  const middle = (evprof.view.from + evprof.view.to) / 2;"
    "  return Math.abs(evprof.sites.time - middle) < (evprof.view.to - evprof.view.from) / 50; })()";

/* The lines whose blocks are alive where the curve is clicked, the growth of a stretch, and without imports. */
SCENARIO(html, lines_alive_at_a_moment, SCENARIO_ONCE)
{
	static const char *const program =
	    "import time, json\n"
	    "kept = []\n"
	    "def keep():\n"
	    "    for _ in range(400): kept.append(bytes(1000))\n"
	    "time.sleep(0.2); keep(); time.sleep(0.2); keep(); time.sleep(0.2); kept.clear()\n"
	    "time.sleep(0.2)\n";
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", program}, .env = {"EVPROF_EVENTS=call,c_call,mem,line"});
	struct page page = page_with_lines(outcome);

	(void)python;
	expect_true(&page, "it begins with the peak",
		    "until(() => textOf('sites_text').includes('alive at') && "
		    "document.querySelector('#sites_rows').textContent.includes('keep'))");
	for (int i = 2; i <= 8; i += 2) {
		double ns = browser_number(page.browser,
					   "evprof.sites.heap.list.times[Math.floor(%d / 10 * "
					   "(evprof.sites.heap.list.times.length - 3))]",
					   i);
		struct outcome *result =
		    tool("memory", "--format", "csv", "--by", "line", "--at", text("%.0fns", ns), outcome->trace);
		json_t *lines = json_stringn_nocheck(result->out, result->out_bytes);
		char *json = json_dumps(lines, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

		expect(result, result->status == 0, "evprof memory --at");
		expect_same_text(&page, text("%.0f ns", ns), text("linesDiffer(%.0f, %s)", ns, json));
		free(json);
		json_decref(lines);
	}
	expect_true(&page, "without imports there are none of theirs",
		    "(setHidden(true), await until(() => evprof.sites.rows.length && "
		    "evprof.sites.rows.every((row) => row.kind === 0)))");
	expect_true(&page, "a click on the curve picks the moment", click_picks);
	expect_same_text(
	    &page, "a stretch has what grew in it",
	    "(setHidden(true), evprof.setView(0, evprof.heaps[0].peakTime), "
	    "document.getElementById('scope_view').click(), "
	    "await until(() => /^.(7|8)\\d\\d KiB.*keep/.test(document.querySelector('#sites_rows tr').textContent))) "
	    "? '' : document.querySelector('#sites_rows tr').textContent + textOf('sites_text')");
	page_close(&page);
}

/* A trace that keeps what is alive has no peak, and a killed process no end: the lines are those of the last moment. */
SCENARIO(html, lines_alive_in_a_killed_process, SCENARIO_ONCE)
{
	static const char *const program = "import os, signal, time\n"
					   "kept = []\n"
					   "def keep():\n"
					   "    for _ in range(400): kept.append(bytes(10000))\n"
					   "time.sleep(0.2); keep(); time.sleep(0.2)\n"
					   "os.kill(os.getpid(), signal.SIGKILL)\n";
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", program}, .env = {"EVPROF_EVENTS=mem", "EVPROF_KEEP=alive"});
	struct page page = page_with_lines(outcome);

	(void)python;
	expect_true(&page, "it begins with the last moment",
		    "until(() => /^3\\.8 MiB.*keep/.test(textOf('sites_rows')))");
	page_close(&page);
}

/* Where the page has not what tracemalloc has of the lines of by_line.py at a moment. It may lack lines with little. */
static const char *const lines_of =
    "globalThis.wrongLines = async (time, lines) => { const heap = evprof.heaps[0], mine = {}; let wrong = '';"
    "  document.getElementById('hide_imports').checked = false; evprof.showMoment(heap, time);"
    "  for (const {f, now} of (await evprof.pickSites(heap)).rows) {"
    "    if (f < 0 || !evprof.functionFile(f).endsWith('by_line.py')) continue;"
    "    const line = evprof.functions.line[f]; mine[line] = (mine[line] || 0) + now; }"
    "  for (const line of Object.keys(lines))"
    "    if ((mine[line] ?? (lines[line] < 1000 ? lines[line] : 0)) !== lines[line]) wrong += `${line}: ${mine[line]}, "
    "not ${lines[line]}; `;"
    "  return wrong; }; 1";

SCENARIO(html, lines_as_tracemalloc_has_them, SCENARIO_ONCE)
{
	static const char *const moments[][2] = {{"peak_bytes", "evprof.heaps[0].peakTime"},
						 {"end_bytes", "Math.max(...evprof.heaps[0].list.times)"}};
	struct outcome *oracle = run(.python = python_any(), .how = JOB_BARE, .args = {"@by_line.py", "tracemalloc"});
	struct outcome *outcome = run(.python = python_any(), .how = JOB_RUN, .args = {"@by_line.py"},
				      .options = {"--events", "call,c_call,mem", "--memory-lines"});
	struct page page = page_open(outcome);
	json_t *root = json_loads(oracle->out, 0, NULL);

	(void)python;
	browser_ask(page.browser, "%s", lines_differ);
	browser_ask(page.browser, "%s", lines_of);
	browser_ask(page.browser, "document.getElementById('tab_sites').click(), 1");
	expect_true(&page, "it begins with the peak", "until(() => !!evprof.sites.heap)");
	for (size_t i = 0; i < 2; i++) {
		const json_t *lines = json_object_get(json_object_get(root, "looks"), moments[i][0]);
		char *json = json_dumps(lines, 0);

		cr_assert_eq(json_object_size(lines), 7);
		expect_same_text(&page, moments[i][0], text("wrongLines(%s, %s)", moments[i][1], json));
		free(json);
	}
	json_decref(root);
	page_close(&page);
}

/* The page says that blocks may look alive that are not. */
SCENARIO(html, memory_after_losses, SCENARIO_ONCE)
{
	struct outcome *outcome = strike_run_with_losses(python_any(), NULL);
	struct page page = page_open(outcome);

	(void)python;
	expect_true(&page, "the note is there",
		    "document.getElementById('notes').textContent.includes('freed by one of them counts as alive')");
	expect_memory(&page, outcome);
	page_close(&page);
}

/* Where no calls were recorded, memory is what there is to show. */
SCENARIO(html, memory_without_calls, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", leaks}, .env = {"EVPROF_EVENTS=mem"});
	struct page page = page_open(outcome);

	(void)python;
	expect_true(&page, "the page begins with it",
		    "evprof.weight.key === 'bytes' && evprof.shown.tree.total[0] > 400 * 1000 + 300 * 3000");
	expect_memory(&page, outcome);
	page_close(&page);
}

/* A trace without memory events has a page without any of it. */
SCENARIO(html, weights_without_memory, SCENARIO_ONCE)
{
	struct outcome *outcome =
	    run(.python = python_any(), .args = {"-c", leaks}, .env = {"EVPROF_EVENTS=call,c_call"});
	struct page page = page_open(outcome);

	(void)python;
	expect_true(
	    &page, "there is no other weight",
	    "document.getElementById('weight_choice').hidden && evprof.meta.memory === 0 && !evprof.heaps.length");
	browser_ask(page.browser, "document.getElementById('calls').focus(), 1");
	key(&page, "m", 77);
	expect_true(&page, "and no key for it", "evprof.weight.key === 'time'");
	page_close(&page);
}

/*
 * Frames of a page that is left alone, and then of one that pans and zooms: what other work on the machine takes from a
 * frame is seen in the first. The longest task of the page, and its frames, in ms.
 */
static const char *const move_around =
    "(async () => { const long = []; const all = [];"
    "  new PerformanceObserver((list) => list.getEntries().forEach((entry) => long.push(entry.duration)))"
    "    .observe({entryTypes: ['longtask']});"
    "  const act = async (step, times) => { const frames = []; for (let i = 0; i < times; i++) {"
    "    const began = performance.now(); step();"
    "    await new Promise(requestAnimationFrame); frames.push(performance.now() - began); }"
    "    all.push(...frames); return Math.max(...frames); };"
    "  const idle = await act(() => 0, 60); all.length = long.length = 0;"
    "  const pan = () => { const by = (evprof.view.to - evprof.view.from) * 0.08;"
    "    evprof.setView(evprof.view.from + by, evprof.view.to + by); };"
    "  for (const at of [0.15, 0.5, 0.85]) { evprof.wholeView();"
    "    await act(() => evprof.zoomAt(0.8, evprof.view.width * at), 60);"
    "    await act(pan, 20); await act(() => evprof.zoomAt(1.2, evprof.view.width * 0.4), 30); await act(pan, 20); }"
    "  await new Promise((resolve) => setTimeout(resolve, 300)); all.sort((a, b) => a - b);"
    "  return {frames: all.length, median: all[all.length >> 1], worst: all.at(-1), idle: idle,"
    "    long: Math.max(0, ...long)}; })()";

static double member(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

#define READY_MOST_MS 3000
#define TASK_REPORTED_MS 50
#define FRAME_MS (1000. / 60)
#define LOADS 3 /* tries, until one is not disturbed by other work on the machine */
#define MOVES 4

static void expect_quick(struct page *page)
{
	double quickest = page->ready_ms;

	for (int i = 1; i < LOADS && quickest >= READY_MOST_MS; i++) {
		browser_load(page->browser, page->path);
		page->ready_ms = browser_number(page->browser, "evprof.ready");
		quickest = page->ready_ms < quickest ? page->ready_ms : quickest;
	}
	browser_ask(page->browser, "%s", helpers);
	cr_assert(quickest < READY_MOST_MS, "the page opens in %.0f ms", quickest);
}

/* The longest task while the page moves, without what other work takes of a frame in which the page does nothing. */
static double longest_task(struct page *page)
{
	const json_t *moved = browser_ask(page->browser, "%s", move_around);
	double late = member(moved, "idle") - 2 * FRAME_MS, longest = member(moved, "long");

	cr_log_info(
	    "html: %.0f frames, median %.1f ms, worst %.1f ms, worst of an idle page %.1f ms; longest task %.0f "
	    "ms",
	    member(moved, "frames"), member(moved, "median"), member(moved, "worst"), member(moved, "idle"), longest);
	return late > 0 && longest > late ? longest - late : longest;
}

/* The browser reports no tasks below 50 ms. A page of a tenth of the events says how fast this machine is. */
static void expect_smooth(struct page *page, struct page *small)
{
	double longest = 0, most = 0;

	for (int i = 0; i < MOVES && longest >= most; i++) {
		double least = longest_task(small);

		most = 2 * (least > TASK_REPORTED_MS ? least : TASK_REPORTED_MS);
		longest = longest_task(page);
	}
	cr_assert(longest < most, "a task of %.0f ms", longest);
}

static const char *const functions_of_files =
    "new, code = type(lambda: 0), (lambda: 0).__code__\n"
    "for i in range(20000):\n"
    "    new(code.replace(co_name=f'name_{i}', co_filename=f'{i // 20}.py'), {})()\n";

/* Only shown functions are decoded: of very many, nearly all keep their bytes and have no colour yet. */
SCENARIO(html, very_many_functions, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"-c", functions_of_files});
	struct page page = page_open(outcome);

	(void)python;
	cr_log_info("html: %.0f functions, %.0f coloured", browser_number(page.browser, "evprof.functions.count"),
		    browser_number(page.browser, "evprof.work.coloured"));
	cr_assert(browser_number(page.browser, "evprof.functions.count") >= 20000);
	cr_expect(browser_number(page.browser, "evprof.work.coloured / evprof.functions.count") < 0.5);
	cr_expect(browser_number(page.browser, "evprof.work.decoded / evprof.work.texts") < 0.5);
	expect_counts(&page, outcome);
	page_close(&page);
}

/* Short threads share blocks: counting a stretch unpacks each of them once, and not for each thread. */
SCENARIO(html, very_many_threads, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@many_threads.py", "1000"});
	struct page page = page_open(outcome);
	double unpacked, blocks = browser_number(page.browser, "evprof.meta.directory");

	(void)python;
	expect_counts(&page, outcome);
	unpacked = browser_number(page.browser, "(async () => { const before = evprof.work.unpacked;"
						" await evprof.aggregate(-1, Infinity);"
						" return evprof.work.unpacked - before; })()");
	cr_log_info("html: %.0f of %.0f blocks unpacked", unpacked, blocks);
	cr_expect(unpacked <= blocks, "%.0f of %.0f blocks", unpacked, blocks);
	page_close(&page);
}

static struct outcome *run_load(const char *steps)
{
	return run(.python = python_any(), .timeout_s = 300, .env = {"EVPROF_EVENTS=call,c_call"},
		   .args = {"@html_load.py", steps});
}

/* Ten million events: opens within three seconds, and moves as smoothly as one million. */
SCENARIO(html, ten_million, SCENARIO_ONCE)
{
	struct outcome *outcome = run_load("37000"), *few = run_load("3700");
	struct page page = page_open(outcome), small = page_open(few);
	struct stat file;

	(void)python;
	cr_assert(browser_number(page.browser, "evprof.meta.events") > 1e7);
	cr_assert(stat(page.path, &file) == 0);
	cr_log_info("html: %.0f events, %.1f MB, opened in %.0f ms", browser_number(page.browser, "evprof.meta.events"),
		    (double)file.st_size / 1e6, page.ready_ms);
	expect_quick(&page);
	expect_smooth(&page, &small);
	expect_counts(&page, outcome);
	page_close(&small);
	page_close(&page);
}
