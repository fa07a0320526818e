"""dataclasses, enumerations, named tuples and functools: classes made at run time, code from exec."""
import abc
import collections
import enum
import functools
import operator
import types


def make_dataclass():
    try:
        import dataclasses
    except ImportError:
        return None

    @dataclasses.dataclass(order=True)
    class Item:
        name: str
        price: float = 1.0
        tags: list = dataclasses.field(default_factory=list)

        def total(self, n):
            return self.price * n

    items = [Item("n%d" % (i % 7), i) for i in range(30)]
    return sorted(items)[0], dataclasses.asdict(items[3]), dataclasses.replace(items[4], price=2.0), repr(items[5])


class Colour(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def lower(self):
        return self.name.lower()


class Flags(enum.IntFlag):
    A = 1
    B = 2
    C = 4


@functools.total_ordering
class Version:
    def __init__(self, text):
        self.parts = [int(part) for part in text.split(".")]

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        pass


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side ** 2


@functools.singledispatch
def describe(value):
    return "thing"


@describe.register(int)
def _(value):
    return "int"


@describe.register(list)
def _(value):
    return [describe(item) for item in value]


@functools.lru_cache(maxsize=8)
def cached(n):
    return n * 2


def main():
    cached.cache_clear()
    Point = collections.namedtuple("Point", "x y")
    points = [Point(i, -i)._replace(y=i) for i in range(20)]
    made = types.new_class("Made", (Square,), {}, lambda body: body.update(extra=5))
    versions = sorted(Version("1.%d.%d" % (i % 3, i)) for i in range(20))
    results = [sum(p.x for p in points), Colour("GREEN" and 2).lower, Flags.A | Flags.C]
    results.append([cached(i % 5) for i in range(30)])
    results.append([describe(v) for v in (1, "x", [1, [2, 3]])])
    results.append((versions[0] <= versions[1], versions[3] >= versions[2], made(3).area(), isinstance(made(1), Shape)))
    results.append(functools.reduce(operator.add, map(functools.partial(pow, 2), range(10))))
    results.append(make_dataclass())
    try:
        Shape()
    except TypeError:
        pass
    return results
