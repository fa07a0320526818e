"""judge_collector.py COUNTED REPORT MEMORY PID LOG...: whether the values that the debug exporter of an OpenTelemetry Collector has printed
for a process add up to what evprof report and memory say of its trace. A profile that was printed twice, by its id, counts
once: the last time, as a Collector that is killed may have printed a part. Its type is not printed; the order of profiles says it. Prints "right" and the numbers of profiles, or what is wrong.
"""
import json
import re
import sys

counted, report, memory = [json.load(open(path)) for path in sys.argv[1:4]]
pid = "Int(%s)" % sys.argv[4]
profiles, doubled, service = {}, 0, None  # by id: number, sum
number = mine = profile = None
for path in sys.argv[5:]:
    for line in open(path, encoding="utf-8", errors="replace"):
        line = line.rstrip("\n")
        if line.startswith("ResourceProfiles #"):
            mine = False
        elif line.startswith("     -> process.pid: "):
            mine = line.endswith(" " + pid)
        elif line.startswith("     -> service.name: ") and not mine:
            service = line.rpartition(": ")[2]
        elif line.startswith("Profile #"):
            number = int(line.rpartition("#")[2])
        elif mine and re.match(r" +Profile ID +: ", line):
            one = line.rpartition(" ")[2]
            doubled += one in profiles
            profile = profiles[one] = [number, 0]
        elif mine and profile and re.match(r"        Values: \[[0-9 ]+\]$", line):
            profile[1] += sum(map(int, line[line.index("[") + 1 : -1].split()))
sums = {}
for number, value in profiles.values():
    sums[number] = sums.get(number, 0) + value


def expect(what, got, low, high=None):
    if not low <= got <= (low if high is None else high):
        print("%s: %s, not %s" % (what, got, low if high is None else "%s to %s" % (low, high)))
        sys.exit(1)


CALLS, WALL, ALLOC_OBJECTS, ALLOC_SPACE = range(4)
sites = [site for process in memory["processes"] for site in process["sites"]]
expect("services", service, "Str(shop)")
expect("calls", sums.get(CALLS, 0), report["calls"])
expect("calls that the program counted", report["calls"], counted["leaf"] + counted["fib"], 10**9)
own_ns = sum(function["tottime_ns"] for function in report["functions"])
expect("own time", sums.get(WALL, 0), own_ns * 0.99 - 1000000, own_ns * 1.01 + 1000000)  # the clock of a young trace is not known well
expect("allocations", sums.get(ALLOC_OBJECTS, 0), sum(site["allocations"] for site in sites))
expect("bytes", sums.get(ALLOC_SPACE, 0), sum(site["allocated_bytes"] for site in sites))
print("right: %d profiles, %d twice" % (len(profiles), doubled))
