"""Threads of which every event is known: `accounting.py THREADS TIMES [in_turn]`. Writes their ids to the file "threads".
In turn, each begins when the one before has ended; "seconds" has how long they took, and for how much of that nobody ran
or was ready to.

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


def ran_or_ready():
    file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    ran, ready, _ = os.read(file, 100).split()
    os.close(file)
    return (int(ran) + int(ready)) / 1e9


def worker(ids, busy, number, times, ended):
    ids[number] = threading.get_native_id()
    for i in range(times):
        a(i)
    busy[number] = ran_or_ready()
    ended.release()


def main(threads, times, in_turn):
    ids, busy = [0] * threads, [0] * threads
    begin, main_busy = time.monotonic(), ran_or_ready()
    locks = [_thread.allocate_lock() for _ in range(threads)]
    for number, lock in enumerate(locks):
        lock.acquire()
        _thread.start_new_thread(worker, (ids, busy, number, times, lock))
        if in_turn:
            lock.acquire()
            lock.release()
    for lock in locks:
        lock.acquire()
    seconds = time.monotonic() - begin
    with open("seconds", "w") as file:
        file.write("%f %f" % (seconds, seconds - sum(busy) - (ran_or_ready() - main_busy)))
    with open("threads", "w") as file:
        file.write(" ".join(str(tid) for tid in ids))
    while any(os.path.exists("/proc/self/task/%d" % tid) for tid in ids):
        time.sleep(0.001)
    print("accounted", threads, times)


if __name__ == "__main__":
    with open("oracle", "r+b") as file:
        file.write(os.getpid().to_bytes(8, "little"))
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["in_turn"])
