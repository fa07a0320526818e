"""Greenlets that take turns in the middle of calls; prints what it counted itself, as JSON: {"function": calls}."""
import json
import sys
import threading

import greenlet

counts = {"work": 0, "outer": 0, "inner": 0, "leaf": 0}
lock = threading.Lock()


def count(name):
    with lock:
        counts[name] += 1


def leaf(hub):
    count("leaf")
    hub.switch()


def inner(hub):
    count("inner")
    for _ in range(3):
        leaf(hub)


def outer(hub):
    count("outer")
    inner(hub)
    inner(hub)


def work(hub):
    count("work")
    for _ in range(5):
        outer(hub)


def run(number):
    hub = greenlet.getcurrent()
    running = [greenlet.greenlet(work) for _ in range(number)]
    while running:
        for one in running:
            one.switch(hub)
        running = [one for one in running if not one.dead]
    killed = greenlet.greenlet(work)
    killed.switch(hub)
    killed.throw(greenlet.GreenletExit)


def main():
    run(20)
    thread = threading.Thread(target=run, args=(7,))
    thread.start()
    run(3)
    thread.join()
    json.dump(counts, sys.stdout)


main()
