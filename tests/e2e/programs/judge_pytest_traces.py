"""judge_pytest_traces.py EVPROF SEEN FOLDER: the trace of each test of pytest_suite/test_counts.py has the calls that the test itself
counted, those of its fixture and its warmups, and the calls of no other test. The independent reader reads that with a child.
"""
import json
import os
import re
import subprocess
import sys

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle_trace.py")
EXTRA = {"test_of_unittest": 0, "test_warmups": 4}  # to most the fixture adds two


def output(*words):
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if ran.returncode or ran.stderr:
        sys.exit("%s: status %d: %s" % (" ".join(words), ran.returncode, ran.stderr))
    return ran.stdout


def found(path):
    """Calls of app.query."""
    report = json.loads(output(sys.argv[1], "report", "--json", "--include", "*/app.py", path))
    calls = sum(row["ncalls"] for row in report["functions"] if row["function"] == "query")
    if path.endswith("test_fork.evp"):
        rows = [line.split() for line in output(sys.executable, ORACLE, path).splitlines()]
        if sum(int(row[1]) for row in rows if row[0] == "app.py:query") != calls:
            sys.exit("the independent reader finds other calls in %s" % path)
    return calls


counted = {"test_without_limit": 100}
with open(sys.argv[2]) as file:
    for row in map(json.loads, file):
        counted[row["test"]] = sum(row["calls"].values()) + EXTRA.get(row["test"], 2)
traces = {}
for name in os.listdir(sys.argv[3]):
    test = re.sub(r"^.*test_counts\.py-(Test\w*-)?|\.evp$", "", name)
    traces[re.sub(r"^test_page-(\d+)$", r"test_page[\1]", test)] = found(os.path.join(sys.argv[3], name))
for test in sorted(set(counted) | set(traces)):
    if counted.get(test) != traces.get(test):
        sys.exit("%s: the test counted %s calls, its trace has %s" % (test, counted.get(test), traces.get(test)))
print("%d tests" % len(counted))
