"""Nothing but calls: recursion, methods, C functions, small objects. Stands in for shared/workloads/calls.py."""

ROUNDS = 3
DEPTH = 25
TIMES = 400000


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Point:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x


def methods(rounds):
    total = 0
    for i in range(rounds):
        point = Point(i)
        total += point.get()
    return total


def c_functions(rounds):
    items = [1, 2, 3]
    total = 0
    for _ in range(rounds):
        total += len(items)
    return total


def objects(rounds):
    kept = []
    for i in range(rounds):
        kept.append([i, str(i)])
        if len(kept) > 1000:
            kept.clear()
    return len(kept)


def main():
    for _ in range(ROUNDS):
        fib(DEPTH)
        methods(TIMES)
        c_functions(TIMES * 5 // 2)
        objects(TIMES)
