"""Calls batch_0(), batch_1(), ...: each calls leaf() seven times, and is made just before. A thread waits all the time,
others live for a moment. Each batch adds its beginning (time.monotonic(), in seconds) to the file of the first argument.
Ends once the file of the second argument is there, or after that many seconds of the third. Prints how long the thread
has waited, and the program has run.
"""
import os
import sys
import threading
import time

STAMPS = open(sys.argv[1], "w", buffering=1)
BEGAN = time.monotonic()
ENDS = BEGAN + float(sys.argv[3])
over = threading.Event()
waited = []


def leaf():
    pass


def seven():
    for _ in range(7):
        leaf()


def waiter():
    began = time.monotonic()
    over.wait()
    waited.append(time.monotonic() - began)


def moment():
    leaf_of_thread()


def leaf_of_thread():
    pass


def fill():
    """Bytes for the trace, so that chunks are full."""
    for i in range(2000):
        max(i, 3)


def batch(number):
    names = {"seven": seven}
    exec("def batch_%d():\n    seven()\n" % number, names)
    STAMPS.write("%.6f\n" % time.monotonic())
    names["batch_%d" % number]()
    fill()


def main():
    thread = threading.Thread(target=waiter)
    thread.start()
    number = 0
    while time.monotonic() < ENDS and not os.path.exists(sys.argv[2]):
        batch(number)
        number += 1
        if number % 10 == 0:
            short = threading.Thread(target=moment)
            short.start()
            short.join()
        time.sleep(0.002)
    over.set()
    thread.join()
    print("waited %.6f of %.6f s" % (waited[0], time.monotonic() - BEGAN))


main()
