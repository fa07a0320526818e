"""Has evprof stack print its suspended tasks: python suspended.py EVPROF [collected].

The oracle is Python itself: for each task of asyncio.all_tasks() the chain of cr_await (ag_await, gi_yieldfrom), with the line of each
frame. A coroutine that no task has stands for one of another loop. With "collected" the garbage collector runs meanwhile, of
many looks, and each that says it is complete has to be. Ends with status 1 and a line for each difference.
"""
import asyncio
import ctypes
import gc
import json
import os
import subprocess
import sys
import threading
import time
import types

EVPROF = sys.argv[1]
ctypes.PyDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too


class Waiter:
    def __await__(self):
        yield from asyncio.get_event_loop().create_future()


async def deep(depth):
    if depth:
        return await deep(depth - 1)
    await Waiter()


async def generates():
    yield 1
    await asyncio.sleep(1000)


async def iterates():
    async for _ in generates():
        pass


@types.coroutine
def by_decorator():
    yield from asyncio.sleep(1000).__await__()


async def decorated():
    await by_decorator()


async def locked(lock):
    async with lock:
        pass


class Own:
    async def method(self):
        await asyncio.wait_for(deep(1), 1000)


@types.coroutine
def switch():
    yield "another loop"


async def of_another_loop():
    await switch()


def awaited(thing):
    """The generator that it awaits; None: another thing."""
    for name in "cr_await", "ag_await", "gi_yieldfrom":
        if hasattr(thing, name):
            return getattr(thing, name)
    if type(thing).__name__ in ("coroutine_wrapper", "async_generator_asend"):
        return [one for one in gc.get_referents(thing) if isinstance(one, (types.CoroutineType, types.AsyncGeneratorType))][0]
    return None


def chain(thing):
    """The innermost first."""
    frames = []
    while thing is not None:
        frame = [getattr(thing, name) for name in ("cr_frame", "ag_frame", "gi_frame") if hasattr(thing, name)]
        if frame and frame[0]:
            frames.insert(0, [frame[0].f_code.co_filename, frame[0].f_lineno, frame[0].f_code.co_name])
        thing = awaited(thing)
    return frames


def look():
    text = subprocess.check_output([EVPROF, "stack", "--json", str(os.getpid())])
    (process,) = json.loads(text.decode())["processes"]
    return process


def compare(wanted, process):
    found = sorted([task["name"], [[frame["file"], frame["line"], frame["function"]] for frame in task["frames"]]]
                   for task in process["tasks"])
    differences = ["not there: %s" % one for one in wanted if one not in found] + ["too much: %s" % one for one in found if one not in wanted]
    if max([len(one[1]) for one in found] + [0]) < 42:
        differences.append("the longest is too short")
    return differences


def collects():
    many = [[number] for number in range(30000)]
    while many:
        gc.collect()
        time.sleep(0.005)


def look_while_collected(wanted):
    threading.Thread(target=collects, daemon=True).start()
    whole = [process for process in (look() for _ in range(40)) if process["tasks_complete"]]
    differences = [difference for process in whole for difference in compare(wanted, process)]
    return differences[:9] if whole else ["no look was complete"]


async def main():
    lock = asyncio.Lock()
    await lock.acquire()
    works = deep(0), deep(40), iterates(), decorated(), locked(lock), Own().method(), asyncio.gather(deep(0), asyncio.sleep(1000))
    kept = [asyncio.ensure_future(work) for work in works]
    kept[1].set_name("n\u00e4med \u4e2d\U0001f40d")
    other = of_another_loop()
    other.send(None)
    for _ in range(5):
        await asyncio.sleep(0)
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    wanted = sorted([task.get_name(), chain(task.get_coro())] for task in tasks) + [["", chain(other)]]
    if sys.argv[2:] == ["collected"]:
        differences = look_while_collected(wanted)
    else:
        process = look()
        differences = compare(wanted, process)
        if len(wanted) < 9 or not process["tasks_complete"]:
            differences.append("%d wanted, complete: %s" % (len(wanted), process["tasks_complete"]))
    print(ascii("\n".join(differences)) if differences else "same")
    sys.stdout.flush()
    os._exit(1 if differences else 0)


asyncio.new_event_loop().run_until_complete(main())
