"""Sleeps, calls leaf() that often, counted in the file "oracle", and sleeps again: SECONDS CALLS SECONDS."""
import os
import sys
import time

import counting


def leaf():
    pass


before, calls, after = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
words = counting.open_oracle()
words[0] = os.getpid()
time.sleep(before)
words[2] = calls
for i in range(calls):
    leaf()
words[3] = calls
time.sleep(after)
