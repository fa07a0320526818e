"""Calls in some shapes, each stack of which it counts itself with sys.setprofile(): prints {"a/b/c": calls} as JSON.

Run with "count" it counts, without it only calls, for a recording."""
import json
import sys
import threading


def leaf(n):
    return n


def twice(n):
    return leaf(n) + leaf(n + 1)


def down(n):
    return down(n - 1) if n else leaf(0)


class Shape:
    def area(self):
        return sum(twice(side) for side in range(3))


def generator():
    for i in range(4):
        yield leaf(i)


def raising():
    try:
        failing()
    except ValueError:
        leaf(1)


def failing():
    raise ValueError


def work():
    for _ in range(5):
        twice(1)
    down(30)
    Shape().area()
    list(generator())
    raising()


def in_thread():
    down(2)


def main():
    work()
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()


def count():
    stacks = {}

    def profile(frame, event, argument):
        if event != "call" or frame.f_code.co_filename != __file__:
            return
        names = []
        while frame:
            if frame.f_code.co_filename == __file__ and frame.f_code.co_name not in ("count", "<module>"):
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        path = "/".join(reversed(names))
        stacks[path] = stacks.get(path, 0) + 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    main()
    sys.setprofile(None)
    threading.setprofile(None)
    print(json.dumps(stacks))


if sys.argv[1:] == ["count"]:
    count()
else:
    main()
