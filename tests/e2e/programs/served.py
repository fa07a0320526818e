"""Serves until the first byte of a file is 9: python served.py FILE. Until then the byte names the leaf that it calls.

Prints how often it has called each, as JSON. In its loop no audit event is raised.
"""
import json
import mmap
import os
import sys
import time


def leaf_0():
    pass


def leaf_1():
    pass


def leaf_2():
    pass


def serve():
    fd = os.open(sys.argv[1], os.O_RDWR)
    phase = mmap.mmap(fd, 2)
    leaves, counts = (leaf_0, leaf_1, leaf_2), [0, 0, 0]
    phase[1] = 1
    while phase[0] != 9:
        number = phase[0]
        leaves[number]()
        counts[number] += 1
        phase[1] = 2 + number
        time.sleep(0.001)
    print(json.dumps(counts))


serve()
