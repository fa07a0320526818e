"""Exceptions that come up in odd places: destructors, descriptors, comparisons, callbacks of C, generators that are closed or
thrown into, recursion that is too deep, unwound context managers, and errors of arguments."""
import contextlib
import functools
import sys


class Odd(Exception):
    pass


class Raises:
    def __init__(self, where):
        self.where = where

    def fall(self, where):
        if self.where == where:
            raise Odd(where)

    def __del__(self):
        try:
            self.fall("del")
        except Odd:
            pass

    def __lt__(self, other):
        self.fall("lt")
        return True

    def __eq__(self, other):
        self.fall("eq")
        return self is other

    def __hash__(self):
        self.fall("hash")
        return 3

    def __len__(self):
        self.fall("len")
        return 1

    def __iter__(self):
        self.fall("iter")
        return self

    def __next__(self):
        self.fall("next")
        raise StopIteration

    def __getattr__(self, name):
        self.fall("getattr")
        raise AttributeError(name)

    def __call__(self, *arguments):
        self.fall("call")

    def __enter__(self):
        self.fall("enter")
        return self

    def __exit__(self, *raised):
        self.fall("exit")

    @property
    def value(self):
        self.fall("value")
        return 1


def uses(thing):
    with contextlib.ExitStack() as stack:
        stack.callback(len, thing)
        stack.enter_context(thing)
        sorted([thing, thing])
        [thing].index(5)


ACTIONS = [lambda thing: sorted([thing, thing]), lambda thing: [thing].count(5), lambda thing: {thing: 1}, len, list, tuple,
           lambda thing: thing.nothing, lambda thing: thing.value, lambda thing: list(map(thing, [1])), uses,
           lambda thing: functools.reduce(thing, [1, 2, 3]), lambda thing: getattr(thing, "x", 3), iter, next,
           lambda thing: max(thing, default=3), lambda thing: "{.value}".format(thing), lambda thing: [*thing],
           lambda thing: thing(*thing, **{}), lambda thing: len(5), lambda thing: len(thing, thing), lambda: 3]


def attempts():
    seen = []
    for where in ("lt", "eq", "hash", "len", "iter", "next", "getattr", "call", "enter", "exit", "value", "del"):
        for action in ACTIONS:
            try:
                action(Raises(where))
            except (Odd, AttributeError, ValueError, TypeError, StopIteration) as error:
                seen.append(type(error).__name__)
    return len(seen)


def generator(log):
    try:
        while True:
            try:
                yield len(log)
            except Odd:
                log.append("caught")
    except ValueError:
        yield "replaced"
    finally:
        log.append("closed")


def delegating(log):
    result = yield from generator(log)
    return result


def generators():
    log = []
    for make in (generator, delegating):
        first, second, third = make(log), make(log), make(log)
        next(first), first.throw(Odd("in")), first.close()
        next(second), second.throw(ValueError("in"))
        with contextlib.suppress(StopIteration):
            next(second)
        with contextlib.suppress(Odd):
            make(log).throw(Odd("before"))
        next(third)
        del third
    with contextlib.suppress(RuntimeError):
        list(stops())
    return log


def stops():
    yield 1
    raise StopIteration


def deep(n):
    return deep(n + 1)


def recursion():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        deep(0)
    except RecursionError:
        return "deep"
    finally:
        sys.setrecursionlimit(limit)


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield log
    except Odd:
        log.append("swallowed")
    finally:
        log.append("out")


def managers():
    log = []
    with managed(log):
        raise Odd("x")
    with contextlib.suppress(KeyError), managed(log):
        raise KeyError("x")
    return log


def main():
    return [(attempts(), generators(), managers()) for _ in range(2)], recursion()
