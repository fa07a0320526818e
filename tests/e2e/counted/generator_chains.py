"""Generators of every use: pipelines, delegation, send, throw, close, context managers, comprehensions."""
import contextlib
import itertools


def numbers(n):
    for i in range(n):
        yield i


def squares(source):
    for value in source:
        yield value * value


def flatten(tree):
    for item in tree:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


def averager():
    total, count, value = 0.0, 0, None
    while True:
        try:
            value = yield total / count if count else 0
        except ZeroDivisionError:
            total, count = 0.0, 0
            continue
        total += value
        count += 1


def careful():
    try:
        yield 1
        yield 2
    finally:
        list(numbers(2))


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield log
    except KeyError:
        log.append("caught")
    finally:
        log.append("out")


def deep(n):
    if n:
        yield from deep(n - 1)
    yield n


def main():
    log = []
    sums = [sum(squares(numbers(50))), sum(x for x in numbers(30) if x % 2), len(list(deep(20)))]
    sums.append(len(list(flatten([1, [2, [3, [4, [5]]]], [[6]], 7] * 10))))
    average = averager()
    next(average)
    for i in range(20):
        average.send(i)
    average.throw(ZeroDivisionError())
    average.close()
    for _ in range(5):
        half = careful()
        next(half)
        half.close()
        with managed(log):
            pass
        with managed(log):
            raise KeyError("x")
    not_started = careful()
    not_started.close()
    sums.append(len({k: v for k, v in zip(numbers(10), squares(numbers(10)))}))
    sums.append(len(list(itertools.islice(itertools.chain(numbers(5), squares(numbers(5))), 8))))
    sums.append(any(x > 3 for x in numbers(10)))
    return sums, log
