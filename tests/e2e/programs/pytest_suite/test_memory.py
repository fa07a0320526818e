"""Tests of memory. As a program it prints what tracemalloc says of each: the bytes held at its end and at its peak.

$ORACLE is a file with that, and $LIMITS is "above" or "below" it, or "zero".
"""
import gc
import json
import os
import threading
import tracemalloc

import app

kept = []


def peak():
    app.allocate(300, 1000)
    for _ in range(10):
        app.allocate(5, 100000)


def leak():
    app.leak(250000)
    app.allocate(10, 10000)


def garbage():
    """Only the collector of cycles frees it."""
    for _ in range(20):
        cycle = app.allocate(1, 30000)
        cycle.append(cycle)


def grows():
    block = bytearray()
    for _ in range(400):
        block += bytes(1000)
    kept.append(block)


def threads():
    thread = threading.Thread(target=app.leak, args=(200000,))
    thread.start()
    thread.join()


BODIES = [peak, leak, garbage, grows, threads]


def measure(body):
    body()  # what only the first call keeps is no part of it
    gc.collect()
    tracemalloc.start()
    body()
    most = tracemalloc.get_traced_memory()[1]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held, most


if __name__ == "__main__":
    print(json.dumps({body.__name__: measure(body) for body in BODIES}))
else:
    import pytest

    with open(os.environ["ORACLE"]) as file:
        oracle = json.load(file)

    def limit(value):
        """A twentieth above or below, and what threads and Python's own caches hold."""
        how = os.environ["LIMITS"]
        return 0 if how == "zero" else int(value * 1.05) + 4000 if how == "above" else max(0, int(value * 0.95) - 4000)

    def marks(body, number, name):
        return pytest.param(body, id="%s-%s" % (body.__name__, name),
                            marks=pytest.mark.evprof(warmups=1, **{name: limit(oracle[body.__name__][number])}))

    @pytest.mark.parametrize("body", [marks(body, 1, "max_memory") for body in BODIES] +
                             [marks(body, 0, "max_leak") for body in (leak, grows, threads)])
    def test_bytes(body):
        body()

    # Garbage of cycles is no leak, whatever the limits are.
    @pytest.mark.evprof(max_leak=0, warmups=1)
    @pytest.mark.skipif(os.environ["LIMITS"] != "above", reason="it does not fail")
    def test_garbage():
        garbage()

    @pytest.mark.evprof(max_allocations={"zero": 0, "above": 450, "below": 399}[os.environ["LIMITS"]], warmups=1)
    def test_allocations():
        app.allocate(200, 100)  # an object and its bytes
