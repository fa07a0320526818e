/*
 * test_serve.c - evprof serve: what its page shows in a browser is what the program has counted; a snapshot has it,
 * too; other sites, other hosts, garbage and silence get nothing, and keep nobody waiting.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "browser.h"
#include "harness.h"
#include "process.h"

/* serve_busy.py, and a server for it. */
struct scene {
	const char *directory;
	char *counted_path;
	int ready_fd, gate_fd;
	struct background *program, *server;
	char url[256];
};

static void open_gate(const struct scene *scene)
{
	cr_assert(write(scene->gate_fd, ".", 1) == 1);
}

static void start_server(struct scene *scene)
{
	scene->server = background_start(&(struct job){.how = JOB_BARE,
						       .args = {"%B/evprof", "serve", "--interval", "0.25"},
						       .env = {text("TMPDIR=%s", scene->directory)}});
	for (int i = 0; i < 1000 && !scene->url[0]; i++) {
		char *log = file_read(scene->server->log, NULL);

		if (log && strstr(log, "libmicrohttpd is not here"))
			cr_skip_test("libmicrohttpd is not installed");
		if (log && strstr(log, "/\n"))
			sscanf(strstr(log, "http://"), "%255s", scene->url);
		free(log);
		usleep(10000);
	}
	cr_assert(scene->url[0], "no address: %s", file_read(scene->server->log, NULL));
}

static struct scene begin(const struct python *python)
{
	struct scene scene = {.directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory};
	char *ready = text("%s/ready", scene.directory), *gate = text("%s/gate", scene.directory);

	scene.counted_path = text("%s/counted", scene.directory);
	scene.ready_fd = fifo_make(ready);
	scene.gate_fd = fifo_make(gate);
	scene.program = background_start(&(struct job){.python = python,
						       .args = {"@serve_busy.py", ready, gate, scene.counted_path},
						       .directory = scene.directory});
	fifo_await(scene.ready_fd);
	start_server(&scene);
	return scene;
}

static size_t left_folders(const char *directory)
{
	struct outcome *found =
	    run(.how = JOB_BARE, .args = {"find", directory, "-name", "evprof-serve-*"}, .lingers = true);

	return found->out_bytes;
}

static void end(const struct scene *scene)
{
	open_gate(scene);
	cr_expect_eq(background_wait(scene->program), 0, "%s", file_read(scene->program->log, NULL));
	cr_expect_eq(background_stop(scene->server), 0, "SIGTERM ends it: %s", file_read(scene->server->log, NULL));
	cr_expect_eq(left_folders(scene->directory), 0, "its folder is gone");
}

/* Waits until a condition of the page is true. */
static void await(struct browser *browser, const char *what, const char *expression)
{
	for (int i = 0; i < 600; i++) {
		if (json_is_true(browser_ask(browser, "Boolean(%s)", expression)))
			return;
		usleep(50000);
	}
	cr_assert(0, "%s: %s; the page has %s", what, expression,
		  json_dumps(browser_ask(browser, "document.body.innerText"), JSON_ENCODE_ANY));
}

static double counted(const struct scene *scene, const char *name)
{
	json_t *counts = json_load_file(scene->counted_path, 0, NULL);
	const json_t *number = json_object_get(counts, name);

	cr_assert(json_is_integer(number), "the program has counted %s", name);
	return (double)json_integer_value(number);
}

/*
 * The number of calls that the details of a function name, once they are not fewer than a number: the last events of a
 * program that waits may still be on their way.
 */
static double calls_shown(struct browser *browser, const char *function, double least)
{
	static const char shown[] = "Number(/([\\d,]+) in all/.exec([...document.querySelectorAll('#details dd')][2]"
				    ".textContent)[1].replace(/,/g, ''))";

	browser_ask(browser, "globalThis.before = evprof.live.number, lookAt(ids.%s), 1", function);
	await(browser, "the details are those of the function",
	      text("evprof.live.number > before + 1 && document.querySelector('#details h2').textContent === '%s' &&"
		   "%s >= %.0f",
		   function, shown, least));
	return browser_number(browser, shown);
}

/* More tasks than a page shows. */
static const char *const many_tasks =
    "(() => { const {tab} = view; view.tab = 'tasks';"
    "  const text = summary({...evprof.live, processes: [{pid: 1, threads: 1, tasks: 300}], tasks: Array(200)});"
    "  view.tab = tab; return text === '300 tasks took steps, 200 are shown; 1 process, 1 thread, 300 tasks'; })()";

/* The number of callers that are not shown is that of now, though the innermost frames stay. */
static const char *const deep_stack =
    "(() => { const box = makeThread(), stack = [{id: 1, function: 'f', file: 'a.py', line: 1, at: 2}];"
    "  const fill = (depth) => { fillThread(box, {pid: 1, tid: 1, own_ns: 0, calls: 0, stack, depth});"
    "    return box.list.lastChild.textContent; };"
    "  return fill(65) === '\\u2026 and 64 callers' && fill(70) === '\\u2026 and 69 callers'; })()";

/* Screen readers announce a state once, and not each refresh. */
static const char *const announced =
    "(() => { setState('bad', 'no answer'); setState('good', 'live, 1'); setState('good', 'live, 2');"
    "  const said = [...document.querySelectorAll('[role=status]')].map((one) => one.textContent);"
    "  return said.length === 1 && said[0] === 'live, 1'; })()";

static void check_while_it_runs(struct browser *browser)
{
	await(browser, "rows",
	      "['leaf', 'fib', 'outer'].every((name) => evprof.live.functions.some((row) => row.function === name))");
	browser_ask(
	    browser,
	    "globalThis.ids = Object.fromEntries(evprof.live.functions.map((row) => [row.function, row.id])); 1");
	browser_ask(browser,
		    "[...document.querySelectorAll('#functions tbody tr')].find((row) => row.cells[2].textContent"
		    " === 'outer').click(); 1");
	await(
	    browser, "callers and callees",
	    "[...document.querySelectorAll('#details ol')].length === 2 &&"
	    "document.querySelectorAll('#details ol')[0].textContent.includes('<module>') &&"
	    "['leaf', 'fib'].every((name) => document.querySelectorAll('#details ol')[1].textContent.includes(name))");
	browser_ask(browser, "sortBy('calls'); 1");
	await(browser, "leaf() is called most",
	      "document.querySelector('#functions tbody tr').cells[2].textContent === 'leaf'");
	browser_ask(browser, "setFilter('OUTER'); 1");
	await(browser, "the filter leaves outer()",
	      "[...document.querySelectorAll('#functions tbody tr')].map((row) => row.cells[2].textContent).join() === "
	      "'outer'");
	browser_ask(browser, "setFilter(''), showTab('threads'); 1");
	await(browser, "both threads",
	      "[...document.querySelectorAll('#threads h3')].some((head) => head.textContent.startsWith('sleeper')) &&"
	      "document.querySelectorAll('#threads h3').length === 2");
	await(browser, "the page says that it does not show all tasks", many_tasks);
	await(browser, "the depth of a stack is that of now", deep_stack);
	await(browser, "a state is announced once", announced);
}

/* What the program has counted is what the page has, exactly; and where it waits. */
static void check_after(struct browser *browser, const struct scene *scene)
{
	static const char *const names[] = {"leaf", "fib", "outer"};
	double all = 0;

	for (size_t i = 0; i < 3; i++) {
		double wanted = counted(scene, names[i]), shown = calls_shown(browser, names[i], wanted);

		cr_expect_eq(shown, wanted, "calls of %s: %.0f", names[i], shown);
		all += shown;
	}
	cr_expect_geq(browser_number(browser, "recent.samples.reduce((sum, sample) => sum + sample[CALLS], 0)"), all,
		      "the charts have all calls");
	browser_ask(browser, "showTab('threads'); 1");
	await(browser, "it waits at the gate",
	      "document.querySelector('#threads li button').textContent === 'posix.read' &&"
	      "document.querySelectorAll('#threads li button')[1].textContent === 'wait'");
	browser_ask(browser, "showTab('processes'); 1");
	await(
	    browser, "the process",
	    text("(document.querySelector('#processes tbody tr') || {textContent: ''}).textContent.startsWith('%d') &&"
		 "document.querySelector('#processes tbody tr').cells[9].textContent === '0'",
		 (int)scene->program->pid));
}

static struct browser *begin_with_page(const struct python *python, struct scene *scene)
{
	struct browser *browser;

	network_apart();
	*scene = begin(python);
	browser = browser_open(scene->directory);
	browser_go(browser, scene->url);
	return browser;
}

static void end_with_page(struct browser *browser, struct scene *scene)
{
	browser_expect_quiet(browser);
	browser_close(browser);
	for (int i = 0; i < 2; i++)
		open_gate(scene);
	end(scene);
}

SCENARIO_SOME(serve, shows_what_happened, SUPPORTED)
{
	struct scene scene;
	struct browser *browser = begin_with_page(python, &scene);

	await(browser, "the process is there", "evprof.live.processes.length === 1 && evprof.live.number > 2");
	open_gate(&scene);
	check_while_it_runs(browser);
	open_gate(&scene);
	fifo_await(scene.ready_fd);
	check_after(browser, &scene);
	browser_expect_quiet(browser);
	browser_close(browser);
	end(&scene);
}

/* As many calls as the program has counted, not one more or less. */
static void check_trace(const struct scene *scene, const char *trace)
{
	static const char *const names[] = {"leaf", "fib"};

	for (int i = 0; i < 4; i++) {
		char *limit = text("serve_busy:%s=%.0f", names[i / 2], counted(scene, names[i / 2]) - i % 2);
		struct outcome *checked =
		    run(.how = JOB_BARE, .lingers = true, .args = {"%B/evprof", "check", "--max-calls", limit, trace});

		expect(checked, checked->status == (i % 2 ? 1 : 0), "%s: %s", limit, checked->out);
	}
}

SCENARIO(serve, snapshot, SCENARIO_ONCE)
{
	struct browser *browser;
	struct outcome *taken;
	struct scene scene;
	char *trace, *address;

	(void)python;
	network_apart();
	scene = begin(python_any());
	open_gate(&scene);
	sleep(1);
	open_gate(&scene);
	fifo_await(scene.ready_fd);
	trace = text("%s/saved.evp", scene.directory);
	taken = run(.how = JOB_BARE, .timeout_s = 120, .lingers = true,
		    .args = {"python3", "@drive_snapshot.py", scene.url, text("%d", (int)scene.program->pid), trace});
	cr_assert(taken->status == 0, "%s%s", taken->out, taken->err);
	check_trace(&scene, trace);
	browser = browser_open(scene.directory);
	address = strndup(taken->out, strcspn(taken->out, "\n"));
	browser_go(browser, address);
	browser_number(browser, "evprof.ready"); /* when it is drawn */
	cr_expect_eq(browser_number(browser,
				    "evprof.functions.calls[[...Array(evprof.functions.count).keys()].find((f) =>"
				    " evprof.functionName(f) === 'leaf')]"),
		     counted(&scene, "leaf"), "the report has the calls of leaf()");
	browser_expect_quiet(browser);
	browser_close(browser);
	free(address);
	end(&scene);
}

/* The button opens a tab; the page lists the snapshot, and its report. */
SCENARIO(serve, snapshot_button, SCENARIO_ONCE)
{
	struct scene scene;
	struct browser *browser = begin_with_page(python_any(), &scene);

	(void)python;
	browser_ask(browser, "showTab('processes'); 1");
	await(browser, "the button", "document.querySelector('#processes form button')");
	browser_ask(browser, "document.querySelector('#processes form button').click(); 1");
	await(browser, "the snapshot", "document.querySelector('#snapshots a[href=\"report/1.html\"]')");
	end_with_page(browser, &scene);
}

SCENARIO(serve, answers, SCENARIO_ONCE)
{
	struct outcome *driven;
	struct scene scene;

	(void)python;
	network_apart();
	scene = begin(python_any());
	open_gate(&scene);
	sleep(1);
	driven = run(.how = JOB_BARE, .timeout_s = 200, .lingers = true,
		     .args = {"python3", "@drive_serve.py", scene.url, text("%d", (int)scene.program->pid)});
	expect(driven, driven->status == 0 && strcmp(driven->out, "right\n") == 0, "%s%s", driven->out, driven->err);
	open_gate(&scene);
	fifo_await(scene.ready_fd);
	end(&scene);
}

static pid_t collector_pid(void)
{
	struct outcome *asked = run(.how = JOB_BARE, .args = {"%B/evprof", "status", "--json"}, .lingers = true);
	json_t *status = json_loads(asked->out, 0, NULL);
	pid_t pid = (pid_t)json_integer_value(json_object_get(json_object_get(status, "collector"), "pid"));

	cr_assert(pid > 0, "%s%s", asked->out, asked->err);
	json_decref(status);
	return pid;
}

/* A server that hangs, or a tunnel to it, is one that does not answer, until it does. */
SCENARIO(serve, the_page_sees_that_it_hangs, SCENARIO_ONCE)
{
	struct scene scene;
	struct browser *browser = begin_with_page(python_any(), &scene);

	(void)python;
	await(browser, "it is live", "document.getElementById('lamp').className === 'good'");
	kill(scene.server->pid, SIGSTOP);
	await(browser, "it hangs", "document.getElementById('state_text').textContent === 'no answer'");
	await(browser, "it still does", "document.getElementById('state_text').textContent.includes('has it ended')");
	kill(scene.server->pid, SIGCONT);
	await(browser, "it is live again", "document.getElementById('lamp').className === 'good'");
	end_with_page(browser, &scene);
}

/* A collector that hangs keeps neither the page from answering nor the server from ending. */
SCENARIO(serve, ends_while_a_collector_hangs, SCENARIO_ONCE)
{
	struct timespec before, after;
	struct outcome *page;
	struct scene scene;
	pid_t pid;

	(void)python;
	network_apart();
	scene = begin(python_any());
	pid = collector_pid();
	kill(pid, SIGSTOP);
	sleep(1);
	page = run(.how = JOB_BARE, .lingers = true, .timeout_s = 20,
		   .args = {"python3", "-c",
			    "import json, sys, urllib.request\n"
			    "print(json.load(urllib.request.urlopen(sys.argv[1] + 'live', timeout=2))['age_ms'] > 500)",
			    scene.url});
	expect(page, page->status == 0 && strcmp(page->out, "True\n") == 0, "it answers with what it has");
	clock_gettime(CLOCK_MONOTONIC, &before);
	cr_expect_eq(background_stop(scene.server), 0, "%s", file_read(scene.server->log, NULL));
	clock_gettime(CLOCK_MONOTONIC, &after);
	cr_expect_lt(after.tv_sec - before.tv_sec, 4, "it waits for a second only");
	kill(pid, SIGCONT);
	cr_expect_eq(left_folders(scene.directory), 0, "its folder is gone");
	for (int i = 0; i < 3; i++)
		open_gate(&scene);
	cr_expect_eq(background_wait(scene.program), 0, "%s", file_read(scene.program->log, NULL));
}

/* One line says what to do. */
SCENARIO(serve, refuses, SCENARIO_ONCE)
{
	static const char *const wrong[][3] = {{"--interval", "0", "--interval is 0.1 to 3600 seconds"},
					       {"--listen", "here", "--listen is an address with a port"},
					       {"--listen", "127.0.0.1", "--listen is an address with a port"},
					       {"--listen", "0.0.0.0:0", "insist with --allow-remote"},
					       {"--listen", "127.0.0.1:99999", "--listen is"}};
	struct outcome *outcome;

	(void)python;
	network_apart();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "serve", wrong[i][0], wrong[i][1]});
		expect(outcome, outcome->status == 2 && strstr(outcome->err, wrong[i][2]), "%s %s", wrong[i][0],
		       wrong[i][1]);
	}
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof", "serve", "--listen", "[::2]:1", "--allow-remote"});
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "cannot listen there"), "no such address");
}

/* Without the library everything else works, and one line names it. */
SCENARIO(serve, names_a_missing_library, SCENARIO_ONCE)
{
	struct outcome *found, *outcome;

	(void)python;
	network_apart();
	found = run(.how = JOB_BARE,
		    .args = {"sh", "-c", "ldconfig -p | sed -n 's/.*libmicrohttpd.so.12.* => //p' | head -1"});
	found->out[strcspn(found->out, "\n")] = '\0';
	outcome = run(.how = JOB_BARE, .args = {"unshare", "-m", "sh", "-c",
						"[ -z \"$1\" ] || mount --bind /dev/null \"$1\"; exec \"$2\" serve",
						"sh", found->out, build_path("evprof")});
	expect(outcome,
	       outcome->status == 2 &&
		   strstr(outcome->err, "libmicrohttpd is not here, which carries HTTP: install it") &&
		   outcome->out_bytes == 0,
	       "it says so");
}
