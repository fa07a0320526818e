"""Calls numbered batches as kept.py does, and evprof.snapshot() after some of them. Prints JSON: of each snapshot its path, the number
of the last batch before it, and that of the first batch that began in its last second.
"""
import json
import sys
import time

import evprof


def leaf():
    pass


def batch(number):
    names = {"leaf": leaf}
    exec("def batch_%d():\n    leaf()\n" % number, names)
    stamps.append(time.monotonic())
    names["batch_%d" % number]()
    time.sleep(0.005)


stamps = []
taken = []
for turn in range(2):
    ends = time.monotonic() + 2
    while time.monotonic() < ends:
        batch(len(stamps))
    last = len(stamps) - 1
    path = evprof.snapshot(sys.argv[1] if turn else None)
    late = time.monotonic() - 0.98
    taken.append({"path": path, "last": last, "first": next((i for i, at in enumerate(stamps) if at >= late), last)})
print(json.dumps(taken))
