"""growth.py KIND NUMBER: the same calls, more or fewer of something: threads, processes, depth, functions, length (calls in all, in
millions), rate (calls a second); or allocations below that many functions. Used by lib/growth.py. Prints the number of calls."""
import os
import sys
import threading
import time

from alloc import make

CALLS = 600000


def leaf():
    pass


def turns(count):
    for _ in range(count):
        leaf()


def threads(number):
    own = [threading.Thread(target=turns, args=(CALLS // number,)) for _ in range(number)]
    for thread in own:
        thread.start()
    for thread in own:
        thread.join()
    return CALLS // number * number


def processes(number):
    children = []
    for _ in range(number):
        child = os.fork()
        if not child:
            turns(CALLS // number)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return CALLS // number * number


def dive(depth):
    if depth:
        dive(depth - 1)


def depth(number):
    sys.setrecursionlimit(number + 1000)
    for _ in range(CALLS // number):
        dive(number - 1)
    return CALLS // number * number


def below(depth):
    if depth:
        return below(depth - 1)
    for i in range(CALLS // 10):
        make(i)


def allocations(number):
    sys.setrecursionlimit(number + 1000)
    below(number - 1)
    return CALLS // 10


def functions(number):
    """Each is called at least once."""
    names = {}
    for first in range(0, number, 1000):
        exec("".join("def f%d(): pass\n" % n for n in range(first, min(first + 1000, number))), names)
    own = [names["f%d" % n] for n in range(number)]
    rounds = max(1, CALLS // number)
    for _ in range(rounds):
        for function in own:
            function()
    return rounds * number


def length(number):
    turns(number * 1000000)
    return number * 1000000


def rate(number):
    """For three seconds, a hundred times a second."""
    begin = time.monotonic()
    for step in range(300):
        turns(number // 100)
        time.sleep(max(0, begin + (step + 1) / 100 - time.monotonic()))
    return number // 100 * 300


print(globals()[sys.argv[1]](int(sys.argv[2])))
