"""Does what it counts itself, for evprof push: pushed.py COUNTED [READY GATE]. COUNTED gets the counts as JSON. With two pipes (see
gated.py) it waits at the gate after a first part and after the second, and writes the counts before the last wait.
"""
import json
import os
import sys
import threading
import time

counted = {"leaf": 0, "fib": 0, "sleeps": 0, "slept_ns": 0, "sleep_ns": 0, "kept": 0, "kept_bytes": 0}
lock = threading.Lock()
kept = []
HEAD = sys.getsizeof(b"")


def leaf():
    pass


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls_of_fib(n):
    return 1 if n < 2 else 1 + calls_of_fib(n - 1) + calls_of_fib(n - 2)


def keep(count, size):
    for _ in range(count):
        kept.append(bytes(size))


def sleep(seconds):
    begin = time.perf_counter()
    time.sleep(seconds)
    return int((time.perf_counter() - begin) * 1e9)


def part(number):
    for _ in range(100 * number):
        leaf()
    fib(8)
    begin = time.perf_counter()
    slept = sleep(0.05)
    sleep_ns = int((time.perf_counter() - begin) * 1e9)
    with lock:
        counted["leaf"] += 100 * number
        counted["fib"] += calls_of_fib(8)
        counted["sleeps"] += 1
        counted["slept_ns"] += slept  # time.sleep(), and more where the thread waits for a processor after it
        counted["sleep_ns"] += sleep_ns  # sleep(), likewise


def round_of_parts():
    threads = [threading.Thread(target=part, args=(i + 1,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    part(7)
    keep(40, 1000)
    counted["kept"] += 40
    counted["kept_bytes"] += 40 * (1000 + HEAD)


def write():
    with open(sys.argv[1] + ".new", "w") as out:
        json.dump(counted, out)
    os.rename(sys.argv[1] + ".new", sys.argv[1])


pipes = [os.open(path, os.O_RDWR) for path in sys.argv[2:]]
for _ in range(2):
    round_of_parts()
    write()
    if pipes:
        os.write(pipes[0], b".")
        os.read(pipes[1], 1)
