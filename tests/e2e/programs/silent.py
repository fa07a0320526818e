"""Kills its collector (the argument is its pid) with two silences of 0.6 s among what it has not read, and calls on until
the test says stop in the file "oracle". Then it prints when each of its functions began, in ns of the monotonic clock."""
import os
import signal
import sys
import time

import counting


def early():
    return time.monotonic_ns()


def late():
    return time.monotonic_ns()


def last():
    return time.monotonic_ns()


words = counting.open_oracle()
collector = int(sys.argv[1])
for _ in range(100):
    counting.leaf()
    time.sleep(0.01)
os.kill(collector, signal.SIGSTOP)
moments = [early()]
time.sleep(0.6)
moments.append(late())
time.sleep(0.6)
os.kill(collector, signal.SIGKILL)
words[0] = os.getpid()
while not words[1]:
    counting.leaf()
    time.sleep(0.01)
moments.append(last())
print("began", *moments)
