"""Calls a function: `losing.py lost|kept COLLECTOR`. For events to be lost the collector stands still meanwhile."""
import os
import signal
import sys


def leaf():
    return len("")


def calls(times):
    for _ in range(times):
        leaf()


if __name__ == "__main__":
    collector = int(sys.argv[2])
    if sys.argv[1] == "lost":
        os.kill(collector, signal.SIGSTOP)
    calls(60000)
    os.kill(collector, signal.SIGCONT)
