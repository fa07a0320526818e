"""judge_pytest_traces.py SEEN FOLDER: in the trace of each test of pytest_suite/test_counts.py the independent reader finds the calls
that the test itself counted, those of its fixture and its warmups, and the calls of no other test.
"""
import json
import os
import re
import subprocess
import sys

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle_trace.py")
EXTRA = {"test_of_unittest": 0, "test_warmups": 4}  # to most the fixture adds two


def found(path):
    """Calls of app.query."""
    read = subprocess.run([sys.executable, ORACLE, path], stdout=subprocess.PIPE, universal_newlines=True)
    if read.returncode:
        sys.exit("%s is not as the documents say" % path)
    rows = [line.split() for line in read.stdout.splitlines()]
    return sum(int(row[1]) for row in rows if row[0] == "app.py:query")


counted = {"test_without_limit": 100}
with open(sys.argv[1]) as file:
    for row in map(json.loads, file):
        counted[row["test"]] = sum(row["calls"].values()) + EXTRA.get(row["test"], 2)
traces = {}
for name in os.listdir(sys.argv[2]):
    test = re.sub(r"^.*test_counts\.py-(Test\w*-)?|\.evp$", "", name)
    traces[re.sub(r"^test_page-(\d+)$", r"test_page[\1]", test)] = found(os.path.join(sys.argv[2], name))
for test in sorted(set(counted) | set(traces)):
    if counted.get(test) != traces.get(test):
        sys.exit("%s: the test counted %s calls, its trace has %s" % (test, counted.get(test), traces.get(test)))
print("%d tests" % len(counted))
