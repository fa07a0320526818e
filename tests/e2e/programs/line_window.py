"""One call that takes most of the run and more than 2^22 line events, made at a line of a function (test_annotate.c)."""


def spin(n):
    i = 0
    while i < n:
        i += 1


def short():
    pass


def main():
    short()
    for n in (1, 3000000):
        short()
        spin(n)
        short()


main()
