"""cluster.py EVPROF FOLDER: evprof.fleet on a standalone cluster of two workers on the loopback interface, of which one is killed with its
executor while its tasks run, against `evprof report` of the same traces. Used by test_fleet.c. Prints "as reported without one worker".
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pyspark
from evprof import fleet

tool, folder = sys.argv[1:3]
program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "fleet.py")
spark_class = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-class")
started = []


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(name, *words):
    """A process group of its own, with what it starts."""
    log = open(os.path.join(folder, name + ".log"), "w")
    started.append(subprocess.Popen([spark_class, "org.apache.spark.deploy." + words[0], "--host", "127.0.0.1", "--webui-port", "0",
                                     *words[1:]], stdout=log, stderr=log, start_new_session=True))
    return started[-1]


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wait_for(what, condition):
    end = time.monotonic() + 1200
    while not condition():
        if time.monotonic() > end:
            sys.exit("%s: not within 20 minutes" % what)
        time.sleep(0.2)


def executors(spark):
    return spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1


def kill_amid(spark, worker, seen):
    """Kills the worker when some tasks of a stage have run, and others have not."""
    tracker = spark.sparkContext.statusTracker()
    while not seen:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info and info.numTasks >= 8 and 2 <= info.numCompletedTasks < info.numTasks - 2:
                kill(worker)
                seen.append((info.numCompletedTasks, info.numTasks))
                return
        time.sleep(0.02)


def main():
    paths = []
    for number in range(10):
        paths.append(os.path.join(folder, "host=%d" % number, "x.evp"))
        os.makedirs(os.path.dirname(paths[-1]))
        subprocess.run([tool, "run", "-q", "--program-only", "-o", paths[-1], program, "3", "1", "1000"], check=True)
    report = json.loads(subprocess.run([tool, "report", "--json", "--limit", "all", *paths], stdout=subprocess.PIPE, check=True).stdout)
    master = "spark://127.0.0.1:%d" % free_port()
    start("master", "master.Master", "--port", master.rpartition(":")[2])
    workers = [start("worker%d" % number, "worker.Worker", "--cores", "1", "--memory", "600m", "--work-dir",
                     os.path.join(folder, "work%d" % number), master) for number in range(2)]
    spark = fleet.session(master)
    wait_for("two executors", lambda: executors(spark) == 2)
    seen = []
    threading.Thread(target=kill_amid, args=(spark, workers[1], seen), daemon=True).start()
    rows = fleet.functions(spark, folder, percentiles=False, part_bytes=1).collect()
    mine = sorted((row.file, row.line, row.name, row.calls, row.primitive_calls, row.own, row.cumulative) for row in rows)
    if mine != sorted((one["file"], one["line"], one["function"], one["ncalls"], one["primitive_calls"], one["tottime_ns"],
                       one["cumtime_ns"]) for one in report["functions"]):
        sys.exit("the functions are others than those of evprof report")
    if not seen:
        sys.exit("no worker was killed meanwhile")
    wait_for("one executor", lambda: executors(spark) == 1)
    spark.stop()
    print("as reported without one worker, killed after %d of %d tasks" % seen[0])


try:
    main()
finally:
    for process in started:
        kill(process)
