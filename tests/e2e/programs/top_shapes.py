"""What evprof top is to show: between the first gate and the second fib(10), a thousand leaf(), a thread that sleeps and notes how long,
and seven tasks. Two pipes are named by the arguments (see gated.py), and a file for what it counted.
"""
import asyncio
import json
import os
import sys
import threading
import time

READY = os.open(sys.argv[1], os.O_RDWR)
GATE = os.open(sys.argv[2], os.O_RDWR)
counted = {"fib": 0, "leaf": 0, "steps": 0, "slept_ns": 0, "tasks": 7}


def fib(n):
    counted["fib"] += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def leaf():
    counted["leaf"] += 1


def sleeper():
    for _ in range(20):
        start = time.perf_counter_ns() if hasattr(time, "perf_counter_ns") else int(time.perf_counter() * 1e9)
        time.sleep(0.01)
        end = time.perf_counter_ns() if hasattr(time, "perf_counter_ns") else int(time.perf_counter() * 1e9)
        counted["slept_ns"] += end - start


async def steps():
    for _ in range(3):
        counted["steps"] += 1
        await asyncio.sleep(0)


async def tasks():
    await asyncio.gather(*[steps() for _ in range(counted["tasks"] - 1)])


def outer():
    thread = threading.Thread(target=sleeper, name="sleeper")
    thread.start()
    fib(10)
    for _ in range(1000):
        leaf()
    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(tasks())
    thread.join()


def wait():
    os.write(READY, b".")
    os.read(GATE, 1)


wait()
outer()
with open(sys.argv[3], "w") as file:
    json.dump(counted, file)
wait()
