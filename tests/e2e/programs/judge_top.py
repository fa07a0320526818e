"""judge_top.py LINES COUNTED PID: whether evprof top --json has shown what top_shapes.py counted. Prints "right", or what is wrong."""
import json
import sys

with open(sys.argv[1]) as file:
    refreshes = [json.loads(line) for line in file if line.startswith("{")]
with open(sys.argv[2]) as file:
    counted = json.load(file)
pid = int(sys.argv[3])


def total(name, member):
    return sum(row[member] for refresh in refreshes for row in refresh["functions"] if row["function"].rpartition(".")[2] == name)


def expect(what, got, low, high=None):
    if not low <= got <= (low if high is None else high):
        print("%s: %s, not %s" % (what, got, low if high is None else "%s to %s" % (low, high)))
        sys.exit(1)


for name in ("fib", "leaf"):
    expect("calls of " + name, total(name, "calls"), counted[name])
# A step is a call or a resume of the coroutine; the last resume ends it.
expect("steps", total("steps", "calls"), counted["steps"] + counted["tasks"] - 1)
expect("tasks", max(row["tasks"] for refresh in refreshes for row in refresh["processes"]), 1, counted["tasks"])
# The program's stopwatch runs around the call.
expect("time asleep", total("sleep", "own_ns"), counted["slept_ns"] * 0.9, counted["slept_ns"] * 1.02)
expect("time in outer()", total("outer", "total_ns"), counted["slept_ns"], counted["slept_ns"] * 100)
# Recursion counts once: fib() was not longer on the stack than outer().
expect("time in fib()", total("fib", "total_ns"), 1, total("outer", "total_ns"))
last = refreshes[-1]
for name in ("fib", "leaf"):
    rows = [row["since"]["calls"] for refresh in refreshes for row in refresh["functions"] if row["function"] == name]
    expect("calls of %s since the start" % name, max(rows), counted[name])
expect("processes", [row["pid"] for row in last["processes"]].count(pid), 1)
main = [row for row in last["threads"] if row["pid"] == pid and row["tid"] == pid]
expect("main threads", len(main), 1)
# It waits at the gate.
expect("function of the main thread", main[0]["runs"]["function"], "posix.read")
expect("lost", sum(refresh["lost"] for refresh in refreshes), 0)
print("right")
