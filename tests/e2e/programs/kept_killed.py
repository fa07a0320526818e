"""A child calls batch_0(), batch_1(), ... for two seconds and is killed; another one is ended by SIGTERM, as by its master. The parent does
something else for two more, and takes their ends once there is a file kept-PID-killed.evp of the first. Prints that one's pid, its number
of batches, and the pid of the other.
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
ordered = os.fork()
if ordered == 0:
    leaf()
    signal.pause()
child = os.fork()
if child == 0:
    over, number = time.monotonic() + 2, 0
    while time.monotonic() < over:
        batch(number)
        number += 1
    os.kill(ordered, signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGKILL)
os.close(ends[1])
count = 0
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
while count % 4096 == 0:
    count += len(os.read(ends[0], 4096))
over, given_up = time.monotonic() + 2, time.monotonic() + 60
while time.monotonic() < over or (not os.path.exists("kept-%d-killed.evp" % child) and time.monotonic() < given_up):
    leaf()
    time.sleep(0.001)
os.waitpid(child, 0)
os.waitpid(ordered, 0)
print(child, count, ordered)
