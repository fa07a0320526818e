"""Every way into and out of a Python frame. Between the marks "begin" and "end", with the events below expected.py."""
import sys

LOG = []


def simple():
    return 1


def counting(n):
    for i in range(n):
        yield i


def delegating():
    yield from counting(2)
    return "done"


def catching():
    while True:
        try:
            yield 1
        except KeyError:
            yield 2


def raising():
    yield 1
    raise ValueError("from a generator")


def not_started():
    yield 1


def raises():
    raise ValueError("from a function")


def raises_deeper():
    raises()


def catches():
    try:
        raises_deeper()
    except ValueError:
        return 1


def by_c():
    return int("not a number")


def catches_c():
    try:
        by_c()
    except ValueError:
        return 1


def again():
    try:
        raises()
    except ValueError:
        raise


def catches_again():
    try:
        again()
    except ValueError:
        pass


async def awaited():
    return 5


class Pause:
    def __await__(self):
        yield "paused"
        return 6


async def awaiting():
    first = await awaited()
    second = await Pause()
    return first + second


async def asynchronous():
    yield 1
    await Pause()
    yield 2


async def consuming():
    got = []
    async for item in asynchronous():
        got.append(item)
    return got


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value


def in_throw():
    generator = catching()
    next(generator)
    generator.throw(KeyError("thrown"))
    generator.close()


def in_raising():
    generator = raising()
    next(generator)
    try:
        next(generator)
    except ValueError:
        pass


def in_not_started():
    generator = not_started()
    generator.close()
    generator = not_started()
    try:
        generator.throw(KeyError("before the start"))
    except KeyError:
        pass


def dropped():
    generator = counting(5)
    next(generator)
    del generator


def program():
    simple()
    list(counting(3))
    list(delegating())
    in_throw()
    in_raising()
    in_not_started()
    dropped()
    catches()
    catches_c()
    catches_again()
    assert drive(awaiting()) == 11
    assert drive(consuming()) == [1, 2]


def marked(name):
    try:
        import ctypes
        mark = ctypes.CDLL(None).evprof_mark
    except (ImportError, AttributeError):
        return
    mark(name)


def run():
    program()  # what happens once only, happens here
    marked(b"begin")
    program()
    marked(b"end")


if __name__ == "__main__":
    run()
