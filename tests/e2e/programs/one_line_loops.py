"""Loops within one line. `python one_line_loops.py log` prints {line: hits} as sys.settrace sees them."""
import sys

import line_log


def counts(n):
    s = 0
    for i in range(n): s += i
    while n: n -= 1
    k = 7
    while True:
        k -= 1
        if not k: break
    t = [i for i in range(5) if i]
    u = {i: i for i in range(4)}
    for i in range(3):
        for j in range(4): s += j
    for i in range(3): s = (s +
                            1)
    return s, t, u


def generates(n):
    for i in range(n): yield i


def sums(n):
    s = sum(x * x for x in range(n))
    for i in generates(n): s += i
    for i in range(2): pass
    return s


def main():
    counts(100)
    sums(20)


if sys.argv[1:] == ["log"]:
    line_log.log(main)
else:
    main()
