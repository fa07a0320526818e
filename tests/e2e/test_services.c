/*
 * test_services.c - what services have: evprof's middleware in flask, django and fastapi under gunicorn and uvicorn,
 * spans of OpenTelemetry and of Sentry. The oracles are the service's own stopwatch and that of its clients, what the
 * two SDKs export, and, for the spans of the trace, a reader that was written from the documents alone.
 *
 * The packages are in a folder of their own (service_variable()); a test is skipped by name where they are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

/* A service under load. */
struct load {
	const struct python *python;
	const char *framework;
	const char *packages; /* that it imports */
	const char *routes;   /* JSON: requests of each route */
	const char *options;  /* JSON: of the middleware */
	const char *server[10];
	const char *snapshot_of; /* the route of which one is waited for; NULL: none is */
	bool bare;
};

#define ROUTES "\"items\": 40, \"stream\": 8, \"slow\": 2, \"fails\": 4}"
#define GUNICORN "-m", "gunicorn", "--log-level", "warning", "-b", "fd://FD"
#define UVICORN "-m", "uvicorn", "--fd", "FD", "--log-level", "warning", "--factory", "service:application"

static char *library_path(void)
{
	if (built_with_asan())
		cr_skip_test("Python cannot load a library with the address sanitizer in it");
	return text("%s", build_path("libevprof.so"));
}

static char *paths_of(const struct python *python, const char *packages)
{
	return text("PYTHONPATH=%s:%s:%s", program_path("../../../tools/python"), program_path("services"),
		    service_variable(python, packages) + strlen("PYTHONPATH="));
}

static struct outcome *run_load(const struct load *load)
{
	struct job job = {.how = JOB_BARE,
			  .timeout_s = 300,
			  .args = {"python3", "@serve_load.py", load->bare ? "-" : library_path(), load->routes},
			  .env = {"SEEN=seen", "EVPROF_OUTPUT=service.evp", "EVPROF_EVENTS=call",
				  "EVPROF_INCLUDE=*/service.py,*/service_urls.py", "PYTHONDONTWRITEBYTECODE=1"}};
	size_t arg = 4;

	job.env[5] = paths_of(load->python, load->packages);
	job.env[6] = text("FRAMEWORK=%s", load->framework);
	job.env[7] = text("OPTIONS=%s", load->options);
	job.env[8] = text("SNAPSHOT_OF=%s", load->snapshot_of ? load->snapshot_of : "");
	for (size_t i = 0; load->python->command[i]; i++)
		job.args[arg++] = load->python->command[i];
	for (size_t i = 0; load->server[i]; i++)
		job.args[arg++] = load->server[i];
	return job_run(&job);
}

/* Each request has its span: as its handler and its client saw it. */
static void expect_requests(const struct load *load, const struct outcome *outcome)
{
	char *asked = path_in(outcome, "asked"), *trace = path_in(outcome, "service.evp");
	struct outcome *judged;

	expect(outcome, outcome->status == 0, "the server and its clients end well");
	file_write(asked, outcome->out, outcome->out_bytes);
	judged = run(.how = JOB_BARE, .args = {"python3", "@judge_services.py", load->framework,
					       path_in(outcome, "seen"), asked, oracle_spans(trace)});
	expect(judged, judged->status == 0 && strstr(judged->out, " requests agree"), "each request has its span");
	expect(judged, strncmp(judged->out, "0 ", 2) != 0, "there were requests");
}

/* How often a span with that name has an end. */
static long ended_spans(const char *trace, const char *name)
{
	struct outcome *printed = tool("report", "--by", "span", "--json", trace);
	json_t *report = json_loads(printed->out, 0, NULL), *row;
	long count = 0;
	size_t i;

	expect(printed, report, "report --by span");
	json_array_foreach(json_object_get(report, "spans"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "span")), name) == 0)
			count += (long)json_integer_value(json_object_get(row, "count"));
	}
	json_decref(report);
	return count;
}

/* The snapshot is a whole trace that has the call, and the span of the request with its end. */
static void expect_snapshot(const struct outcome *outcome, const char *path, const char *file, const char *function,
			    const char *span)
{
	struct outcome *info = tool("info", path);
	json_t *report = trace_report(path, NULL);

	expect(info, info->status == 0 && strstr(info->out, "\nstate     complete\n"), "%s is whole", path);
	expect(outcome, report_calls(report, file, function) > 0, "%s of %s is in %s", function, file, path);
	expect(outcome, ended_spans(path, span) > 0, "the span %s has an end in %s", span, path);
	json_decref(report);
}

/* The first snapshot that the service noted for such a request. */
static char *noted_snapshot(const struct outcome *outcome, const char *name)
{
	char *at = file_read(path_in(outcome, "seen"), NULL);

	for (char *line; at && (line = strsep(&at, "\n"));) {
		json_t *row = json_loads(line, 0, NULL);
		const char *path = json_string_value(json_object_get(row, "snapshot"));

		if (path && strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
			return text("%s", path);
	}
	expect(outcome, false, "the service noted a snapshot of %s", name);
	return NULL;
}

static void expect_load(const struct load *load)
{
	struct outcome *outcome = run_load(load);

	expect_requests(load, outcome);
	expect_snapshot(outcome, noted_snapshot(outcome, "GET /slow/*"), "/service.py", "slow_query", "GET /slow/*");
}

#define LOAD(Name, Packages, Framework, Routes, ...)                                                                   \
	SCENARIO(services, Name, SUPPORTED)                                                                            \
	{                                                                                                              \
		expect_load(&(const struct load){.python = python,                                                     \
						 .packages = Packages,                                                 \
						 .framework = Framework,                                               \
						 .routes = "{" Routes,                                                 \
						 .options = "{\"slow\": 0.3, \"on_error\": false, \"every\": 0}",      \
						 .snapshot_of = "slow",                                                \
						 .server = {__VA_ARGS__}});                                            \
	}

LOAD(flask_gunicorn, "flask, gunicorn", "flask", ROUTES, GUNICORN, "-w", "2", "service:application()")
LOAD(django_gunicorn, "django, gunicorn", "django", ROUTES, GUNICORN, "-w", "2", "service:application()")
LOAD(flask_gevent, "flask, gunicorn, gevent", "flask", ROUTES, GUNICORN, "-k", "gevent", "service:application()")
LOAD(fastapi_uvicorn, "fastapi, uvicorn", "fastapi", "\"threads\": 10, " ROUTES, UVICORN)

/* A failed request; the second one comes too early for another snapshot. */
SCENARIO_SOME(services, failed_request, SUPPORTED)
{
	const struct load load = {.python = python,
				  .packages = "flask, gunicorn",
				  .framework = "flask",
				  .routes = "{\"items\": 5, \"fails\": 5}",
				  .options = "{\"every\": 3600, \"folder\": \"snapshots\"}",
				  .snapshot_of = "fails",
				  .server = {GUNICORN, "service:application()"}};
	struct outcome *outcome = run_load(&load), *list;
	char *path;

	expect_requests(&load, outcome);
	path = noted_snapshot(outcome, "GET /fails/*");
	expect_snapshot(outcome, path, "/service.py", "fails", "GET /fails/*");
	list = run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s/snapshots | wc -l", outcome->directory)});
	expect(list, strcmp(list->out, "1\n") == 0, "one snapshot, in its folder");
}

/* Without evprof the service does what it does with it, and nothing is left. */
SCENARIO_SOME(services, unrecorded, SUPPORTED)
{
	const struct load load = {.python = python,
				  .packages = "flask, gunicorn",
				  .framework = "flask",
				  .routes = "{\"items\": 5, \"fails\": 5, \"stream\": 5}",
				  .options = "{\"slow\": 0}",
				  .server = {GUNICORN, "service:application()"},
				  .bare = true};
	struct outcome *outcome = run_load(&load);

	expect(outcome, outcome->status == 0 && !outcome->traces, "no trace");
	expect(outcome, stderr_evprof_lines(outcome) == 0, "no line of evprof's");
	expect(outcome, !strstr(file_read(path_in(outcome, "seen"), NULL), "snapshot"), "no snapshot");
}

/* Without a framework, and what the two interfaces allow beyond what frameworks do. */
SCENARIO(services, middleware, SUPPORTED)
{
	struct outcome *outcome, *judged;
	char *seen;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@middleware.py"},
		      .env = {text("PYTHONPATH=%s", program_path("../../../tools/python")), "EVPROF_EVENTS=call",
			      "EVPROF_OUTPUT=middleware.evp"});
	expect(outcome, outcome->status == 0, "the program finds what it expects");
	seen = path_in(outcome, "seen.json");
	file_write(seen, outcome->out, outcome->out_bytes);
	judged = run(.how = JOB_BARE,
		     .args = {"python3", "@judge_spans.py", seen, oracle_spans(path_in(outcome, "middleware.evp"))});
	expect(judged, judged->status == 0 && strcmp(judged->out, "85 rows agree\n") == 0, "each span is as it was");
}

/* ---- OpenTelemetry and Sentry ---------------------------------------------------------------------------------- */

/* The spans of the trace are those that the SDK exported; then the paths of two snapshots. */
static void expect_sdk(const struct python *python, const char *program, const char *packages)
{
	static const char *const functions[] = {"slow_query", "failing_query"}, *const spans[] = {"order", "broken"};
	struct outcome *outcome, *judged;
	char *seen, *at;

	library_path();
	outcome = run(.python = python, .args = {text("@%s", program)}, .timeout_s = 100,
		      .env = {paths_of(python, packages), "EVPROF_EVENTS=call", "PYTHONDONTWRITEBYTECODE=1",
			      text("EVPROF_INCLUDE=*/%s", program), "EVPROF_OUTPUT=spans.evp"});
	expect(outcome, outcome->status == 0, "the program finds what it expects");
	seen = path_in(outcome, "seen.json");
	file_write(seen, outcome->out, outcome->out_bytes);
	judged = run(.how = JOB_BARE,
		     .args = {"python3", "@judge_spans.py", seen, oracle_spans(path_in(outcome, "spans.evp"))});
	expect(judged, judged->status == 0 && strstr(judged->out, " rows agree"), "each span is as the SDK has it");
	expect(judged, strncmp(judged->out, "0 ", 2) != 0, "the program has spans");
	at = strstr(outcome->out, "snapshot /");
	for (size_t i = 0; i < 2; i++, at = strstr(at + 1, "snapshot /")) {
		char *path = text("%.*s", (int)strcspn(at + 9, "\n"), at + 9);

		/* Sentry's error comes before the end of its transaction; OpenTelemetry's query is in a longer span. */
		expect_snapshot(outcome, path, text("/%s", program), functions[i],
				strstr(program, "sentry") ? "order"
				: i			  ? spans[i]
							  : "query");
	}
}

SCENARIO(services, opentelemetry, SUPPORTED)
{
	expect_sdk(python, "otel_spans.py", "opentelemetry.sdk");
}

SCENARIO(services, sentry, SUPPORTED)
{
	expect_sdk(python, "sentry_spans.py", "sentry_sdk");
}

/* ---- prefork servers under a daemon ---------------------------------------------------------------------------- */

static long number(const json_t *root, const char *name)
{
	return (long)json_integer_value(json_object_get(root, name));
}

/* The trace of the master has each worker that answered, and each of their calls; so has the snapshot. */
static void expect_workers(const struct outcome *outcome, const json_t *said)
{
	struct outcome *list =
	    run(.how = JOB_BARE, .args = {"sh", "-c", text("ls %s/traces/*.evp | grep -v killed", outcome->directory)});
	char *trace = text("%.*s", (int)strcspn(list->out, "\n"), list->out);
	const char *traces[] = {trace, path_in(outcome, "snapshot.evp")};
	json_t *info = trace_info(trace), *pid;
	size_t i;

	expect(list, strcmp(list->out, text("%s\n", trace)) == 0, "one trace");
	json_array_foreach(json_object_get(said, "workers"), i, pid)
	    expect(outcome, info_process(info, (long)json_integer_value(pid)), "worker %ld is in the trace",
		   (long)json_integer_value(pid));
	for (i = 0; i < 2; i++) {
		json_t *report = trace_report(traces[i], NULL);

		expect(outcome, report_calls(report, "/preforked.py", "leaf") == 10 * number(said, "answers"),
		       "%ld calls in %s", report_calls(report, "/preforked.py", "leaf"), traces[i]);
		json_decref(report);
	}
	json_decref(info);
}

/* workers: how many different ones answer at least, as each is replaced after some requests. */
static void expect_prefork(struct job *job, size_t workers)
{
	struct outcome *outcome;
	json_t *said;

	library_path();
	job->how = JOB_BARE;
	job->timeout_s = 230;
	job->env[0] = "EVPROF_EVENTS=call";
	job->env[1] = "EVPROF_INCLUDE=*/preforked.py";
	job->env[2] = "PYTHONDONTWRITEBYTECODE=1";
	outcome = job_run(job);
	said = json_loads(outcome->out, 0, NULL);
	expect(outcome, outcome->status == 0 && said, "the server answers");
	expect(outcome, number(said, "server") == 0 && number(said, "snapshot") == 0, "all end well");
	/* At that moment one of the two workers may be about to be replaced. */
	expect(outcome, number(said, "lost") == 0 && number(said, "recorded") >= 2, "nothing is lost");
	expect(outcome, json_array_size(json_object_get(said, "workers")) >= workers, "workers were replaced");
	expect_workers(outcome, said);
	json_decref(said);
}

/* Workers are replaced after ten requests, and all of them at SIGHUP. */
SCENARIO_SOME(services, prefork_gunicorn, SUPPORTED)
{
	struct job job = {.args = {"python3", "@prefork.py", "%B", python->command[0], "-m", "gunicorn", "-w", "2",
				   "--max-requests", "10", "--log-level", "warning", "-b", "ADDRESS",
				   "preforked:application"}};

	job.env[3] = paths_of(python, "gunicorn");
	expect_prefork(&job, 4);
}

/* A worker of celery is replaced after eight tasks. */
SCENARIO_SOME(services, prefork_celery, SUPPORTED)
{
	struct job job = {.args = {"python3", "@prefork.py", "%B", python->command[0], "-m", "celery", "-A",
				   "preforked", "worker", "-c", "2", "--max-tasks-per-child", "8", "--without-gossip",
				   "--without-mingle", "-l", "WARNING"},
			  .env = {NULL, NULL, NULL, NULL, "CELERY=1"}};

	job.env[3] = paths_of(python, "celery");
	expect_prefork(&job, 4);
}

/* uwsgi executes itself at SIGHUP, and goes on in the same trace. Its Python is the system's. */
SCENARIO(services, prefork_uwsgi, SCENARIO_ONCE)
{
	struct outcome *found = run(.how = JOB_BARE, .args = {"sh", "-c", "uwsgi --need-plugin python3 --version"});
	struct job job = {.args = {"python3", "@prefork.py", "%B", "uwsgi", "--need-plugin", "python3", "--http-socket",
				   "ADDRESS", "--wsgi-file", program_path("services/preforked.py"), "--master",
				   "--processes", "2", "--max-requests", "10", "--min-worker-lifetime", "1",
				   "--die-on-term"}};

	(void)python;
	if (found->status)
		cr_skip_test("uwsgi, or its plugin for Python 3, is not installed");
	/* A worker lives for a second at least, whatever it has answered. */
	expect_prefork(&job, 3);
}
