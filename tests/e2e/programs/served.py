"""Serves until the first byte of a file is 9: python served.py FILE. Until then the byte names the leaf that two threads call.

Each call goes with a block of BLOCK bytes and that number, which is freed at once. The bytes behind the first are the leaves that the
threads have called last. Prints how often they have called each, as JSON. In its loops no audit event is raised.
"""
import json
import mmap
import os
import sys
import threading
import time

BLOCK = 100000


def leaf_0():
    pass


def leaf_1():
    pass


def leaf_2():
    pass


def serve(phase, place, counts):
    leaves = leaf_0, leaf_1, leaf_2
    number = phase[0]
    while number != 9:
        leaves[number]()
        bytes(BLOCK + number)
        counts[number] += 1
        phase[place] = 2 + number
        time.sleep(0.001)
        number = phase[0]


def main():
    phase = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 3)
    here, there = [0, 0, 0], [0, 0, 0]
    thread = threading.Thread(target=serve, args=(phase, 2, there))
    thread.start()
    serve(phase, 1, here)
    thread.join()
    print(json.dumps([one + other for one, other in zip(here, there)]))


main()
