"""Counts its own calls, tasks and allocations, and prints them as JSON. For test_table.c."""
import asyncio
import collections
import json

counts = collections.Counter()


def leaf(n):
    counts["leaf"] += 1
    return n


def branch(n):
    counts["branch"] += 1
    for i in range(n):
        counts["branch->leaf"] += 1
        leaf(i)


def fails():
    counts["fails"] += 1
    raise ValueError("wanted")


def recursive(n):
    counts["recursive"] += 1
    if n:
        recursive(n - 1)


def allocates(n):
    counts["allocates"] += 1
    counts["bytes"] += n
    return bytearray(n)


async def worker(n):
    for _ in range(n):
        await asyncio.sleep(0)


async def tasks():
    created = []
    for n in (1, 3, 7):
        task = asyncio.ensure_future(worker(n))
        if hasattr(task, "set_name"):
            task.set_name("worker of %d" % n)
        counts["steps of %d" % n] = n + 1
        created.append(task)
    for task in created:
        await task


for n in range(20):
    branch(n)
    try:
        fails()
    except ValueError:
        pass
recursive(30)
for n in range(1, 6):
    allocates(100000 * n)
loop = asyncio.new_event_loop()
loop.run_until_complete(tasks())
loop.close()
print(json.dumps(counts))
