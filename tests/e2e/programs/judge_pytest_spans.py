"""judge_pytest_spans.py SEEN JUNIT ROWS...: the spans that the independent reader found in the traces of a run of
pytest_suite/test_counts.py (an object a line) are the tests, phases and fixtures of the run; the times of phases add up to pytest's own.
"""
import collections
import json
import sys
import xml.etree.ElementTree

FAR_S = 0.05  # a phase has other hooks in it than pytest's own time of it


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def wrong(text, *values):
    sys.exit(text % values)


fixtures = {row["test"] for row in lines(sys.argv[1])} - {"test_of_unittest"}
times = {case.get("name"): float(case.get("time")) for case in xml.etree.ElementTree.parse(sys.argv[2]).iter("testcase")}
spans = [row for path in sys.argv[3:] for row in lines(path) if row["what"] == "span"]
tests = {row["name"].rpartition("::")[2]: row for row in spans if "::" in row["name"]}
if set(tests) != set(times) or sum("::" in row["name"] for row in spans) != len(times):
    wrong("the spans of tests are %s", sorted(tests))
if any("end" not in row for row in spans):
    wrong("a span has no end")
phases = collections.defaultdict(dict)
counted = collections.defaultdict(dict)
for row in spans:
    arguments = dict(row["arguments"])
    test = arguments.get("test", "").rpartition("::")[2]
    if row["name"] in ("setup", "call", "teardown"):
        if row["name"] in phases[test]:
            wrong("%s has two spans %s", test, row["name"])
        phases[test][row["name"]] = row
    elif row["name"] == "fixture counted":
        if arguments["scope"] != "function" or arguments["when"] in counted[test]:
            wrong("the spans of the fixture in %s", test)
        counted[test][arguments["when"]] = row


def within(inner, outer):
    return inner["pid"] == outer["pid"] and inner["tid"] == outer["tid"] and \
        outer["begin"] <= inner["begin"] <= inner["end"] <= outer["end"]


for name, time in times.items():
    found = phases[name]
    if set(found) != {"setup", "call", "teardown"} or not all(within(row, tests[name]) for row in found.values()):
        wrong("the phases of %s: %s", name, found)
    total = sum(row["end"] - row["begin"] for row in found.values()) / 1e9
    if abs(total - time) > time * 0.1 + FAR_S:
        wrong("%s: the phases take %.3f s, to pytest %.3f s", name, total, time)
    if (name in fixtures) != (name in counted):
        wrong("the fixture of %s", name)
    for when, row in counted.get(name, {}).items():
        if not within(row, found[when]):
            wrong("%s: the %s of the fixture is not in that phase", name, when)
    if name in fixtures and set(counted[name]) != {"setup", "teardown"}:
        wrong("the fixture of %s has only %s", name, sorted(counted[name]))
print("%d tests" % len(times))
