/*
 * test_fleet.c - evprof.fleet on Spark, against evprof report and export of the same traces (fleet/judge.py): on this
 * machine, on a cluster that loses a worker (fleet/cluster.py), and from a store of S3 (fleet/store.py). Spark is
 * large and takes minutes, so only EVPROF_TEST_ALL=1 (make check-all) fetches and runs it.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

/* Less for the compilers of Java and of Spark to do: each query runs once. Everything is on the loopback interface. */
static void set_spark(struct job *job, const struct python *python, const char *variable)
{
	const char *packages = variable + strlen("PYTHONPATH=");
	const char *const env[] = {
	    text("PYTHONPATH=%s:%s", program_path("../../../tools/python"), packages),
	    "PYTHONDONTWRITEBYTECODE=1",
	    text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so")),
	    "SPARK_LOCAL_IP=127.0.0.1",
	    text("PYSPARK_PYTHON=%s", python->command[0]),
	    "JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
	    "PYSPARK_SUBMIT_ARGS=--conf spark.sql.codegen.wholeStage=false --conf "
	    "spark.sql.codegen.factoryMode=NO_CODEGEN --conf spark.sql.adaptive.enabled=false --conf "
	    "spark.sql.shuffle.partitions=1 --conf spark.executor.heartbeatInterval=20s --conf "
	    "spark.network.timeout=600s --conf spark.executor.memory=512m --conf spark.executor.cores=1 "
	    "pyspark-shell",
	};

	memcpy(job->env, env, sizeof(env));
}

static struct outcome *on_spark(const struct python *python, const char *script, const char *master,
				const char *(*packages)(const struct python *python))
{
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"});
	struct job job = {.python = python,
			  .how = JOB_BARE,
			  .timeout_s = 1500,
			  .args = {script, build_path("evprof"), path_in(place, "traces"), master}};

	if (!test_all())
		cr_skip_test("Spark takes minutes; EVPROF_TEST_ALL=1 runs it");
	if (system("java -version >/dev/null 2>&1") != 0)
		cr_skip_test("there is no Java for Spark");
	set_spark(&job, python, packages(python));
	return job_run(&job);
}

/* With one version: what differs between versions is not read here. */
SCENARIO_ANY_OF(fleet, as_reported, 11, 11, true)
{
	struct outcome *verdict = on_spark(python, "@../fleet/judge.py", "local[1]", fleet_variable);

	expect(verdict, verdict->status == 0 && strstr(verdict->out, "as reported"), "Spark says what the tool says");
}

SCENARIO_ANY_OF(fleet, a_worker_is_killed, 11, 11, true)
{
	struct outcome *verdict = on_spark(python, "@../fleet/cluster.py", NULL, fleet_variable);

	expect(verdict, verdict->status == 0 && strstr(verdict->out, "as reported without one worker"),
	       "the other worker does its tasks");
}

SCENARIO_ANY_OF(fleet, a_store_is_read, 11, 11, true)
{
	struct outcome *verdict = on_spark(python, "@../fleet/store.py", "local[1]", fleet_store_variable);

	expect(verdict, verdict->status == 0 && strstr(verdict->out, "as in the folder"), "s3a:// is read as a folder");
}
