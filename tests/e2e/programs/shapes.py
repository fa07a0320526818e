"""shapes.py FILE: many shapes of programs in one, which count their own calls and hold a stopwatch of their own. What it
counted is written as JSON: by name of a function its calls, and the seconds during which it was on the stack, those of
recursive calls once. A generator that goes on is called once more, as cProfile has it."""
import functools
import json
import os
import sys
import threading
import time

clock = time.perf_counter
sums = {}  # name: [calls, seconds]
lock = threading.Lock()


class Open(threading.local):
    """What is on this thread's stack, by name: how often, and since when."""

    def __init__(self):
        self.depth = {}
        self.since = {}


here = Open()


def enter(name, calls=1):
    with lock:
        sums.setdefault(name, [0, 0.0])[0] += calls
    here.depth[name] = here.depth.get(name, 0) + 1
    if here.depth[name] == 1:
        here.since[name] = clock()


def leave(name):
    here.depth[name] -= 1
    if not here.depth[name]:
        with lock:
            sums[name][1] += clock() - here.since[name]


def rest(seconds=0.001):
    time.sleep(seconds)


def fib(n):
    enter("fib")
    if n < 2:
        rest()
    else:
        fib(n - 1)
        fib(n - 2)
    leave("fib")


def even(n):
    enter("even")
    rest(0.0005)
    if n:
        odd(n - 1)
    leave("even")


def odd(n):
    enter("odd")
    rest(0.0005)
    if n:
        even(n - 1)
    leave("odd")


def produce(n):
    enter("produce")
    for i in range(n):
        rest()
        leave("produce")
        yield i
        enter("produce")
    leave("produce")


def climb(n):
    """Each level goes on with each value of those beneath."""
    enter("climb")
    if n:
        for value in climb(n - 1):
            leave("climb")
            yield value
            enter("climb")
    rest()
    leave("climb")
    yield n
    enter("climb")
    leave("climb")


def callback(value):
    enter("callback")
    rest()
    if value > 100:
        sorted([value - 100, value - 200], key=callback)
    leave("callback")
    return value


def reducer(a, b):
    enter("reducer")
    rest()
    leave("reducer")
    return a + b


def catcher(n):
    enter("catcher")
    try:
        try:
            raise KeyError(n) if not n else ValueError(n)
        finally:
            rest()
        leave("catcher")
    except ValueError:
        catcher(n - 1)
        leave("catcher")
    except KeyError:
        leave("catcher")


def plain():
    enter("plain")
    fib(6)
    even(9)
    for _ in produce(8):
        rest()
    for _ in climb(5):
        pass
    sorted([3, 250, 1], key=callback)
    functools.reduce(reducer, range(5))
    catcher(4)
    leave("plain")


def tasks():
    import asyncio

    async def short(n):
        enter("short")
        for _ in range(n):
            rest()
            leave("short")
            await asyncio.sleep(0)
            enter("short")
        leave("short")

    async def outer():
        await asyncio.gather(short(3), short(5), short(2))

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(outer())
    loop.close()


def greenlets():
    try:
        import greenlet
    except ImportError:
        return

    def inner(n):
        enter("inner")
        for _ in range(n):
            rest()
            for name in ("inner", "ring"):
                leave(name)
            main.switch()
            for name in ("ring", "inner"):
                enter(name, 0)
        leave("inner")

    def ring(n):
        enter("ring")
        inner(n)
        rest()
        leave("ring")

    main = greenlet.getcurrent()
    alive = [greenlet.greenlet(ring) for _ in range(3)]
    for i, one in enumerate(alive):
        one.switch(4 + i)
    while alive:
        for one in alive:
            one.switch()
        alive = [one for one in alive if not one.dead]


def in_child():
    enter("in_child")
    plain()
    leave("in_child")


def forks(path):
    child = os.fork()
    if not child:
        sums.clear()
        in_child()
        with open(path + ".child", "w") as file:
            json.dump(sums, file)
        os._exit(0)
    os.waitpid(child, 0)
    with open(path + ".child") as file:
        for name, (calls, seconds) in json.load(file).items():
            ours = sums.setdefault(name, [0, 0.0])
            ours[0] += calls
            ours[1] += seconds


plain()
threads = [threading.Thread(target=plain) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
tasks()
greenlets()
forks(sys.argv[1])
with open(sys.argv[1], "w") as file:
    json.dump(sums, file)
