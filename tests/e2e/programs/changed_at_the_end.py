"""Has its events changed when Python has ended but for its last object: python changed_at_the_end.py EVPROF.

The object is the last one that sys loses; sys has no functions by then. Prints whether that is so, and the status of evprof start.
"""
import os
import sys
import time


class Last:
    def __del__(self, spawn=os.posix_spawn, wait=os.waitpid, sleep=time.sleep, audit=sys.audit, write=os.write, module=sys,
                words=[sys.argv[1], "start", "--events", "call,mem", str(os.getpid())],
                environment={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}):
        write(1, b"no functions, " if module.exc_info is None else b"functions, ")
        child = spawn(words[0], words, environment)
        done, status = wait(child, 1)  # WNOHANG
        while not done:
            sleep(0.01)
            audit("evprof.test")
            done, status = wait(child, 1)
        write(1, b"status %d\n" % status)


sys.last = Last()
