"""Keeps blocks by itself, and by the import of a module that it writes; marks, tasks and a thread, for evprof memory."""
import asyncio
import ctypes
import os
import sys

kept = []


def keep(size):
    kept.append(bytes(size))


def mark(name):
    ctypes.CDLL(None).evprof_mark(name)


async def work(size):
    keep(size)


async def both():
    await asyncio.gather(work(300000), work(500000))


with open("imported_here.py", "w", encoding="ascii") as module:
    module.write("kept = bytes(2000000)\n")
sys.path.insert(0, os.getcwd())
import imported_here  # noqa: E402

keep(1000000)
mark(b"begin")
keep(40000)
mark(b"end")
loop = asyncio.new_event_loop()
loop.run_until_complete(both())
loop.close()
