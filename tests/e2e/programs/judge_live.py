"""Holds what tracemalloc says of held.py (DIRECTORY/oracle.json) against the folded stacks that evprof export made of another run
of it: `judge_live.py DIRECTORY PID`, PID that of the recorded parent. Shares nothing with evprof; prints how many sums it compared."""
import json
import os
import re
import sys

directory, parent = sys.argv[1], int(sys.argv[2])


def read(name):
    """Bytes by process and innermost Python function of held.py: C functions stand on top of the one that called them."""
    sums = {}
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        for line in file:
            stack, size = line.rstrip("\n").rsplit(" ", 1)
            pid = int(re.match(r".*? \((\d+)\);", stack).group(1))
            python = [frame for frame in stack.split(";")[2:] if re.search(r" \([^()]*:\d+\)$", frame)]
            match = re.match(r"(\w+) \(held\.py:\d+\)$", python[-1]) if python else None
            if match:
                key = pid, match.group(1)
                sums[key] = sums.get(key, 0) + int(size)
    return sums


def main():
    with open(os.path.join(directory, "oracle.json"), encoding="utf-8") as file:
        oracle = json.load(file)
    found = {"live": read("live.txt"), "peak": read("peak.txt")}
    child, = {pid for pid, _ in found["live"]} - {parent}
    compared = 0
    for moment, pid, sums in (("peak", parent, oracle["peak"]), ("live", parent, oracle["live"]),
                              ("live", child, {"in_child": oracle["child"]["in_child"]})):
        assert sums
        for function, size in sums.items():
            mine = found[moment].get((pid, function), 0)
            # Small blocks come from free lists, which each run fills in its own way.
            assert abs(mine - size) <= 1500 + size // 200, (moment, function, mine, size)
            compared += size > 50000
        for (process, function), size in found[moment].items():
            assert process != pid or size < 50000 or function in sums, (moment, function, size, sums)
    assert sum(oracle["peak"].values()) > 1.2 * sum(oracle["live"].values())
    return compared


print(main())
