/*
 * test_fleet.c - evprof.fleet on Spark, against evprof report and export of the same traces (fleet/judge.py): on this
 * machine. Spark is large and takes minutes, so only EVPROF_TEST_ALL=1 (make check-all) fetches and runs it.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

/* Less for the compilers of Java and of Spark to do: each query runs once. Everything is on the loopback interface. */
static void set_spark(struct job *job, const struct python *python)
{
	const char *packages = fleet_variable(python) + strlen("PYTHONPATH=");
	const char *const env[] = {
	    text("PYTHONPATH=%s:%s", program_path("../../../tools/python"), packages),
	    "PYTHONDONTWRITEBYTECODE=1",
	    text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so")),
	    "SPARK_LOCAL_IP=127.0.0.1",
	    text("PYSPARK_PYTHON=%s", python->command[0]),
	    "JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
	    "PYSPARK_SUBMIT_ARGS=--conf spark.sql.codegen.wholeStage=false --conf "
	    "spark.sql.codegen.factoryMode=NO_CODEGEN --conf spark.sql.adaptive.enabled=false --conf "
	    "spark.sql.shuffle.partitions=1 --conf spark.executor.heartbeatInterval=60s --conf "
	    "spark.network.timeout=600s pyspark-shell",
	};

	memcpy(job->env, env, sizeof(env));
}

/* With one version: what differs between versions is not read here. */
SCENARIO_ANY_OF(fleet, as_reported, 11, 11, true)
{
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"}), *verdict;
	struct job job = {.python = python,
			  .how = JOB_BARE,
			  .timeout_s = 1500,
			  .args = {"@../fleet/judge.py", build_path("evprof"), path_in(place, "traces"), "local[1]"}};

	if (!test_all())
		cr_skip_test("Spark takes minutes; EVPROF_TEST_ALL=1 runs it");
	if (system("java -version >/dev/null 2>&1") != 0)
		cr_skip_test("there is no Java for Spark");
	set_spark(&job, python);
	verdict = job_run(&job);
	expect(verdict, verdict->status == 0 && strstr(verdict->out, "as reported"), "Spark says what the tool says");
}
