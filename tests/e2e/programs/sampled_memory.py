"""Allocates known totals by function, for the estimates of sampled memory. `threads`: another thread frees what is kept.
`fork`: a child frees its copies."""
import os
import sys
import threading
from itertools import repeat

kept = []


def small():
    for _ in repeat(None, 400000):
        kept.append(bytes(467))


def middle():
    for _ in repeat(None, 3000):
        kept.append(bytes(99967))
        kept.pop()


def large():
    for _ in range(8):
        kept.append(bytes(9999967))


def grow():
    block = bytearray(1000)
    for size in range(1000, 2000000, 4000):
        block.extend(bytes(4000))
    kept.append(block)


def free_all():
    del kept[:]


small()
middle()
if sys.argv[1:] == ["fork"]:
    child = os.fork()
    if not child:
        free_all()
        os._exit(0)
    os.waitpid(child, 0)
if sys.argv[1:] == ["threads"]:
    thread = threading.Thread(target=free_all)
    thread.start()
    thread.join()
large()
grow()
