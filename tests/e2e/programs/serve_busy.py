"""Calls outer() until there is a byte in a pipe, and counts what it called: for evprof serve to show. Waits before and after. READY and GATE are
pipes (see gated.py), COUNTED a file for what it counted.
"""
import json
import os
import select
import sys
import threading
import time

READY = os.open(sys.argv[1], os.O_RDWR)
GATE = os.open(sys.argv[2], os.O_RDWR)
counted = {"leaf": 0, "fib": 0, "outer": 0}


def fib(n):
    counted["fib"] += 1
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def leaf():
    counted["leaf"] += 1


def outer():
    counted["outer"] += 1
    fib(7)
    for _ in range(100):
        leaf()


def sleeper(end):
    while not end.wait(0.05):
        pass


def wait():
    os.write(READY, b".")
    os.read(GATE, 1)


wait()
end = threading.Event()
thread = threading.Thread(target=sleeper, args=(end,), name="sleeper")
thread.start()
while not select.select([GATE], [], [], 0.01)[0]:
    outer()
os.read(GATE, 1)
end.set()
thread.join()
with open(sys.argv[3], "w") as file:
    json.dump(counted, file)
wait()
