"""Much of one thing at once: `storms.py KIND N`. What was called how often is known; outputs do not depend on time."""
import itertools
import os
import signal
import sys
import threading
import time

import known


def in_child(n=20):
    known.work(n)


def wait_for(pids):
    ends = sorted(os.waitpid(pid, 0)[1] for pid in pids)
    print("ends", len(ends), ends[0], ends[-1])


def children(count):
    """All are alive at once, and none has anything to do before the last is there."""
    ready, go = os.pipe(), os.pipe()
    pids = []
    for _ in range(count):
        pids.append(os.fork())
        if pids[-1] == 0:
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            in_child()
            os._exit(0)
    came = 0
    while came < count:
        came += len(os.read(ready[0], 4096))
    os.write(go[1], b"x" * count)
    wait_for(pids)


def orphans(count):
    """Their parent is gone before they begin, and they are slow to begin."""
    if os.fork() == 0:
        for _ in range(count):
            if os.fork() == 0:
                os.setsid()
                time.sleep(0.3)
                in_child()
                os._exit(0)
        os._exit(0)
    os.wait()


def live_threads(count):
    barrier = threading.Barrier(count + 1)

    def live():
        barrier.wait()
        known.work(100)
        barrier.wait()

    threads = [threading.Thread(target=live) for _ in range(count)]
    for thread in threads:
        thread.start()
    barrier.wait()
    barrier.wait()
    shared = 0
    mapping = ""
    with open("/proc/self/smaps") as file:
        for line in file:
            if "-" in line.split()[0]:
                mapping = line
            elif line.startswith("Rss:") and "memfd:evprof" in mapping:
                shared += int(line.split()[1])
    with open("shared_kib", "w") as file:
        file.write(str(shared))
    for thread in threads:
        thread.join()


def deep(n):
    if n:
        deep(n - 1)


def recursion(depth):
    sys.setrecursionlimit(depth + 1000)
    for _ in range(3):
        deep(depth)
    known.work(1000)


STEPS = 7

for _n in range(STEPS):  # step_n calls step_(n + 1) % STEPS, and rung_n when it comes back
    exec("def rung_%d(n):\n    if n %% 500 == 0:\n        time.sleep(0.02)\n\n\n"
         "def step_%d(n):\n    if n:\n        step_%d(n - 1)\n    rung_%d(n)\n"
         % (_n, _n, (_n + 1) % STEPS, _n))


def ladder(depth):
    """Down at full speed, up slowly. Whose turn it is at which depth is known: a wrong stack shows as a wrong caller, or
    as the end of a call that has none."""
    sys.setrecursionlimit(depth + 1000)
    step_0(depth)
    known.work(1000)


handled = itertools.count()


def handler(number, frame):
    next(handled)  # in one piece: a handler may interrupt a handler
    known.leaf()


def signals(milliseconds):
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.time() + milliseconds / 1000
    calls = 0
    while time.time() < end:
        known.recurse(3)
        calls += 1
    signal.setitimer(signal.ITIMER_REAL, 0, 0)
    with open("handled", "w") as file:
        file.write("%d %d" % (next(handled), calls))


def forks_with_threads(count):
    stop = []

    def busy():
        while not stop:
            known.recurse(5)
            bytearray(100000)

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            in_child()
            os._exit(0)
        pids.append(pid)
    stop.append(1)
    for thread in threads:
        thread.join()
    wait_for(pids)


def same_pid(count):
    """In a namespace of pids: each child gets the pid of the one before."""
    first = 0
    same = 0
    for _ in range(count):
        if first:
            with open("/proc/sys/kernel/ns_last_pid", "w") as file:
                file.write(str(first - 1))
        pid = os.fork()
        if pid == 0:
            in_child()
            os._exit(0)
        first = first or pid
        same += pid == first
        os.waitpid(pid, 0)
    with open("same", "w") as file:
        file.write(str(same))


def chrooted(count):
    os.mkdir("root")
    os.chroot("root")
    os.chdir("/")
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            in_child()
            os._exit(0)
        wait_for([pid])


def unprivileged(count):
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    in_child()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            in_child()
            os._exit(0)
        wait_for([pid])


def environment_cleared(count):
    os.environ.clear()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            in_child()
            os._exit(0)
        wait_for([pid])


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]))
    print("done", sys.argv[1:])
