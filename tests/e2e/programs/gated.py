"""A thousand calls of leaf() between the first gate and the second: a byte to the first pipe says that it waits at the second.

The pipes are named by the arguments. Only calls of Python functions are recorded (EVPROF_EVENTS=call), so nothing that is
done at a gate is an event.
"""
import os
import sys

READY = os.open(sys.argv[1], os.O_RDWR)
GATE = os.open(sys.argv[2], os.O_RDWR)


def leaf():
    pass


for calls in (0, 1000, 0):
    for _ in range(calls):
        leaf()
    os.write(READY, b".")
    os.read(GATE, 1)
