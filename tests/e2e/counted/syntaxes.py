"""Syntax that came with later versions, as far as the interpreter has it: assignments in expressions, match, groups of
exceptions, parameters of types, asynchronous comprehensions; and comprehensions, lambdas, classes and nested functions."""
import sys

SOURCES = [
    ((3, 6), """
import asyncio

async def numbers(count):
    for n in range(count):
        yield n

async def collect():
    return [n async for n in numbers(4)], {n: n async for n in numbers(3) if n}, [x async for x in (y async for y in numbers(2))]

def run():
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(collect())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
"""),
    ((3, 8), """
def half(n, /, *, at=2):
    return n // at

def run():
    return [y for n in range(9) if (y := half(n)) > 1], f"{half(7)=}", (total := 0), [total := total + n for n in range(3)]
"""),
    ((3, 10), """
class Point:
    __match_args__ = ("x", "y")
    def __init__(self, x, y):
        self.x, self.y = x, y

def kind(value):
    match value:
        case Point(0, y) if str(y):
            return y
        case Point(x=1):
            return "one"
        case [first, *rest]:
            return len(rest)
        case {"key": inner, **others}:
            return kind(inner)
        case str() | int():
            return "plain"
    return None

def run():
    return [kind(value) for value in (Point(0, 2), Point(1, 1), [1, 2, 3], {"key": "x", "other": 1}, 5, None)]
"""),
    ((3, 11), """
def fail():
    raise ExceptionGroup("several", [ValueError(1), TypeError(2), ExceptionGroup("inner", [KeyError("k")])])

def run():
    seen = []
    try:
        try:
            fail()
        except* ValueError as group:
            seen.append(len(group.exceptions))
        except* KeyError as group:
            seen.append(str(group))
    except BaseException as rest:
        rest.add_note("left")
        seen.append(rest.split(TypeError)[0] is not None)
    return seen
"""),
    ((3, 12), """
type Pair[T] = tuple[T, T]

class Stack[T]:
    def __init__(self):
        self.items: list[T] = []
    def push[S](self, item: S) -> S:
        self.items.append(item)
        return item

def run():
    stack = Stack[int]()
    return [stack.push(n) for n in range(3)], Pair.__value__, f"{'nested' + f"{1 + 1}"}", [[x * y for x in range(3)] for y in range(2)]
"""),
    ((3, 14), """
import annotationlib

def annotated(value: later, other: int = 3):
    return value

def run():
    return annotationlib.get_annotations(annotated, format=annotationlib.Format.STRING), t"{annotated(1)} text".values
"""),
]


def comprehensions():
    class Body:
        squares = [n * n for n in range(5)]
        names = {str(n) for n in range(3)}
        table = {n: (lambda n=n: n) for n in range(3)}
        lazy = list(n + 1 for n in range(3))

    def outer(a):
        def inner(b):
            nonlocal a
            a += b
            return [a + c for c in range(b) if [d for d in range(c)]]
        return [inner(n) for n in range(4)], sum(inner(2))
    try:
        [int(text) for text in ("1", "x")]
    except ValueError:
        pass
    return outer(1), Body.table[1](), [[(x, y) for y in range(x)] for x in range(3)], (lambda *a, **k: len(a))(1, 2, k=3)


def executed():
    space = {"n": 3}
    exec("def added(x):\n    return x + n\nclass Made:\n    y = added(1)\n", space)
    return eval("[added(i) for i in range(4)] + [Made.y]", space), eval(compile("added(5)", "<made>", "eval"), space)


def newer():
    results = []
    for version, source in SOURCES:
        if sys.version_info >= version:
            space = {}
            exec(compile(source, "<from %d.%d>" % version, "exec"), space)
            results.append(space["run"]())
    return results


def main():
    return [(comprehensions(), executed(), newer()) for _ in range(4)]
