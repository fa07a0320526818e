"""Blocks of several functions, which come and go in a known order. `held.py` is for evprof. `held.py tracemalloc` prints what
tracemalloc says of the same: for each moment, and for the forked child, the bytes alive by the function of this file
that made them. Blocks are large, so that those of free lists do not count; no comprehensions, which are functions until 3.11."""
import json
import os
import sys
import threading

held = {}


def by_function():
    import tracemalloc
    snapshot = tracemalloc.take_snapshot()
    codes = [made.__code__ for made in (first, grown, temporary, spike, produce, in_child, main)]
    sums = {}
    for trace in snapshot.traces:
        frame = trace.traceback[0]
        lines = [code.co_firstlineno for code in codes if code.co_firstlineno <= frame.lineno] or [0]
        if frame.filename == __file__ and lines:
            key = next((code.co_name for code in codes if code.co_firstlineno == max(lines)), None)
            sums[key] = sums.get(key, 0) + trace.size
    sums.pop(None, None)
    return sums


def note(moment):
    if sys.argv[1:] == ["tracemalloc"]:
        held[moment] = by_function()


def first():
    made = []
    for i in range(200):
        made.append(bytes(1000 + i))
    return made


def grown():
    made = []
    for _ in range(20):
        block = bytearray(600)
        for _ in range(8):
            block.extend(b"x" * 3000)  # a realloc
        made.append(block)
    return made


def temporary():
    made = []
    for i in range(150):
        made.append(bytearray(20000 + i))
    return made[::10]


def spike():
    made = bytearray(7000001)
    note("peak")
    return len(made)


def produce(into):
    for i in range(300):
        into.append(bytes(5000 + i))


def in_child(into):
    for i in range(40):
        into.append(bytes(9000 + i))


def main():
    kept = [first(), grown()]
    blocks = []
    thread = threading.Thread(target=produce, args=(blocks,))
    thread.start()
    thread.join()
    kept.append(temporary())
    spike()
    del blocks[:200]  # another thread made them
    del kept[0][50:]
    kept.append(blocks)
    return kept


if sys.argv[1:] == ["tracemalloc"]:
    import tracemalloc
    tracemalloc.start()
result = main()
note("live")
sys.stdout.flush()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    del result[0][:]  # its parent's
    own = []
    in_child(own)
    note("child")
    os.write(writing, json.dumps(held).encode())
    os._exit(0)
os.close(writing)
held = json.loads(os.read(reading, 65536).decode())
os.waitpid(child, 0)
print(json.dumps(held))
