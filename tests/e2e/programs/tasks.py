"""asyncio tasks with a known number of steps; prints what the program itself counts: {"tasks": {name: [steps, ...]}}.

The oracle drives nothing: it is a coroutine's stand-in that counts how often it is resumed, around the real one.
"""
import asyncio
import json
import sys
import types

steps = {}


class Counted:
    """Awaits a coroutine for a task and counts the task's steps: each send() or throw() of the event loop is one."""

    def __init__(self, coroutine):
        self.coroutine = coroutine
        self.counts = steps.setdefault(coroutine.__name__, [])
        self.number = len(self.counts)
        self.counts.append(0)

    def send(self, value):
        self.counts[self.number] += 1
        return self.coroutine.send(value)

    def throw(self, *exception):
        self.counts[self.number] += 1
        return self.coroutine.throw(*exception)

    def close(self):
        return self.coroutine.close()

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)


async def leaf(times):
    for _ in range(times):
        await asyncio.sleep(0)


async def ticks(times):
    for i in range(times):
        await leaf(1)
        yield i


class Waits:
    """A plain generator between two coroutines."""

    def __await__(self):
        yield from leaf(2).__await__()


@types.coroutine
def old_style():
    yield
    yield


async def short(number):
    await leaf(number)


async def long(number):
    async for _ in ticks(number):
        await Waits()
    await old_style()


async def cancelled():
    await asyncio.sleep(1000)


async def fails():
    await leaf(3)
    raise ValueError


def factory(loop, coroutine, **more):
    return asyncio.Task(Counted(coroutine), loop=loop, **more)


async def session():
    loop = asyncio.get_running_loop() if sys.version_info >= (3, 7) else asyncio.get_event_loop()
    loop.set_task_factory(factory)
    tasks = [loop.create_task(short(number)) for number in range(5)]
    tasks += [loop.create_task(long(number)) for number in range(1, 4)]
    tasks += [loop.create_task(cancelled()), loop.create_task(fails())]
    await leaf(4)
    tasks[-2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


loop = asyncio.new_event_loop()
loop.run_until_complete(session())
loop.close()
print(json.dumps(steps))
