"""Three children that call leaf() for three seconds, three more that are forked after one and a half, and their parent, which
sleeps until all have ended; each counts its calls in the file "oracle"."""
import os
import time

import counting


def child(words, entry, until):
    pid = os.fork()
    if pid == 0:
        while time.time() < until:
            counting.call(words, entry, 50, until)
            time.sleep(0.01)
        os._exit(0)
    return pid


words = counting.open_oracle()
until = time.time() + 3
pids = [child(words, entry, until) for entry in range(3)]
words[0] = os.getpid()
time.sleep(1.5)
pids += [child(words, entry, until) for entry in range(3, 6)]
for pid in pids:
    os.waitpid(pid, 0)
print("all have ended")
