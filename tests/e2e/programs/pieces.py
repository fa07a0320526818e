"""Parts between two marks and in a span, and what each part calls, counted by the functions themselves: in threads, a child of fork,
generators, asyncio tasks, exceptions. Prints a JSON list: a count of calls by function for each part."""
import collections
import json
import os
import sys
import threading

import evprof

parts = []
kept = []


def count(name):
    parts[-1][name] += 1


def leaf(n):
    count("leaf")
    return n


def node(n):
    count("node")
    return leaf(n) if n == 0 else node(n - 1) + node(n - 1)


def items(n):
    count("items")
    for i in range(n):
        yield leaf(i)


def raises(n):
    count("raises")
    if n:
        raises(n - 1)
    raise KeyError(n)


async def step(n):
    import asyncio
    count("step")
    for _ in range(n):
        await asyncio.sleep(0)
        leaf(n)


async def steps():
    import asyncio
    count("steps")
    await asyncio.gather(*[step(n) for n in range(5)])


def plain():
    count("plain")
    node(5)


def threads():
    count("threads")
    running = [threading.Thread(target=node, args=(0,)) for _ in range(4)]
    for thread in running:
        thread.start()
        thread.join()  # the counters are not atomic


def child():
    count("child")
    pid = os.fork()
    if not pid:
        node(3)
        os._exit(0)
    os.waitpid(pid, 0)
    parts[-1]["node"] += 15
    parts[-1]["leaf"] += 8


def generators():
    count("generators")
    sorted(items(9), key=leaf)


def exceptions():
    count("exceptions")
    try:
        raises(3)
    except KeyError:
        pass


def tasks():
    import asyncio
    count("tasks")
    asyncio.new_event_loop().run_until_complete(steps())


def memory():
    count("memory")
    kept.append(bytearray(100000))
    del kept[:-1]


def main():
    for number, part in enumerate([plain, memory, threads, child, generators, exceptions, tasks, memory, plain, memory]):
        parts.append(collections.Counter())
        evprof.mark("from", number=number)
        with evprof.span("part", number=number):
            part()
        evprof.mark("to")
    json.dump(parts, sys.stdout)


main()
