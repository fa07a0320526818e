"""deep.py: calls 300 deep, for so long that the stack is recorded again; then a forked child that goes on in the same depth."""
import os
import sys


def leaf(number):
    return abs(number)


def work(rounds):
    for number in range(rounds):
        leaf(number)


def descend(depth):
    if depth:
        return descend(depth - 1)
    work(350000)
    child = os.fork()
    work(20000)
    if not child:
        return 0
    return os.waitpid(child, 0)[1]


sys.setrecursionlimit(5000)
sys.exit(descend(300))
