"""Calls leaf() about a thousand times a second for some seconds (its argument), counting in the file "oracle"; or until
the test says so there. A second argument is the pause between two calls in seconds."""
import os
import sys
import time

import counting


def leaf():
    pass


words = counting.open_oracle()
words[0] = os.getpid()
end = time.time() + float(sys.argv[1])
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.001
n = 0
while time.time() < end and not words[1]:
    n += 1
    words[2] = n
    leaf()
    words[3] = n
    time.sleep(pause)
print("steady done")
