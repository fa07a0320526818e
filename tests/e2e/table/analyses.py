"""analyses.py EVPROF TRACE COUNTS: the package's analyses of programs/analysed.py against what the program counted, and its texts
against the tool's. Used by test_table.c. Prints "as counted".
"""
import collections
import json
import subprocess
import sys

import evprof

tool, path = sys.argv[1:3]
with open(sys.argv[3]) as file:
    counts = json.load(file)
trace = evprof.load(path)


def same(what, mine, theirs):
    if mine != theirs:
        sys.exit("%s: %r instead of %r" % (what, mine, theirs))


def of_program(table, column):
    return [row for row in table if getattr(row, column).endswith("analysed.py")]


# functions(): calls, and times that add up
functions = {row.name: row for row in of_program(trace.functions(), "file")}
for name in ("leaf", "branch", "fails", "recursive", "allocates"):
    same("calls of " + name, functions[name].calls, counts[name])
same("primitive calls", functions["recursive"].primitive_calls, 1)
same("own is no more than cumulative", all(row.own <= row.cumulative for row in trace.functions()), True)

# calls(): each call has its caller, and own time is the duration without the calls in it
calls = list(trace.calls())
inner = collections.Counter()
for number, row in enumerate(calls):
    if row.parent >= 0:
        parent = calls[row.parent]
        inner[row.parent] += row.duration
        same("row %d is in its caller" % number, parent.start <= row.start and row.start + row.duration <=
             parent.start + parent.duration and row.depth == parent.depth + 1 and row.tid == parent.tid, True)
for number, row in enumerate(calls):
    same("own time of row %d" % number, row.own, row.duration - inner[number])
mine = [row for row in calls if row.mod.endswith("analysed.py")]
called = collections.Counter(row.name for row in mine)
for name in ("leaf", "branch", "fails", "recursive"):
    same("rows of " + name, called[name], counts[name])
same("callers of leaf", collections.Counter(calls[row.parent].name for row in mine if row.name == "leaf"),
     {"branch": counts["branch->leaf"]})
same("ends of fails", {row.end for row in mine if row.name == "fails"}, {"unwind"})
called_by = collections.Counter({row.name: row.calls for row in trace.callers("analysed.py:leaf")})
same("trace.callers()", called_by, {"branch": counts["branch->leaf"]})
same("ends of leaf", {row.end for row in mine if row.name == "leaf"}, {"return"})
same("depth of recursion", max(row.depth for row in mine if row.name == "recursive") -
     min(row.depth for row in mine if row.name == "recursive"), 30)
own = sum(row.own for row in mine if row.name == "leaf")
if abs(own - functions["leaf"].own) > counts["leaf"]:  # each is rounded to ns
    sys.exit("own times of leaf add up to %d, not to %d" % (own, functions["leaf"].own))

# memory(), lines()
memory = {row.name: row for row in of_program(trace.memory(), "file")}
got = memory["allocates"].bytes
if not counts["bytes"] <= got <= counts["bytes"] + 1000 * counts["allocates"]:
    sys.exit("allocates() got %d bytes, not %d" % (got, counts["bytes"]))
peaks = collections.Counter()
for line in trace.flame(weight="peak").splitlines():
    stack, _, held = line.rpartition(" ")
    name, _, place = stack.rpartition(";")[2].rpartition(" (")
    if place.startswith("analysed.py:"):
        peaks[name, int(place[len("analysed.py:"):-1])] += int(held)
same("bytes at the peak", peaks, collections.Counter(
    {(row.name, row.line): row.peak_bytes for row in memory.values() if row.peak_bytes}))
same("something is held at the peak", sum(peaks.values()) > 0, True)
same("blocks and bytes", all(row.peak_blocks <= row.allocations and row.peak_bytes <= row.bytes for row in trace.memory()), True)
lines = {row.name: row for row in of_program(trace.lines(), "file")}
same("calls at the first line of leaf", lines["leaf"].calls, counts["leaf"])

# tasks()
steps = sorted(row.steps for row in trace.tasks() if "worker" in row.name)
same("steps of tasks", steps, sorted(counts["steps of %d" % n] for n in (1, 3, 7)))
same("tasks are finished", {row.finished for row in trace.tasks()}, {1})

# diff()
same("a trace and itself", {row.change for row in trace.diff(trace)}, {"both"})
other = evprof.load(path, exclude="leaf")
removed = [row for row in trace.diff(other) if row.change == "removed"]
same("what is removed", [(row.name, row.calls_a, row.calls_b) for row in removed], [("leaf", counts["leaf"], 0)])
allocated = collections.Counter()
for row in trace.memory(by="line"):
    allocated[row.file, row.name] += row.allocations
for by in ("line", "function"):
    changes = list(trace.diff(trace, memory=True, by=by))
    same("allocations by " + by, sum((collections.Counter({(row.file, row.name): row.allocations_a}) for row in changes),
                                     collections.Counter()), +allocated)
    same("nothing has changed", [row for row in changes if row.peak_bytes_a != row.peak_bytes_b or row.change != "both"], [])
removed = [row for row in trace.diff(other, memory=True) if row.change == "removed"]
same("what leaf allocates is another's", {row.name for row in removed} <= {"leaf"}, True)
try:
    sys.exit("memory by place: %r" % trace.diff(other, memory=True, by="place"))
except evprof.EvprofError:
    pass


# texts
def said(*words):
    return subprocess.run([tool, *words, path], stdout=subprocess.PIPE, check=True).stdout.decode()


same("report", trace.report(sort="cumulative,name", limit=7), said("report", "-s", "cumulative,name", "-n", "7"))
same("report of spans", trace.report("--limit", "3", by="span"), said("report", "--by", "span", "--limit", "3"))
same("report of threads as csv", trace.report(by="thread", format="csv"), said("report", "--by", "thread", "--format", "csv"))
same("filters of load()", evprof.load(path, threads=trace.threads[0].tid, kinds="call").report(include="leaf"),
     said("report", "--thread", str(trace.threads[0].tid), "--include", "leaf"))
tids = [thread.tid for thread in trace.threads]
patterns = ["leaf", "branch"]
for several in (lambda: (pattern for pattern in patterns), lambda: map(str, patterns), lambda: iter(patterns)):
    filtered = evprof.load(path, include=several())
    for turn in range(2):
        same("filters of an iterator", [row.name for row in filtered.functions()],
             [row.name for row in trace.functions(include=patterns)])
    same("a difference with them", [row.name for row in trace.diff(other, include=several())],
         [row.name for row in trace.diff(other, include=patterns)])
same("report of several threads", trace.report(threads=tids, exclude=["*leaf*", "x"]),
     said("report", *[word for tid in tids for word in ("--thread", str(tid))], "--exclude", "*leaf*", "--exclude", "x"))
same("report of all threads", evprof.load(path, processes=[trace.processes[0].pid]).report(threads=tids), trace.report())
same("report of callers", trace.report(callers=True, exclude_syspath=True), said("report", "--callers", "--exclude-syspath"))
same("folded stacks", trace.flame(weight="peak"), said("export", "-f", "folded", "--weight", "peak", "-o", "-"))
same("the page", trace.flame("html").startswith("<!DOCTYPE html>"), True)
for name, wrong in (("sort", "colour"), ("by", "line"), ("limit", -1), ("clock", "cpu"), ("lmit", 3), ("reverse", "x"),
                    ("sort", True)):
    try:
        trace.report(**{name: wrong})
        sys.exit("report(%s=%r) is taken" % (name, wrong))
    except evprof.EvprofError:
        pass
try:
    sys.exit("a stretch without an end: %r" % trace.functions(end=float("inf")))
except evprof.EvprofError:
    pass
try:
    sys.exit("a cut into nothing: %r" % trace.cut("/nonexistent/cut.evp", end="1s"))
except evprof.EvprofFileError as error:
    same("the file of a cut", (error.filename, type(error).__mro__[2]), ("/nonexistent/cut.evp", FileNotFoundError))
print("as counted")
