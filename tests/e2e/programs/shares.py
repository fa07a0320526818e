"""Two or three kinds of work that take turns, by the program's own stopwatch: prints how long each took.

    shares.py SHAPE SECONDS BLOCK    a turn takes about BLOCK seconds
"""
import asyncio
import random
import sys
import time
import types

took = {}


def turn(work, seconds):
    """Lets a kind of work run for some time."""
    begin = time.perf_counter()
    work(begin + seconds * random.uniform(0.5, 1.5))
    took[work.__name__] = took.get(work.__name__, 0) + time.perf_counter() - begin


def plain(end):
    while time.perf_counter() < end:
        x = 0
        for i in range(500):
            x += i * i


def generating(end):
    while time.perf_counter() < end:
        sum(x * x for x in range(500))


def recursing(end):
    while time.perf_counter() < end:
        fibonacci(10)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def calling(end):
    while time.perf_counter() < end:
        for i in range(100):
            add(i, i)
            tiny()


def add(a, b):
    return a + b


def tiny():
    pass


@types.coroutine
def suspended():
    yield


async def inner():
    await suspended()


async def outer():
    for _ in range(100):
        await inner()


def awaiting(end):
    while time.perf_counter() < end:
        coroutine = outer()
        try:
            while True:
                coroutine.send(None)
        except StopIteration:
            pass


def tree(depth):
    if depth:
        yield from tree(depth - 1)
        yield depth
        yield from tree(depth - 1)


def yielding(end):
    while time.perf_counter() < end:
        for _ in tree(6):
            pass


def in_turns(work):
    def run(seconds, block):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            turn(plain, block)
            turn(work, block)
    return run


async def one(steps):
    await task("one", steps)


async def other(steps):
    await task("other", steps)


async def third(steps):
    await task("third", steps)


async def task(name, steps):
    """Works in steps and lets others go on between."""
    for loops in steps:
        begin = time.perf_counter()
        for _ in range(loops):
            sum(x * x for x in range(20))
        took[name] = took.get(name, 0) + time.perf_counter() - begin
        await asyncio.sleep(0)


def tasks(seconds, block):
    """Two equal ones, and one of a sixth. A step is a turn."""
    async def all_of_them():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            loops = max(1, int(block / 3e-6))
            await asyncio.gather(one([loops] * 5), other([loops] * 5), third([loops * 2 // 5] * 5))

    loop = asyncio.new_event_loop()
    loop.run_until_complete(all_of_them())
    loop.close()


shapes = dict(generators=in_turns(generating), recursion=in_turns(recursing), functions=in_turns(calling),
              coroutines=in_turns(awaiting), delegation=in_turns(yielding), tasks=tasks)
shapes[sys.argv[1]](float(sys.argv[2]), float(sys.argv[3]))
for name, seconds in took.items():
    print(name, "%.6f" % seconds)
