"""Threads of which every event is known: `accounting.py THREADS TIMES`. Writes their ids to the file "threads".

Each thread makes a chain of calls, worker > a > b > c > d, TIMES times, with one C call and every tenth time an exception;
nothing depends on the moment at which other threads run.
"""
import _thread
import os
import sys
import threading
import time


def d(i):
    if i % 10 == 0:
        raise ValueError
    return ord("x")


def c(i):
    try:
        d(i)
    except ValueError:
        ord("y")


def b(i):
    c(i)


def a(i):
    b(i)


def worker(ids, number, times, ended):
    ids[number] = threading.get_native_id()
    for i in range(times):
        a(i)
    ended.release()


def main(threads, times):
    ids = [0] * threads
    locks = [_thread.allocate_lock() for _ in range(threads)]
    for number, lock in enumerate(locks):
        lock.acquire()
        _thread.start_new_thread(worker, (ids, number, times, lock))
    for lock in locks:
        lock.acquire()
    with open("threads", "w") as file:
        file.write(" ".join(str(tid) for tid in ids))
    while any(os.path.exists("/proc/self/task/%d" % tid) for tid in ids):
        time.sleep(0.001)
    print("accounted", threads, times)


if __name__ == "__main__":
    with open("oracle", "r+b") as file:
        file.write(os.getpid().to_bytes(8, "little"))
    main(int(sys.argv[1]), int(sys.argv[2]))
