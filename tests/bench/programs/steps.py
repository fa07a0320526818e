"""Forty thousand calls of Python functions with one C call each: what --instructions counts."""


def leaf(text):
    return len(text)


def branch(text):
    len(text)
    return leaf(text)


def main():
    for _ in range(20000):
        branch("abc")
