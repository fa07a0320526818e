"""judge_pytest.py SEEN JUNIT: the failures of a run of pytest_suite/test_counts.py are those of the tests that counted more calls than
their limits, and name the callers with the test's own counts. Prints the number of tests.
"""
import json
import re
import sys
import xml.etree.ElementTree

with open(sys.argv[1]) as file:
    seen = {row["test"]: row for row in map(json.loads, file)}
cases = {}
for case in xml.etree.ElementTree.parse(sys.argv[2]).iter("testcase"):
    failure = case.find("failure")
    error = case.find("error")
    if error is not None:
        sys.exit("%s: an error: %s" % (case.get("name"), error.text))
    cases[case.get("name")] = failure.get("message") if failure is not None else ""
if set(cases) - set(seen) != {"test_without_limit"} or set(seen) - set(cases):
    sys.exit("the tests that ran: %s" % sorted(cases))
if cases["test_without_limit"]:
    sys.exit("a test without a limit failed: " + cases["test_without_limit"])
for name, row in seen.items():
    message, calls = cases[name], sum(row["calls"].values())
    if bool(message) != (calls > row["limit"]):
        sys.exit("%s: %d calls, limit %d: %s" % (name, calls, row["limit"], message or "passed"))
    if not message:
        continue
    if "max_calls: app:query: %d calls, at most %d; called by" % (calls, row["limit"]) not in message:
        sys.exit("%s: not %d calls: %s" % (name, calls, message))
    callers = {found.group(2): int(found.group(1)) for found in re.finditer(r"^ +(\d+)  (\S+) \(\S+:\d+\)$", message, re.M)}
    expected = {caller: count for caller, count in row["calls"].items() if count}
    renamed = {"<listcomp>": "load_users"}  # until 3.11 a comprehension is a function
    callers = {renamed.get(caller, caller): count for caller, count in callers.items()}
    if callers != expected:
        sys.exit("%s: called by %s, not by %s" % (name, callers, expected))
print("%d tests" % len(seen))
