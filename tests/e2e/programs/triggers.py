"""Calls view_0(), view_1(), ..., this often (second argument); each calls step() seven times. The calls with a
number of the third argument (with commas) sleep for 0.7 s. Each call adds its number, end (time.time()) and duration, by
the program's own stopwatch, to the file of the first argument. With "loop" as the fourth argument an event loop calls
them; with "memory", 64 MiB are allocated in the call that would sleep, and freed in the next one. With a fifth argument, a
glob, it runs until such a file is there, half a minute at most, and prints when (time.time()).
"""
import asyncio
import glob
import sys
import time

STAMPS = open(sys.argv[1], "w", buffering=1)
COUNT = int(sys.argv[2])
SLOW = [int(number) for number in sys.argv[3].split(",")]
HOW = sys.argv[4] if len(sys.argv) > 4 else "call"
kept = []


def step():
    pass


def work(number):
    for _ in range(7):
        step()
    if kept:
        kept.clear()
        time.sleep(1.5)
    if number in SLOW and HOW == "memory":
        kept.append(bytearray(b"x") * (64 << 20))
        time.sleep(1.5)
    elif number in SLOW:
        time.sleep(0.7)


def view(number):
    names = {"work": work}
    exec("def view_%d():\n    work(%d)\n" % (number, number), names)
    begin = time.monotonic()
    names["view_%d" % number]()
    STAMPS.write("%d %.6f %.6f\n" % (number, time.time(), time.monotonic() - begin))


def main():
    for number in range(COUNT):
        view(number)
        time.sleep(0.03)


async def in_loop():
    loop = asyncio.get_event_loop()
    for number in range(COUNT):
        if number % 2:
            view(number)  # in the step of a task
        else:
            loop.call_soon(view, number)
        await asyncio.sleep(0.03)


if HOW == "loop":
    asyncio.run(in_loop())
else:
    main()
if len(sys.argv) > 5:
    ends = time.monotonic() + 30
    while not glob.glob(sys.argv[5]) and time.monotonic() < ends:
        time.sleep(0.02)
    print("%.6f" % time.time())
