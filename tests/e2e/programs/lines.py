"""Deterministic work, line by line. `python lines.py log` prints {line: hits} of its functions as sys.settrace sees them.

One statement stands on each line: what a tracer makes of a loop within one line differs between versions of Python.
"""
import sys
import threading
import time

import line_log


def numbers(n):
    for i in range(n):
        x = yield i
        if i % 2:
            continue
        x = i
    return x


def fails(n):
    try:
        if n:
            raise ValueError(n)
    except ValueError:
        n = 0
    finally:
        n = 1
    return n


class Thing:
    def __init__(self, n):
        self.n = n

    def double(self):
        return self.n * 2


def recurse(n):
    if not n:
        return 0
    return recurse(n - 1)


async def waits(n):
    total = 0
    for i in range(n):
        total += i
    return total


def drive():
    coroutine = waits(4)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return None


def work():
    total = 0
    for number in numbers(7):
        total += number
    for i in range(3):
        fails(i)
    while total > 3:
        total -= 3
    things = []
    for i in range(5):
        things.append(Thing(i))
    for thing in things:
        thing.double()
    recurse(20)
    drive()
    first = numbers(3)
    second = numbers(3)
    next(first)
    next(second)
    next(first)
    return total


def naps():
    total = 0
    time.sleep(0.06)
    for i in range(100000):
        total += i
    return total


def main():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    naps()


if sys.argv[1:] == ["log"]:
    line_log.log(main)
else:
    main()
