"""Blocks that lines allocate in a known order, for what evprof memory says of them. `by_line.py` is for evprof.
`by_line.py tracemalloc` prints what tracemalloc has by line at the peak and before the end, and `by_line.py rss` what the
kernel has of the process. Only lines with "# counted" are compared: their blocks come from no free list. The program ends
at once, so that its end is the moment of the last look."""
import json
import os
import sys
import threading

with open(__file__, encoding="utf-8") as source:
    counted = [number for number, line in enumerate(source, 1) if line.rstrip().endswith("# counted")]
sizes = list(range(1000, 1200))
kept, others = [None] * 1000, [None] * 200
looks = {}


def look(moment):
    if sys.argv[1:] == ["tracemalloc"]:
        import tracemalloc
        sums = dict.fromkeys(counted, 0)
        for trace in tracemalloc.take_snapshot().traces:
            frame = trace.traceback[0]
            if frame.filename == __file__ and frame.lineno in sums:
                sums[frame.lineno] += trace.size
        looks[moment] = sums


def keep():
    place = 0
    for size in sizes:
        kept[place] = bytes(size)  # counted
        others[place] = bytearray(size)  # counted
        place += 1


def grow():
    block = bytearray(600)  # counted
    for _ in range(8):
        block.extend(kept[0])  # counted
    kept[900] = block


def drop():
    for size in sizes:
        bytes(size)  # counted


def spike():
    block = bytearray(9000001)  # counted
    look("peak_bytes")
    return len(block)


def in_thread():
    kept[901] = bytes(70001)  # counted


def main():
    keep()
    drop()
    spike()
    grow()
    thread = threading.Thread(target=in_thread, name="second")
    thread.start()
    thread.join()
    look("end_bytes")


if sys.argv[1:] == ["tracemalloc"]:
    import tracemalloc
    tracemalloc.start()
main()
if sys.argv[1:] == ["tracemalloc"]:
    print(json.dumps({"looks": looks, "sizes": sum(sizes) + 33 * len(sizes), "count": len(sizes)}))
if sys.argv[1:] == ["rss"]:
    with open("/proc/self/status", encoding="ascii") as status:
        print(next(line for line in status if line.startswith("VmHWM:")).split()[1])
    sys.exit()
sys.stdout.flush()
os._exit(0)
