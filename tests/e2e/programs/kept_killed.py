"""A child calls batch_0(), batch_1(), ... for two seconds and is killed; the parent does something else for two more. Prints the child's
pid and its number of batches.
"""
import os
import signal
import time


def leaf():
    pass


def batch(number):
    names = {"leaf": leaf}
    exec("def batch_%d():\n    leaf()\n" % number, names)
    names["batch_%d" % number]()
    os.write(ends[1], b".")
    time.sleep(0.005)


ends = os.pipe()
child = os.fork()
if child == 0:
    over, number = time.monotonic() + 2, 0
    while time.monotonic() < over:
        batch(number)
        number += 1
    os.kill(os.getpid(), signal.SIGKILL)
os.close(ends[1])
count = 0
while True:
    got = len(os.read(ends[0], 4096))
    if not got:
        break
    count += got
os.waitpid(child, 0)
over = time.monotonic() + 2
while time.monotonic() < over:
    leaf()
    time.sleep(0.001)
print(child, count)
