"""A worker that is switched, copied and attached to from outside: python under_orders.py LOG SECONDS SEED [END].

Two threads call request(), which calls step() three times, which calls leaf() five times. Meanwhile it forks children, executes itself
again, and ends in one of several ways. Each process adds a line of JSON to LOG at its end: its pid, how many requests it began in this
image, its descriptors and threads at the beginning and at the end. END is the time (time.monotonic()) that an earlier image has set.
"""
import json
import os
import random
import signal
import sys
import threading
import time

LOG, SEED = sys.argv[1], int(sys.argv[3])
END = float(sys.argv[4]) if len(sys.argv) > 4 else time.monotonic() + float(sys.argv[2])
counts = {}


def leaf():
    pass


def step():
    for _ in range(5):
        leaf()


def request():
    for _ in range(3):
        step()


def serve(counted, until):
    while not until():
        counts[counted] += 1
        request()
        time.sleep(0.02)


def standing():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def note(before):
    end = time.monotonic() + 5
    while standing() != before and time.monotonic() < end:  # the kernel may have a joined thread for a moment
        time.sleep(0.01)
    line = json.dumps({"pid": os.getpid(), "requests": sum(counts.values()), "before": before, "after": standing()})
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (line + "\n").encode())
    os.close(file)


def in_child():
    """A child has one thread, and counts its own."""
    counts.clear()
    counts["main"] = 0
    before = standing()
    left = [20]

    def over():
        left[0] -= 1
        return left[0] < 0
    serve("main", over)
    note(before)
    os._exit(0)


def image():
    """One image of the process. Returns how it ends."""
    chance = random.Random(SEED + os.getpid() + int(1000 * time.monotonic()))
    part = min(END, time.monotonic() + chance.uniform(1, 6))
    over = threading.Event()
    thread = threading.Thread(target=serve, args=("thread", over.is_set))
    counts.update({"main": 0, "thread": 0})
    before = standing()
    thread.start()
    children = []
    while time.monotonic() < part:
        soon = min(part, time.monotonic() + chance.uniform(0.1, 1))
        serve("main", lambda: time.monotonic() >= soon)
        if chance.random() < 0.2:
            child = os.fork()
            if child == 0:
                in_child()
            children.append(child)
    over.set()
    thread.join()
    for child in children:
        os.waitpid(child, 0)
    note(before)
    return chance.choice(["exec"] * 3 + ["exit", "_exit", "kill", "raise"]) if part < END else "exit"


def main():
    how = image()
    if how == "exec":
        os.execv(sys.executable, [sys.executable] + sys.argv[:4] + [str(END)])
    elif how == "_exit":
        os._exit(0)
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "raise":
        raise SystemExit(3)


main()
