"""Calls leaf() about a thousand times a second for so many seconds (its argument), counting in the file "oracle"; or until
the test says so there."""
import os
import sys
import time

import counting


def leaf():
    pass


words = counting.open_oracle()
words[0] = os.getpid()
end = time.time() + float(sys.argv[1])
n = 0
while time.time() < end and not words[1]:
    n += 1
    words[2] = n
    leaf()
    words[3] = n
    time.sleep(0.001)
print("steady done")
