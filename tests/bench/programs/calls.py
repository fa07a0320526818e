"""Nothing but calls: recursion, methods, C functions, small objects. Stands in for shared/workloads/calls.py."""


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
    for _ in range(3):
        fib(25)
        methods(400000)
        c_functions(1000000)
        objects(400000)
