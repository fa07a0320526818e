"""Calls and blocks for test_table.c. `table.py` alone is for evprof and prints the blocks; `table.py log` prints what
sys.setprofile() reports of program(), and `table.py traced` what tracemalloc reports of holds(), both as JSON."""
import collections
import json
import sys

SIZES = [100003 + 1000 * i for i in range(200)]


def recurse(n):
    return recurse(n - 1) if n else 0


def numbers(n):
    for i in range(n):
        try:
            yield abs(i)
        except ValueError:
            pass


class Point:
    def __init__(self, x):
        self.x = x

    def __lt__(self, other):
        return len([self.x]) and self.x < other.x


def fails(text):
    return int(len(text)) + text


def program():
    recurse(5)
    queue = collections.deque()
    for number in numbers(4):
        queue.append(number)
    some = numbers(3)
    next(some)
    some.throw(ValueError("thrown"))
    some.close()
    points = sorted([Point(3), Point(1), Point(2)])
    sorted(points, key=lambda point: -point.x)
    try:
        fails("abc")
    except TypeError:
        pass
    try:
        len(5)
    except TypeError:
        pass
    ",".join(map(str, [1, 2]))
    return {}.get("x"), "a,b".split(",")


def holds():
    return [bytes(size) for size in SIZES]


def releases(blocks):
    while blocks:
        del blocks[-1]


def place(frame):
    return [frame.f_code.co_filename, frame.f_code.co_firstlineno] if frame else ["", -1]


def by_setprofile():
    """What EventProfiler makes of it, the caller of a C function aside (docs/table.md)."""
    log = []

    def record(frame, event, arg):
        if event.startswith("c_"):
            log.append([event, arg.__qualname__, arg.__module__ or "", frame.f_code.co_firstlineno, frame.f_code.co_name]
                       + place(frame))
        else:
            back = frame.f_back
            log.append([event, frame.f_code.co_name] + place(frame) + [back.f_code.co_name if back else ""]
                       + place(back))
    sys.setprofile(record)
    program()
    sys.setprofile(None)
    print(json.dumps(log))


def by_tracemalloc():
    import tracemalloc
    holds()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = holds()
    print(json.dumps(tracemalloc.get_traced_memory()[0] - before))
    return kept


def by_evprof():
    program()
    blocks = holds()
    sizes = [[id(block), sys.getsizeof(block)] for block in blocks]
    releases(blocks)
    print(json.dumps(sizes))


if __name__ == "__main__":
    {"log": by_setprofile, "traced": by_tracemalloc}.get("".join(sys.argv[1:]), by_evprof)()
