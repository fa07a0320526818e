/*
 * test_tables.c - evprof export --format parquet and arrow: the folder of tables as DuckDB, Polars, pandas and pyarrow
 * read it, against evprof report, the csv and trace.calls() (table/folders.py); the answers of docs/queries.md
 * (table/queries.py).
 */
#include <string.h>

#include "harness.h"
#include "packages.h"

/* The package, and the packages that read tables. Skips where this interpreter has none. */
static void set_paths(struct job *job)
{
	if (built_with_asan())
		cr_skip_test("Python cannot load a library with the address sanitizer in it");
	python_needs(job->python, "ctypes");
	package_variable(job->python, "pyarrow");
	job->env[0] = text("PYTHONPATH=%s:%s", program_path("../../../tools/python"),
			   service_variable(job->python, "duckdb") + strlen("PYTHONPATH="));
	job->env[1] = "PYTHONDONTWRITEBYTECODE=1";
	job->env[2] = text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so"));
}

SCENARIO_SOME(tables, as_reported, SUPPORTED)
{
	struct job job = {.python = python, .how = JOB_BARE, .timeout_s = 400};
	struct outcome *tasks, *forks, *samples, *verdict;

	set_paths(&job);
	tasks = run(.python = python, .args = {"@analysed.py"}, .env = {"EVPROF_PROGRAM_ONLY=1"});
	forks = run(.python = python, .args = {"@processes.py", "forks"}, .env = {"EVPROF_PROGRAM_ONLY=1"});
	samples = run(.python = python, .args = {"@analysed.py"}, .env = {"EVPROF_EVENTS=sample"});
	memcpy(job.args,
	       ((const char *[]){"@../table/folders.py", build_path("evprof"), tasks->trace, forks->trace,
				 samples->trace}),
	       5 * sizeof(*job.args));
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strstr(verdict->out, "as reported: 3 traces, pyarrow, duckdb"),
	       "the tables are as evprof report has them");
}

SCENARIO_SOME(tables, twenty_queries, SUPPORTED)
{
	struct job job = {
	    .python = python,
	    .how = JOB_BARE,
	    .timeout_s = 400,
	    .args = {"@../table/queries.py", build_path("evprof"), program_path("../../../docs/queries.md")}};
	struct outcome *verdict;

	set_paths(&job);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strstr(verdict->out, "20 answers are the same"),
	       "the answers are those of the page");
}

/* Each refusal is one line that says what to do. */
SCENARIO(tables, refused, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@only.py"}), *export;
	static const struct {
		const char *options[4], *line;
	} refused[] = {
	    {{"-f", "parquet"}, "--format parquet needs -o FOLDER"},
	    {{"-f", "arrow", "--beside"}, "--format arrow needs -o FOLDER"},
	    {{"-f", "parquet", "-o.", "--since-start"}, "the format parquet has no option --since-start"},
	    {{"-f", "parquet", "-o.", "--clock=cpu"}, "has no --clock"},
	    {{"-f", "csv", "-o.", "--tables=calls"}, "are for --format parquet and arrow"},
	    {{"-f", "parquet", "-o.", "--python=/nowhere/python"}, "needs Python 3.8 or later with pyarrow"},
	};

	(void)python;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *words[8] = {"export"};
		size_t count = 1;

		for (size_t k = 0; k < 4 && refused[i].options[k]; k++)
			words[count++] = refused[i].options[k];
		words[count] = outcome->trace;
		export = tool_run(words);
		expect(export, export->status == 2 && strstr(export->err, refused[i].line), "refusal %zu", i);
		expect(export, strchr(export->err, '\n') == strrchr(export->err, '\n'), "refusal %zu is a line", i);
	}
}
