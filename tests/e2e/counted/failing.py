"""Exceptions from Python and C, through many frames, chained, raised again, in finally, in with, in destructors."""


class Own(Exception):
    def __init__(self, value):
        Exception.__init__(self, "own %s" % value)


class Manager:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return self.swallow


class Dies:
    def __del__(self):
        try:
            fall(2)
        except Own:
            pass


class Indexed:
    def __getitem__(self, index):
        if index > 5:
            raise IndexError(index)
        return index

    def __getattr__(self, name):
        raise AttributeError(name)


def fall(depth):
    if depth == 0:
        raise Own(depth)
    fall(depth - 1)


def chained():
    try:
        fall(3)
    except Own as error:
        raise ValueError("other") from error


def again():
    try:
        fall(2)
    except Own:
        raise


def cleanup(log):
    try:
        return int("x")
    finally:
        log.append(len(log))


def attempt(function, *arguments):
    try:
        function(*arguments)
    except (Own, ValueError, TypeError, KeyError, ZeroDivisionError, AttributeError, StopIteration) as error:
        return type(error).__name__
    return None


def by_zero():
    return 1 // 0


def many():
    result = [attempt(fall, n) for n in range(20)]
    log = []
    for function, arguments in ((chained, ()), (again, ()), (cleanup, (log,)), (int, ("x",)), (len, (5,)),
                                (by_zero, ()), ({}.pop, ("x",)), (next, (iter([]),)), (getattr, (Indexed(), "x")),
                                ([].index, (1,)),
                                (max, ([1, "x"],)), (sorted, ([1, "x"],)), (fall, ("text",)), (fall, ())):
        result.append(attempt(function, *arguments))
    with Manager(True):
        fall(1)
    try:
        with Manager(False):
            fall(1)
    except Own:
        pass
    Dies()
    result.append(list(Indexed()))
    result.append(hasattr(Indexed(), "nothing"))
    return result


def main():
    return [many() for _ in range(3)]
