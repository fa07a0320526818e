"""judge_push.py RECEIVED COUNTED REPORT MEMORY PID [doubled|alive|live]: whether what a server of OTLP has got for a process is what
the program counted, and what evprof report and memory say of its trace. REPORT, MEMORY: their output as JSON; MEMORY "-": none.
"doubled": some profiles came twice, and count once. "alive": compare live blocks, and CPU times, which were recorded. "live": it was
pushed while the process ran. Prints "right", or what is wrong.
"""
import collections
import json
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


received, counted, report = load(sys.argv[1]), load(sys.argv[2]), load(sys.argv[3])
memory = load(sys.argv[4])["processes"] if sys.argv[4] != "-" else []
process = received["processes"][sys.argv[5]]
profiles = process["profiles"]


def expect(what, got, low, high=None):
    if not low <= got <= (low if high is None else high):
        print("%s: %s, not %s" % (what, got, low if high is None else "%s to %s" % (low, high)))
        sys.exit(1)


def of_program(kind, side, name):
    """Of a function of the program. From 3.11 on its name is the qualified one."""
    return sum(
        value for key, value in profiles[kind][side].items() if "pushed.py:" in key and key.endswith("(%s)" % name)
    )


doubled = received["counts"].get("doubled", 0)
# A server that is killed may have kept what it has not answered.
expect("profiles that came twice", doubled, 1 if "doubled" in sys.argv else 0, 0 if sys.argv[6:] in ([], ["alive"]) else 1000)

# What the program counted.
for name in ("leaf", "fib"):
    expect("calls of " + name, of_program("calls/count", "own", name), counted[name])
slept = sum(value for key, value in profiles["wall/nanoseconds"]["own"].items() if key.endswith("(time.sleep)"))
expect("time asleep", slept, counted["sleeps"] * 50e6 * 0.98, counted["slept_ns"] * 1.02)
expect("time in sleep()", of_program("wall/nanoseconds", "total", "sleep"), slept * 0.99, counted["sleep_ns"] * 1.02)

# evprof report, function by function: C functions have one place.
calls, own = collections.Counter(), collections.Counter()
for function in report["functions"]:
    place = "%s:%s" % (function["file"], function["line"] if function["file"] != "~" else 0)
    calls[place] += function["ncalls"]
    own[place] += function["tottime_ns"]
got_calls, got_own = collections.Counter(), collections.Counter()
for key, value in profiles["calls/count"]["own"].items():
    got_calls[key.partition("(")[0]] += value
for key, value in profiles["wall/nanoseconds"]["own"].items():
    got_own[key.partition("(")[0]] += value
expect("calls", profiles["calls/count"]["sum"], report["calls"])
for place in set(calls) | set(got_calls):
    expect("calls of " + place, got_calls[place], calls[place])
# A stack's time is cut to whole nanoseconds. Of a running process, ticks are not known as well as at its end: there are two readings
# of the clocks that are milliseconds apart.
share = 0.01 if "live" in sys.argv else 0
for place in set(own) | set(got_own):
    differs = 20000 + share * own[place]
    expect("own time of " + place, got_own[place], own[place] - differs, own[place] + differs)

expect("CPU times", "cpu/nanoseconds" in profiles, "alive" in sys.argv)
if "alive" in sys.argv:
    cpu, waited = profiles["cpu/nanoseconds"]["sum"], profiles["off_cpu/nanoseconds"]["sum"]
    wall = profiles["wall/nanoseconds"]["sum"]
    expect("CPU and waiting together", cpu + waited, wall - 2000000, wall + 10000)
    expect("waiting", waited, slept * 0.9, wall)
for one in memory:
    sites = one["sites"]
    expect("allocations", profiles["alloc_objects/count"]["sum"], sum(site["allocations"] for site in sites))
    expect("bytes", profiles["alloc_space/bytes"]["sum"], sum(site["allocated_bytes"] for site in sites))
    if "alive" in sys.argv:
        expect("live bytes", profiles["inuse_space/bytes"]["sum"], one["end_bytes"])
        alive = of_program("inuse_space/bytes", "total", "keep")
        expect("live bytes of keep()", alive, counted["kept_bytes"], counted["kept_bytes"] + 20000)
print("right")
