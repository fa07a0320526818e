"""speed_probe.py CPU - writes how fast processor CPU is, every few milliseconds: work a second, a double of this machine, to stdout.

Started by lib/speed.py. It does a fixed piece of an interpreter's usual work and reads its own CPU time. The same piece runs
unmeasured first: what sleep and the other process have displaced from the caches is not the machine's speed.
Ends when nobody reads any more.
"""
import os
import struct
import sys
import time

PAUSE_S = 0.005
STEPS = 1000
cpu_time = time.thread_time


def work():
    total, kept = 0, {}
    for step in range(STEPS):
        total += step * step
        kept[step & 63] = total, step
    return kept


os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    time.sleep(PAUSE_S)
    work()
    begin = cpu_time()
    work()
    work()
    sample = struct.pack("d", 1 / (cpu_time() - begin))
    try:
        os.write(1, sample)
    except BrokenPipeError:
        break
