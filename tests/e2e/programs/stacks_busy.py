"""Calls as fast as it can, and has evprof stack look at it: python stacks_busy.py EVPROF LOOKS.

Each call stands in a line of its own, so a line of a caller says which function it has called. The oracle is this file: a stack in
which a caller stands at another line, or a function at a line that is not its own, is one that the program cannot have.
"""
import ctypes
import json
import os
import subprocess
import sys
import threading

EVPROF, LOOKS = sys.argv[1], int(sys.argv[2])
ctypes.PyDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too


def leaf():
    return 1


def left(depth):
    leaf()
    if depth:
        right(depth - 1)
    return leaf()


def right(depth):
    middle(depth)
    if depth:
        left(depth - 1)


def middle(depth):
    for value in generator(depth):
        leaf()


def generator(depth):
    yield leaf()
    yield from inner(depth)


def inner(depth):
    yield leaf()
    yield depth


def made(number):
    space = {"leaf": leaf}
    exec(compile("def new():\n    leaf()\n", "<made>", "exec"), space)
    space["new"]()


def loops():
    while not ended.is_set():
        left(12)
        made(1)


def callees():
    """The functions that a line calls, by (function, line)."""
    found, function = {}, None
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.startswith("def "):
                function = line[4:line.index("(")]
            for name in "leaf", "left", "right", "middle", "generator", "inner", "made", "new":
                if function and "%s(" % name in line.replace('space["new"]', "new") and not line.startswith("def "):
                    found.setdefault((function, number), set()).add(name)
    return found


CALLED, FIRST = {}, {}


def is_possible(frames, complete):
    """The innermost first. Frames of threading, and of code that is made, have no line in this file."""
    ours = [frame for frame in frames if frame["file"].endswith(("stacks_busy.py", "<made>"))]
    for callee, caller in zip(ours, ours[1:]):
        if caller["file"] == "<made>":
            allowed = {"leaf"} if caller["function"] == "new" else set()
        else:
            allowed = CALLED.get((caller["function"], caller["line"]), set())
        if caller["function"] == "made":
            allowed = allowed | {"<module>"}
        if caller["function"] == "middle" or caller["function"] == "generator":
            allowed = allowed | {"leaf"} if allowed - {"leaf"} else allowed
        if callee["function"] not in allowed:
            return False
    return not ours or not complete or ours[-1]["function"] == "loops"


ended = threading.Event()
CALLED.update(callees())
threads = [threading.Thread(target=loops, name="busy %d" % number) for number in range(3)]
for thread in threads:
    thread.start()
wrong, whole, seen, depth = [], 0, 0, 0
for _ in range(LOOKS):
    (process,) = json.loads(subprocess.check_output([EVPROF, "stack", "--json", str(os.getpid())]).decode())["processes"]
    for thread in process["threads"]:
        if thread["name"] == "MainThread":
            continue
        seen += 1
        whole += thread["complete"]
        depth = max(depth, len(thread["frames"]))
        named = thread["name"].startswith("busy ") and len(thread["frames"]) >= 4
        if not is_possible(thread["frames"], thread["complete"]) or (thread["complete"] and not named):
            wrong.append([thread["name"]] + [[frame["function"], frame["line"]] for frame in thread["frames"]])
ended.set()
print(json.dumps({"seen": seen, "whole": whole, "depth": depth, "wrong": wrong}))
