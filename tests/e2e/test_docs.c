/*
 * test_docs.c - every command of README.md and docs/ is run, and prints what the document says but for the numbers; so
 * are the examples of the man pages, which only have to end well (run_docs.py, which has the list of those that are not
 * run). The tables of formats are compared with a trace (doc_tables.py).
 */
#include <string.h>

#include "harness.h"
#include "packages.h"

static const struct python *reader(void)
{
	const struct python *any = python_any();

#ifdef EVPROF_INSTRUMENTED
	cr_skip_test("a Python without sanitizers cannot load the library");
#endif
	if (any->command[1])
		cr_skip_test("%s has no path of its own", any->name);
	python_needs(any, "ctypes");
	python_needs(any, "sqlite3");
	return any;
}

/* A wheel of this build for what the document installs, or NULL: nothing to pack it with is here. */
static const char *wheel(void)
{
	struct outcome *made =
	    run(.how = JOB_BARE, .timeout_s = 300,
		.args = {"sh", program_path("../../../tools/packaging/wheel.sh"), "--of", "%B", "."});

	if (strstr(made->err, "could not be fetched") || strstr(made->err, "no Python here can make"))
		return NULL;
	expect(made, made->status == 0, "a wheel is packed: %s", made->err);
	return text("%.*s", (int)strcspn(made->out, "\n"), made->out);
}

static bool installs(const char *path)
{
	struct outcome *found = run(.how = JOB_BARE, .args = {"grep", "-qE", "^(\\$|.*- run:|.*-) pip install", path});

	return found->status == 0;
}

static void expect_document(const char *name, const char *package, const char *service)
{
	const struct python *any = reader();
	const char *path = program_path(text("../../../%s", name)), *packed = installs(path) ? wheel() : NULL;
	struct job job = {.how = JOB_BARE, .timeout_s = 300, .args = {"python3", "@../run_docs.py"}};
	struct outcome *outcome;
	int n = 2;

	if (package)
		package_variable(any, package);
	job.env[0] = service ? service_variable(any, service) : text("PYTHONPATH=%s", package_path(any));
	if (packed) {
		job.args[n++] = "--wheel";
		job.args[n++] = packed;
	}
	job.args[n++] = "%B";
	job.args[n++] = any->command[0];
	job.args[n] = path;
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, " 0 differ"), "%s is true:\n%s", name,
	       outcome->out);
}

/* Package: what it needs beyond Python, or NULL; Service: likewise, of the packages of services. */
#define DOCUMENT(Name, Path, Package) DOCUMENT_OF(Name, Path, Package, NULL)
#define DOCUMENT_OF(Name, Path, Package, Service)                                                                      \
	SCENARIO(docs, Name, SCENARIO_ONCE)                                                                            \
	{                                                                                                              \
		(void)python;                                                                                          \
		expect_document(Path, Package, Service);                                                               \
	}

DOCUMENT(readme, "README.md", NULL)
DOCUMENT(slow_endpoint, "docs/tutorials/slow-endpoint.md", NULL)
DOCUMENT(leak, "docs/tutorials/leak.md", NULL)
DOCUMENT(service, "docs/tutorials/service.md", NULL)
DOCUMENT(ci_limit, "docs/tutorials/ci-limit.md", NULL)
DOCUMENT(one_block, "docs/tutorials/one-block.md", NULL)
DOCUMENT(production, "docs/production.md", NULL)
DOCUMENT_OF(services, "docs/services.md", NULL,
	    "flask, django, fastapi, gunicorn, uvicorn, celery, opentelemetry.sdk, sentry_sdk")
DOCUMENT(fleet, "docs/fleet.md", NULL)
DOCUMENT(memory, "docs/memory.md", NULL)
DOCUMENT(formats, "docs/formats.md", NULL)
DOCUMENT(installing, "docs/install.md", NULL)
DOCUMENT(ci, "docs/ci.md", "pytest")
DOCUMENT(pytest, "docs/pytest.md", "pytest")
DOCUMENT(table, "docs/table.md", "pandas")
DOCUMENT_OF(queries, "docs/queries.md", "pyarrow", "duckdb")
DOCUMENT(notebook, "docs/notebook.md", "nbclient, nbformat, ipykernel, pandas")
DOCUMENT(the_tool, "docs/man/evprof.1", NULL)
DOCUMENT(the_variables, "docs/man/evprof.7", NULL)
DOCUMENT(the_collector, "docs/man/evprof-collector.1", NULL)
DOCUMENT(budget, "docs/budget.md", NULL)
DOCUMENT(design, "docs/design.md", NULL)
DOCUMENT(development, "docs/development.md", NULL)
DOCUMENT(glossary, "docs/glossary.md", NULL)
DOCUMENT(growth, "docs/growth.md", NULL)
DOCUMENT(limits, "docs/limits.md", NULL)
DOCUMENT(peers, "docs/peers.md", NULL)
DOCUMENT(performance, "docs/performance.md", NULL)
DOCUMENT(reliability, "docs/reliability.md", NULL)
DOCUMENT(security, "docs/security.md", NULL)
DOCUMENT(trace, "docs/trace.md", NULL)
DOCUMENT(wire, "docs/wire.md", NULL)

/* What make demo runs once all is installed. */
SCENARIO(docs, demo, SCENARIO_ONCE)
{
	struct outcome *outcome;

	(void)python;
	reader();
	outcome = run(.how = JOB_BARE, .timeout_s = 200,
		      .args = {"sh", "-c", "cd \"$1\" && exec sh tools/scripts/demo.sh \"$2\"", "sh",
			       program_path("../../.."), "%B"});
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "Ordered by: internal time"), "the demo: %s",
	       outcome->out);
}

SCENARIO(docs, tables_of_formats, SCENARIO_ONCE)
{
	const struct python *any = reader();
	const char *packages = package_variable(any, "numpy") + strlen("PYTHONPATH=");
	struct outcome *recorded, *budget, *sampled, *outcome;

	(void)python;
	recorded = run(.python = any, .args = {"@known.py"});
	budget = run(.python = any, .args = {"@known.py"}, .env = {"EVPROF_EVENTS=call,c_call", "EVPROF_BUDGET=5%"});
	sampled = run(.python = any, .args = {"@known.py"}, .env = {"EVPROF_EVENTS=sample"});
	outcome = run(.python = any, .how = JOB_BARE,
		      .env = {text("PYTHONPATH=%s:%s", program_path("../../../tools/python"), packages),
			      text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so"))},
		      .args = {"@../doc_tables.py", program_path("../../../docs"), recorded->trace,
			       build_path("evprof"), budget->trace, sampled->trace});
	expect(outcome, outcome->status == 0 && strcmp(outcome->out, "as the tables say\n") == 0,
	       "the formats are as the tables say:\n%s", outcome->out);
}
