"""Calls made at lines at which a generator, coroutine or greenlet goes on. Prints what it counted itself, by line.

    python standing.py [greenlets]

Each line of output: the line of the call, how often spin() was called there, and the seconds that it took.
"""
import sys
import time

counted = {}


def spin(seconds):
    """Runs for some time, and notes for which line of its caller."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        pass
    entry = counted.setdefault(sys._getframe(1).f_lineno, [0, 0.0])
    entry[0] += 1
    entry[1] += time.perf_counter() - begin
    return seconds


def numbers(which):
    if which:
        while True:
            spin((yield) or 0.004)
    while True:
        spin((yield) or 0.001)


def inner(which):
    if which:
        spin((yield 1) or 0.003)
        return
    spin((yield 0) or 0.002)


def outer(which):
    yield from inner(which)
    spin(0.001)


class Step:
    def __await__(self):
        yield


async def handler(which):
    if which:
        for _ in range(4):
            await Step(), spin(0.004)
    else:
        for _ in range(4):
            await Step(), spin(0.001)


def caught():
    while True:
        try:
            yield
        except ValueError:
            spin(0.001)
        except KeyError: spin(0.003)


def generators():
    both = [numbers(0), numbers(1)]
    for generator in both:
        next(generator)
    for _ in range(4):
        for generator in both:
            generator.send(None)
    for generator in [outer(0), outer(1)]:
        for _ in generator:
            pass
    thrown = caught()
    next(thrown)
    for _ in range(3):
        thrown.throw(ValueError())
        thrown.throw(KeyError())
    thrown.close()


def coroutines():
    alive = [handler(0), handler(1)]
    while alive:
        for coroutine in list(alive):
            try:
                coroutine.send(None)
            except StopIteration:
                alive.remove(coroutine)


def greenlets():
    import greenlet

    parent = greenlet.getcurrent()

    def deep(seconds):
        parent.switch(), spin(seconds)
        parent.switch(), spin(seconds)

    def short():
        deep(0.001), spin(0.001)

    def long():
        deep(0.004), spin(0.002)

    both = [greenlet.greenlet(short), greenlet.greenlet(long)]
    for _ in range(3):
        for one in both:
            one.switch()


if sys.argv[1:] == ["greenlets"]:
    greenlets()
else:
    generators()
    coroutines()
for line in sorted(counted):
    print(line, counted[line][0], "%.6f" % counted[line][1])
