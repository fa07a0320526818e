"""Allocates without end until the file END exists: `pausing.py END`. Prints its longest pause in seconds."""
import os
import sys
import time

longest, last = 0, time.monotonic()
while not os.path.exists(sys.argv[1]):
    kept = [bytes(600) for _ in range(200)]
    time.sleep(0.01)
    now = time.monotonic()
    longest, last = max(longest, now - last), now
print("longest", longest)
