#!/usr/bin/env python3
"""run_packages.py --venv DIRECTORY [--python COMMAND] [--timeout S] [--events LIST] [--table FILE] [--logs DIRECTORY] [SUITE...]

Runs parts of the test suites of numpy, gevent, uvloop and greenlet bare and under evprof, by pytest, and compares what came of
every single test. The virtual environment is made with COMMAND where it is not there, and the packages are installed into it
by pip. Status 0: no test failed under evprof only. Not part of `make test`.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tarfile

import suites

PACKAGES = "pytest hypothesis numpy gevent greenlet uvloop psutil objgraph".split()

NUMPY = "test_numeric test_ufunc test_indexing test_dtype test_arrayprint test_nditer test_records test_scalarmath test_api"
GEVENT = """test__queue test__event test__greenlet test__pool test__hub test__greenness test__semaphore test__timeout
test__core test__contextvars test__local test__memleak test__threadpool test__select test__signal test__subprocess
test__socket_close test__order test__loop_callback test__GreenletExit test__nondefaultloop test__threading_2 test__iwait"""
UVLOOP = "test_base test_aiohttp test_context test_cython test_executors test_process test_regr1 test_signals test_unix"

# Suite -> what pytest is to run; "@SOURCE" stands for the folder of the package's unpacked source.
SUITES = {}
for name in NUMPY.split():
    SUITES["numpy " + name] = ["--pyargs", "numpy._core.tests." + name, "-k", "not thread and not slow"]
SUITES["numpy linalg"] = ["--pyargs", "numpy.linalg.tests.test_regression", "numpy.linalg.tests.test_deprecations"]
for name in GEVENT.split():
    SUITES["gevent " + name] = ["--pyargs", "gevent.tests." + name]
for name in UVLOOP.split():
    SUITES["uvloop " + name] = ["@SOURCE/tests/%s.py" % name]
SUITES["greenlet"] = ["--pyargs", "greenlet.tests.test_greenlet", "greenlet.tests.test_generator",
                      "greenlet.tests.test_generator_nested", "greenlet.tests.test_contextvars",
                      "greenlet.tests.test_throw", "greenlet.tests.test_tracing", "greenlet.tests.test_gc",
                      "greenlet.tests.test_stack_saved", "greenlet.tests.test_weakref"]


def make_environment(venv, python):
    inner = os.path.join(venv, "bin", "python")
    if not os.path.exists(inner):
        subprocess.run([python, "-m", "venv", venv], check=True)
    probe = "import " + ", ".join(PACKAGES)
    if subprocess.run([inner, "-c", probe], stderr=subprocess.DEVNULL).returncode:
        subprocess.run([inner, "-m", "pip", "install", "-q", "--only-binary=:all:"] + PACKAGES, check=True)
    return inner


def uvloop_source(venv, python):
    """Its wheel has no tests. The folder, or None where the source cannot be had."""
    found = glob.glob(os.path.join(venv, "uvloop-*", "tests"))
    if not found:
        subprocess.run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "uvloop", "-d", venv, "uvloop"],
                       stdout=subprocess.DEVNULL)
        for archive in glob.glob(os.path.join(venv, "uvloop-*.tar.gz")):
            with tarfile.open(archive) as tar:
                tar.extractall(venv)
        found = glob.glob(os.path.join(venv, "uvloop-*", "tests"))
    return os.path.abspath(os.path.dirname(found[0])) if found else None


def run_suite(python, arguments, preload, options):
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml", "@JUNIT"]
    return suites.run_once(command + arguments, preload, options.timeout, options.events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--timeout", type=int, default=300, help="for one suite, in seconds")
    parser.add_argument("--events", default="", help="EVPROF_EVENTS; all by default")
    parser.add_argument("--table", help="write the table there")
    parser.add_argument("--logs", help="write what a suite that differs said there")
    parser.add_argument("suites", nargs="*", help="parts of names")
    options = parser.parse_args()
    python = make_environment(os.path.abspath(options.venv), options.python)
    source = uvloop_source(os.path.abspath(options.venv), python)
    version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"],
                             stdout=subprocess.PIPE).stdout.decode().strip()
    table = suites.Table("Packages' own tests on Python %s, bare and under evprof" % version)
    failures = 0
    for name, arguments in SUITES.items():
        if options.suites and not any(part in name for part in options.suites):
            continue
        if any("@SOURCE" in one for one in arguments) and not source:
            print("skipped: %s: pip cannot fetch the source of uvloop" % name)
            continue
        arguments = [one.replace("@SOURCE", source or "") for one in arguments]
        bare = run_suite(python, arguments, False, options)
        profiled = run_suite(python, arguments, True, options)
        difference = suites.compare(bare, profiled)
        failures += bool(difference) and not difference.startswith("fails only bare")  # what was not compared, too
        if difference and options.logs:
            os.makedirs(options.logs, exist_ok=True)
            for kind, run in (("bare", bare), ("evprof", profiled)):
                with open(os.path.join(options.logs, re.sub(r"\W", "_", name) + "." + kind), "w") as file:
                    file.write(run.text)
        table.add(name, bare, profiled, difference)
    if options.table:
        table.write(options.table)
    print("%d suites, %d differ" % (len(table.rows), failures))
    sys.exit(1 if failures else 0)


main()
