"""Work of which every count is known. Used by most tests: `python known.py MODE [ARGUMENT...]`, or as a module."""
import sys


def leaf():
    pass


def work(n):
    for _ in range(n):
        leaf()


def recurse(n):
    if n:
        recurse(n - 1)


def numbers(n):
    for i in range(n):
        yield i


def everything():
    work(1000)
    recurse(50)
    return sum(numbers(10))


def main(arguments):
    mode = arguments[0] if arguments else "plain"
    everything()
    print("arguments", arguments)
    if mode == "stdin":
        print("input", sys.stdin.read())
    sys.stderr.write("to stderr\n")


if __name__ == "__main__":
    main(sys.argv[1:])
