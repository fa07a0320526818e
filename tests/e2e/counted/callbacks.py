"""C code that calls Python: sort keys, map and filter, ctypes, weak references, regular expressions, hooks of pickling."""
import ctypes
import ctypes.util
import functools
import io
import itertools
import operator
import pickle
import re
import weakref


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __reduce__(self):
        return Point, (self.x, self.y)

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))

    def __lt__(self, other):
        return self.x < other.x

    def __index__(self):
        return self.x

    def __bool__(self):
        return self.y > 2

    def __repr__(self):
        return "Point(%r, %r)" % (self.x, self.y)

    def __format__(self, spec):
        return format(self.x, spec)


class State:
    def __getstate__(self):
        return {"n": 1}

    def __setstate__(self, state):
        self.n = state["n"]


class Pickler(pickle.Pickler):
    def persistent_id(self, thing):
        return "three" if thing == 3 else None


class Unpickler(pickle.Unpickler):
    def persistent_load(self, pid):
        return {"three": 3}[pid]

    def find_class(self, module, name):
        return super().find_class(module, name)


def by_pickle():
    out = io.BytesIO()
    Pickler(out, 2).dump([Point(1, 2), State(), 3, (3, "x")])
    out.seek(0)
    return Unpickler(out).load()[0] == Point(1, 2)


def compare(one, other):
    return one.x - other.x


def by_sorting():
    points = [Point(n * 7 % 11, n % 5) for n in range(12)]
    return (sorted(points), sorted(points, key=functools.cmp_to_key(compare)), max(points, key=lambda point: point.y),
            min(points), sorted(points, key=operator.attrgetter("y", "x"), reverse=True))


def by_iterators():
    numbers = range(20)
    total = functools.reduce(lambda a, b: a + b, map(lambda n: n * n, filter(lambda n: n % 2, numbers)))
    groups = [(key, len(list(group))) for key, group in itertools.groupby(numbers, key=lambda n: n // 7)]
    return (total, groups, list(itertools.accumulate(numbers, lambda a, b: a ^ b)),
            list(itertools.takewhile(lambda n: n < 5, numbers)), list(itertools.starmap(max, zip(numbers, range(20, 0, -1)))),
            list(iter(lambda stack=[1, 2, 3]: stack.pop() if stack else None, None)), sum(n for n in numbers),
            any(n > 10 for n in numbers), dict((n, str(n)) for n in numbers), list(zip(*[iter(numbers)] * 3)))


def by_expressions():
    def once(match):
        return match.group(0).upper()
    return re.sub("[aeiou]", once, "every vowel in it"), "%s %r {}".format(Point(1, 1)), "{:>5}".format(Point(1, 2))


def by_weakness():
    seen = []
    for n in range(3):
        point = Point(n, n)
        kept = weakref.ref(point, seen.append)
        weakref.finalize(point, seen.append, n)
        del point
        assert kept() is None
    table = weakref.WeakValueDictionary()
    point = table["x"] = Point(1, 1)
    found = table.get("x") is point
    del point
    return len(seen), found, len(table)


def by_ctypes():
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    library = ctypes.CDLL(None)
    numbers = (ctypes.c_int * 8)(5, 3, 8, 1, 9, 2, 7, 4)
    library.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), kind(lambda a, b: a[0] - b[0]))
    return list(numbers)


def by_slots():
    points = {Point(n % 3, n): n for n in range(6)}
    return ([10, 20, 30][Point(1, 0)], hex(Point(255, 0)), [point for point in points if point], Point(2, 9) in points,
            points.get(Point(2, 2)), [Point(1, 1)].index(Point(1, 1)), [Point(1, 1), Point(2, 2)].count(Point(2, 2)),
            bytes([Point(65, 0)]), range(Point(3, 3))[1], repr([Point(0, 0)]))


def main():
    result = [(by_pickle(), by_sorting(), by_iterators(), by_expressions(), by_weakness(), by_slots()) for _ in range(3)]
    return result, by_ctypes()
