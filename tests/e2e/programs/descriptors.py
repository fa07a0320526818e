"""Prints which descriptors are open, at the start, after work, in a thread, and in children: they must be those of a
bare run."""
import os
import sys
import threading
import time

import known


def kind(fd):
    target = os.readlink("/proc/self/fd/%d" % fd)
    return target.split(":")[0] if ":" in target else target


def descriptors(where):
    names = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    shown = []
    for fd in names:
        try:
            shown.append("%d=%s" % (fd, kind(fd)))
        except OSError:  # that of listdir itself
            pass
    print(where, " ".join(shown))
    sys.stdout.flush()


def join(thread):
    """Also waits for what comes after Python's part of the end: a thread that ends by pthread_exit() opens libgcc_s.so,
    and a fork at that moment gives its child the descriptor."""
    thread.join()
    while len(os.listdir("/proc/self/task")) > 1:
        time.sleep(0.001)


def main():
    descriptors("start")
    known.everything()
    print("next", os.dup(0))
    descriptors("work")
    thread = threading.Thread(target=descriptors, args=("thread",))
    thread.start()
    join(thread)
    pid = os.fork()
    if pid == 0:
        known.everything()
        descriptors("child")
        os._exit(0)
    os.waitpid(pid, 0)
    descriptors("end")


if __name__ == "__main__":
    main()
