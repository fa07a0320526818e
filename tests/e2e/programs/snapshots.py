"""evprof.snapshot() as the first thing that children of a fork do, one after the other, and by four threads at once. Prints a line for each:
its path, or None.
"""
import os
import sys
import threading

import evprof


def take():
    sys.stdout.write("%s\n" % evprof.snapshot())


for _ in range(5):
    pid = os.fork()
    if not pid:
        take()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
threads = [threading.Thread(target=take) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
