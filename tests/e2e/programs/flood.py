"""So many calls (its argument), as fast as it can."""
import sys


def leaf():
    pass


def flood(n):
    for _ in range(n):
        leaf()


flood(int(sys.argv[1]))
