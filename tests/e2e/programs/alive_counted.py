"""Keeps some blocks and frees others, in four threads and in a forked child: `alive_counted.py COUNT [END]`. COUNT blocks of each
thread are freed at once. Blocks that a thread replaces are those of another one. With END it goes on, slowly, until that file
exists. Each process prints its own counters, a line of JSON: its pid, and [function, line, blocks made, bytes made, bytes kept]."""
import json
import os
import sys
import threading
import time

ONE = b"x"
KEPT = 300
ROUNDS = 5
THREADS = 4
count = int(sys.argv[1])
slots = [[None] * KEPT for _ in range(THREADS)]
ready = threading.Barrier(THREADS)


def keep(mine):
    for at in range(KEPT):
        mine[at] = ONE * 1000


def churn(times):
    for _ in range(times):
        ONE * 700


def replace(others):
    for _ in range(ROUNDS):
        for at in range(KEPT // 2):
            others[at] = ONE * 1500


def work(number):
    keep(slots[number])
    ready.wait()
    replace(slots[(number + 1) % THREADS])
    churn(count)


def run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def report(threads, churned, replaced):
    def row(function, lines, made, kept, size):
        size = sys.getsizeof(ONE * size)
        return [function.__name__, function.__code__.co_firstlineno + lines, made, made * size, kept * size]

    replaced *= KEPT // 2
    print(json.dumps({"pid": os.getpid(), "rows": [row(keep, 2, threads * KEPT, threads * KEPT - replaced, 1000),
                                                  row(churn, 2, churned, 0, 700),
                                                  row(replace, 3, replaced * ROUNDS, replaced, 1500)]}), flush=True)


run([threading.Thread(target=work, args=(number,)) for number in range(THREADS)])
child = os.fork()
if not child:
    # No thread: one of the parent's may have been loading libgcc for its end at the fork, which makes the end of another one crash.
    slots = [[None] * KEPT]
    keep(slots[0])
    churn(count)
    report(1, count, 0)
    os._exit(0)
os.waitpid(child, 0)
report(THREADS, THREADS * count, THREADS)
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
    keep([None] * KEPT)
