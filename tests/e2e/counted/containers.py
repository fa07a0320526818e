"""collections, heaps, bisection, sorting with keys and comparisons, sets, iterators, operators of own classes."""
import bisect
import collections
import collections.abc
import functools
import heapq
import itertools


class Lower(collections.UserDict):
    def __setitem__(self, key, value):
        collections.UserDict.__setitem__(self, key.lower(), value)


class Range(collections.abc.Sequence):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index >= self.n:
            raise IndexError(index)
        return index * 2


class Vector:
    def __init__(self, *values):
        self.values = values

    def __add__(self, other):
        return Vector(*[a + b for a, b in zip(self.values, other.values)])

    def __mul__(self, factor):
        return Vector(*[value * factor for value in self.values])

    def __hash__(self):
        return hash(self.values)

    def __eq__(self, other):
        return self.values == other.values

    def __call__(self, index):
        return self.values[index]

    def __iter__(self):
        return iter(self.values)


def compare(a, b):
    return (a > b) - (a < b)


def main():
    text = "the quick brown fox jumps over the lazy dog " * 10
    counter = collections.Counter(text.split())
    ordered = collections.OrderedDict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))
    ordered.move_to_end("the")
    groups = collections.defaultdict(list)
    for word in text.split():
        groups[len(word)].append(word)
    lower = Lower({"Key%d" % i: i for i in range(20)})
    merged = collections.ChainMap({"a": 1}, {"b": 2}, lower)
    heap = []
    for i in range(50):
        heapq.heappush(heap, (i * 7919) % 101)
    drained = [heapq.heappop(heap) for _ in range(50)]
    places = []
    for value in drained[::-1]:
        bisect.insort(places, value)
    ring = collections.deque(range(10), maxlen=5)
    ring.rotate(2)
    doubled = Range(20)
    vectors = {Vector(i % 4, i % 3) for i in range(30)}
    total = functools.reduce(lambda a, b: a + b, [Vector(i, i) * 2 for i in range(20)])
    grouped = [(key, len(list(group))) for key, group in itertools.groupby(sorted(text.split(), key=len), key=len)]
    return (list(ordered)[-1], sorted(groups), merged["key3"], drained == sorted(drained), places[0], list(ring),
            4 in doubled, doubled.index(6), list(reversed(doubled))[0], len(vectors), total(0), sum(total), grouped,
            sorted(range(20), key=functools.cmp_to_key(compare))[0], counter.most_common(2), (counter + counter)["fox"])
