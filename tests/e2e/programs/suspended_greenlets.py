"""Greenlets that are suspended before a recording, or a part of one, and go on in it: suspended_greenlets.py [started].

Prints as JSON how often held() and new() called leaf() in that part, and for how many seconds held() ran. Each of five greenlets is
suspended in held(), below more and more frames of outer(). started: recording begins then. Else more is recorded than stands
between two stacks of the thread.
"""
import ctypes
import json
import sys
import time

import greenlet

evprof = ctypes.CDLL(None)
hub = greenlet.getcurrent()
seconds = 0


def leaf():
    pass


def held():
    global seconds
    hub.switch()
    while True:
        begin = time.perf_counter()
        for _ in range(200000):
            pass
        leaf()
        seconds += time.perf_counter() - begin
        hub.switch()


def outer(depth):
    return outer(depth - 1) if depth else held()


def new():
    leaf()


def busy():
    for _ in range(700000):
        leaf()


def main(how):
    suspended = [greenlet.greenlet(outer) for _ in range(5)]
    for depth, one in enumerate(suspended):
        one.switch(depth * 10)
    if how == "started":
        evprof.evprof_start()
    else:
        busy()
        time.sleep(0.3)  # the collector may be behind: what is kept could begin after the mark
    evprof.evprof_mark(b"resumed")
    for _ in range(7):
        for one in suspended:
            one.switch()
        greenlet.greenlet(new).switch()
    evprof.evprof_mark(b"done")
    json.dump({"held": 35, "new": 7, "seconds": seconds}, sys.stdout)


main(sys.argv[1] if len(sys.argv) > 1 else "")
