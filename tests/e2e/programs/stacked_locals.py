"""Has evprof stack --locals print the variables of its parked functions: python stacked_locals.py EVPROF.

The oracle is Python itself: f_locals of each frame, and repr(). Ends with status 1 and a line for each difference.
"""
import asyncio
import collections
import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import threading

EVPROF = sys.argv[1]
ctypes.PyDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too
PLAIN = (type(None), bool, int, float, str, bytes)
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
SHOWN = 100  # bytes of a str or bytes
held, frames, differences = threading.Lock(), [], []
held.acquire()


class Thing:
    """Its repr() would be the program's code."""
    def __repr__(self):
        os._exit(3)


class List(list):
    __repr__ = Thing.__repr__


class Int(int):
    __repr__ = Thing.__repr__


def park():
    frames.append(sys._getframe(1))
    held.acquire()


def plain(first, second=2, *rest, key=3, **more):
    none, true, false, zero, minus, text, data = None, True, False, 0, -1, "text", b"data"
    quotes, both, control, other = "it's", "'\"", "\n\t\r\\\x00\x1b[0m\x7f", "\u00e9\u4e2d\U0001f40d\u202e"
    bytes_quotes, all_bytes = b"it's", bytes(range(100, 200))
    unset = 1
    del unset
    park()


def long():
    text, ascii_text, data, very, edge, number = "\u4e2d" * 5000, "a" * 101, b"\xff" * 300, "v" * 100000, "a" * 100, 7 ** 5000
    wide = "\U0001f40d" * 25 + "x"
    park()


def objects():
    items, pair, table, some, frozen, array = [1, 2, 3], (1, 2), {1: 2, 3: 4}, {1, 2, 3}, frozenset([1]), bytearray(7)
    empty, thing, items_of_class, number_of_class, function, module = [], Thing(), List([1]), Int(1), park, os
    deque, cls = collections.deque([1]), Thing
    table.pop(1)
    park()


def cells(argument, other):
    inside, changed = "cell", 1

    def inner(own):
        nonlocal changed
        changed = own + argument
        park()
        return inside, changed
    inner(5)


def many():
    """Numbers of all sizes, in variables by the dozen."""
    numbers = random.Random(28)
    lines = ["def generated():"]
    for i in range(100):
        lines.append("    i%d = %d" % (i, numbers.randrange(-2 ** i, 2 ** i + 1) << i % 3))
        lines.append("    f%d = float('%r')" % (i, struct.unpack("d", struct.pack("Q", numbers.getrandbits(64)))[0]))
        lines.append("    d%d = %r" % (i, numbers.randrange(10 ** 6) / 10 ** (i % 7)))
    lines += ["    g0, g1, g2, g3, g4 = 1e16, 9999999999999998.0, 1e-4, 9.9e-5, -0.0", "    park()"]
    made = {"park": park}
    exec("\n".join(lines[:1] + lines[-250:]), made)  # at most 256 are read
    made["generated"]()


def generator():
    value = "in a generator"
    park()
    yield value


async def waits(argument):
    own = [argument]
    frames.append(sys._getframe())
    await asyncio.sleep(1000)


def loop():
    async def main():
        asyncio.ensure_future(waits("task"))
        await asyncio.sleep(0)
        park()
    asyncio.new_event_loop().run_until_complete(main())


def shown(value):
    """What evprof stack has of a value, but its type."""
    kind, found = type(value), {}
    if kind in SIZED:
        found["length"] = len(value)
    if kind is str and len(value) < 65536:
        text = value
        while len(text.encode()) > SHOWN:
            text = text[:-1]
        found.update(value=text, complete=text == value)
    elif kind is bytes:
        found.update(value=repr(value[:SHOWN]), complete=len(value) <= SHOWN)
    elif kind in PLAIN and kind is not str and not (kind is int and value.bit_length() > 900):
        found.update(value=repr(value), complete=True)
    return found


def compare(frame, seen):
    expected = {name: shown(value) for name, value in frame.f_locals.items()}
    types = {name: type(value).__name__ for name, value in frame.f_locals.items()}
    for local in seen:
        name, kind = local.pop("name"), local.pop("type").rpartition(".")[2]
        wanted = expected.pop(name, None)
        if local != wanted or kind != types[name]:
            differences.append("%s in %s: %s %s, not %s %s" % (name, frame.f_code.co_name, kind, ascii(local), types.get(name), ascii(wanted)))
    if expected:
        differences.append("%s lacks %s" % (frame.f_code.co_name, sorted(expected)))


def same(frame, seen):
    return frame.f_code.co_name == seen["function"] and frame.f_lineno == seen["line"]


targets = [lambda: plain(1, 2.5, 3, 4, key="k", a=1), long, objects, lambda: cells(1, 2), many, lambda: next(generator())]
if sys.version_info >= (3, 8):
    targets.append(loop)
for target in targets:
    threading.Thread(target=target, daemon=True).start()
while len(frames) < len(targets) + (loop in targets):
    pass
text = subprocess.check_output([EVPROF, "stack", "--locals", "--json", str(os.getpid())]).decode()
(process,) = json.loads(text)["processes"]
stacks = [stack["frames"] for stack in process["threads"] + process["tasks"]]
for frame in frames:
    found = [seen["locals"] for stack in stacks for seen in stack if same(frame, seen)]
    if len(found) == 1:
        compare(frame, found[0])
    else:
        differences.append("%s is there %d times" % (frame.f_code.co_name, len(found)))
for_people = subprocess.check_output([EVPROF, "stack", "--locals", str(os.getpid())]).decode()
for line in ["none = None", "text = 'text'", 'quotes = "it\'s"', "both = '\\'\"'", "control = '\\n\\t\\r\\\\\\u0000\\u001b[0m\\u007f'", "data = b'data'",
             "items: list of 3", "thing: Thing", "ascii_text = '%s'... (101 in all)" % ("a" * 100), "very: str of 100000"]:
    if "\n        %s\n" % line not in for_people:
        differences.append("no line %s" % line)
print("\n".join(differences) or "same")
sys.stdout.flush()
os._exit(1 if differences else 0)
