"""Functions that call themselves and each other."""
import functools


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def queens(n, row=0, columns=(), left=(), right=()):
    if row == n:
        return 1
    return sum(queens(n, row + 1, columns + (c,), left + (row - c,), right + (row + c,)) for c in range(n)
               if c not in columns and row - c not in left and row + c not in right)


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def permutations(items):
    if not items:
        return [[]]
    return [[items[i]] + rest for i in range(len(items)) for rest in permutations(items[:i] + items[i + 1:])]


class Tree:
    def __init__(self, depth):
        self.children = [Tree(depth - 1) for _ in range(2)] if depth else []

    def __len__(self):
        return 1 + sum(len(child) for child in self.children)

    def __eq__(self, other):
        return self.children == other.children


def through_c(n):
    return 0 if n == 0 else 1 + max(map(through_c, [n - 1]))


def by_sorting(n):
    if n == 0:
        return 0
    return sorted([n, n - 1], key=lambda k: by_sorting(n - 1) + k)[0]


def main():
    fibonacci.cache_clear()
    return (ackermann(2, 4), even(100), queens(5), fibonacci(60), len(permutations([1, 2, 3, 4, 5])), len(Tree(6)),
            Tree(4) == Tree(4), through_c(50), by_sorting(7))
