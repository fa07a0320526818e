"""Frame evaluators (PEP 523) of others, and threads of little stack: python evaluated.py PART LIBRARY.

Prints as JSON how often leaf() and __getitem__() were called, and whether evprof's evaluator was set at some moments.
"""
import ctypes
import json
import sys
import threading

import own_addresses

library = ctypes.PyDLL(sys.argv[2])
library.current.restype = ctypes.c_void_p
counted = gotten = 0


def is_ours():
    return own_addresses.is_ours(library.current())


def leaf():
    global counted
    counted += 1


def leaves(count):
    for _ in range(count):
        leaf()


def pairs(count):
    for _ in range(count):
        leaf()
        yield leaf()


def work():
    leaves(1000)
    list(pairs(500))


def chained():
    """It calls evprof's evaluator, and puts it back."""
    work()
    found = [is_ours()]
    library.begin(0)
    work()
    found.append(is_ours())
    assert library.end() > 1500
    work()
    return found


def alone():
    """It does not; evprof sees that at the next audit event."""
    work()
    found = [is_ours()]
    library.begin(1)
    sys.audit("evaluated")
    work()
    found.append(is_ours())
    assert library.end() > 1500
    work()
    return found


def deeper(n, evaluator):
    leaf()
    return deeper(n - 1, evaluator) + 1 if n and library.current() == evaluator else 0


def small_stack():
    """A recursion of that depth, or until the evaluator is another one."""
    found = [is_ours()]
    sys.setrecursionlimit(100000)
    threading.stack_size(1 << 20)
    depth = int(sys.argv[3])
    thread = threading.Thread(target=deeper, args=(depth, library.current()))
    thread.start()
    thread.join()
    work()
    found.append(is_ours())
    return found


class Row:
    def __getitem__(self, place):
        global gotten
        gotten += 1
        return place


def sum_of(row, count):
    total = 0
    for place in range(count):
        total += row[place]
    return total


def parts_of(row, count):
    for place in range(count):
        yield row[place]


def between(row, count):
    """No subscript of its own."""
    return sum_of(row, count) + sum(parts_of(row, count))


def of_callees(row, count):
    return [between(row, 10) + row[place] for place in range(count)]


async def awaited(row, count):
    return row[count] + sum_of(row, count)


async def in_turn(row, count):
    for place in range(count):
        row[place]
        await awaited(row, 3)


def failing(row, count):
    try:
        for place in range(count):
            row[place]
            if place == count - 1:
                raise KeyError(row[place])
    except KeyError as error:
        return row[error.args[0]]


def while_profiled(row, count):
    """Tracing begins and ends in the middle of a function with subscripts."""
    import cProfile

    profile = cProfile.Profile()
    for _ in range(2):
        profile.enable()
        sum_of(row, count)
        for place in range(count):
            row[place]
        profile.disable()
        for place in range(count):
            row[place]
    sys.settrace(lambda *_: None)
    for place in range(count):
        row[place]
    sys.settrace(None)
    for place in range(count):
        row[place]


def subscripts():
    """3.11 calls __getitem__() without an evaluator, where it may."""
    import asyncio

    work()
    row = Row()
    for _ in range(3):
        for place in range(500):
            row[place]
        sum_of(row, 500)
        list(parts_of(row, 500))
        between(row, 100)
        of_callees(row, 100)
        failing(row, 100)
        asyncio.run(in_turn(row, 100))
        while_profiled(row, 100)
    thread = threading.Thread(target=sum_of, args=(row, 1000))
    thread.start()
    thread.join()
    return [is_ours(), is_ours()]


ours = globals()[sys.argv[1]]()
print(json.dumps({"leaf": counted, "__getitem__": gotten, "ours": ours}))
