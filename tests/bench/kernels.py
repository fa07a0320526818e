"""Small programs of one kind of call each, for tests/bench/calibrated. Must run on every Python from 3.6 on."""


class Point:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x

    @property
    def abscissa(self):
        return self.x

    def __add__(self, other):
        return Point(self.x + other.x)

    def __eq__(self, other):
        return self.x == other.x

    def __hash__(self):
        return self.x


class Node:
    __slots__ = ("left", "right", "key")

    def __init__(self, key):
        self.key = key
        self.left = self.right = None


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def recursion():
    fib(16)


def methods():
    total = 0
    for i in range(2500):
        point = Point(i)
        total += point.get()


def lengths():
    items, total = [1, 2, 3], 0
    for _ in range(8000):
        total += len(items)


def builtins():
    total = 0
    for i in range(4000):
        if isinstance(i, int) and hasattr(total, "real"):
            total += abs(i)
        total = max(total, min(i, 5))


def strings():
    found = 0
    for _ in range(1500):
        words = "a,b,c".split(",")
        words.append("x")
        text = ",".join(words)
        found += text.find("x")
        text.replace("a", "b")


def objects():
    kept = []
    for i in range(3000):
        kept.append([i, str(i)])
        if len(kept) > 1000:
            kept.clear()


def some(n):
    for i in range(n):
        if i % 3:
            yield i


def generators():
    total = 0
    for i in some(6000):
        total += i
    total += sum(some(6000))


def steps(n):
    if n:
        yield from steps(n - 1)
        yield n
        yield from steps(n - 1)


def delegation():
    for _ in steps(9):
        pass


def comprehensions():
    for k in range(150):
        [i * 2 for i in range(20) if i & 1]
        {i: k for i in range(10)}
        sum(i * i for i in range(10))


def callbacks():
    values = [(i * 7919) % 1000 for i in range(1000)]
    for _ in range(4):
        sorted(values, key=lambda value: -value)
        list(map(lambda value: value + 1, values))


def properties():
    point, total = Point(1), 0
    for _ in range(5000):
        total += point.abscissa


def operators():
    point, table = Point(1), {}
    for i in range(1500):
        point = Point(1) + point
        point == point
        table[Point(i)] = i


def options(a, b=1, *c, d=2, **e):
    return a


def keywords():
    for _ in range(3000):
        options(1, d=3)
        options(1, 2, 3, x=4)


def odd(i):
    if i & 1:
        raise ValueError(i)


def exceptions():
    for i in range(3000):
        try:
            odd(i)
        except ValueError:
            pass


def insert(node, key):
    while True:
        side = "left" if key < node.key else "right"
        if getattr(node, side) is None:
            setattr(node, side, Node(key))
            return
        node = getattr(node, side)


def count(node):
    return 0 if node is None else count(node.left) + 1 + count(node.right)


def tree():
    root, key = Node(500), 17
    for _ in range(700):
        key = (key * 1103515245 + 12345) & 0x7FFFFFFF
        insert(root, key % 1000)
    for _ in range(4):
        count(root)


def closures():
    def adder(a):
        def add(b):
            return a + b

        return add

    add, total = adder(3), 0
    for _ in range(5000):
        total = add(total)


def arithmetic():
    total, cells = 0, [0] * 10
    for i in range(15000):
        total = (total * 31 + i) & 0xFFFF
        if total & 1:
            cells[total % 10] = i
        else:
            total ^= cells[i % 10]


KERNELS = (
    recursion, methods, lengths, builtins, strings, objects, generators, delegation, comprehensions, callbacks,
    properties, operators, keywords, exceptions, tree, closures, arithmetic,
)
