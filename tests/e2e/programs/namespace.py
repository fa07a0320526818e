"""The first process of a pid namespace: three children and it call leaf() 1000 times each, and it ends while they sleep.

`namespace.py END`: END is return, os_exit, exception, exec (which then returns) or sleep (it is killed from outside).
"""
import os
import sys
import time

import counting

CHILDREN = 3


def leaf():
    pass


def call():
    for _ in range(1000):
        leaf()


def child(write):
    call()
    os.write(write, b"x")
    time.sleep(100)


def main(how):
    read, write = os.pipe()
    for _ in range(CHILDREN):
        if os.fork() == 0:
            child(write)
    for _ in range(CHILDREN):
        assert os.read(read, 1)
    call()
    print("process", os.getpid(), flush=True)
    if how == "os_exit":
        os._exit(4)
    if how == "exception":
        raise ValueError(how)
    if how == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "import sys; sys.exit(9)"])
    if how == "sleep":
        counting.open_oracle()[0] = os.getpid()
        time.sleep(100)


main(sys.argv[1])
