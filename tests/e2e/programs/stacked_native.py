"""Has evprof stack --native print its stacks: python stacked_native.py EVPROF.

The oracle is the C library's backtrace(), which a parked thread calls just before it waits: each native frame is in it, in the same order,
and what is in it only are the evaluations of Python functions, one for each time that C code has called Python. Python's frames are those
of the frame objects. A thread sleeps meanwhile and another computes: what they do is not changed. Ends with status 1 and a line for each
difference.
"""
import ctypes
import functools
import json
import os
import subprocess
import sys
import threading
import time

EVPROF = sys.argv[1]
C = ctypes.CDLL(None)
C.prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER: where yama is strict, a child may read it, too
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
parked, differences, sums, slept = [], [], [], []
held = threading.Lock()
held.acquire()


class Parked:
    def __init__(self, groups):
        self.groups, self.frames, self.addresses = groups, [], (ctypes.c_void_p * 500)()
        self.name, self.tid = threading.current_thread().name, C.syscall(186 if os.uname().machine == "x86_64" else 178)  # gettid


def park(groups):
    """groups: how often C code has called Python below, from Thread._bootstrap() on."""
    state, frame = Parked(groups), sys._getframe()
    while frame:
        state.frames.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    state.count = C.backtrace(state.addresses, 500)
    state.frames[0] = ("park", sys._getframe().f_lineno + 2)
    parked.append(state)
    held.acquire()


def in_qsort(depth=2):
    """qsort() calls Python, which calls qsort()."""
    def compare(one, other):
        in_qsort(depth - 1) if depth else park(4)
        return 0
    C.qsort((ctypes.c_int * 2)(2, 1), ctypes.c_size_t(2), ctypes.c_size_t(4), COMPARE(compare))


def plain():
    park(1)


def in_sorted():
    sorted([2, 1], key=lambda number: functools.reduce(lambda a, b: park(3), [1, 2]))


class Adds:
    def __init__(self):
        self.made = min([1], key=self.key)

    def key(self, number):
        for _ in (generated for generated in self.generator()):
            pass

    def generator(self):
        yield functools.partial(park, 0)()


def computes():
    while not sums or len(sums) < 30:
        sums.append(sum(number * number for number in range(100000)))


def sleeps():
    began = time.monotonic()
    time.sleep(3)
    slept.append(time.monotonic() - began)


def compare(thread, state):
    seen = thread["frames"]
    python = [(frame["function"], frame["line"]) for frame in seen if "function" in frame]
    inserted = [int(frame["address"], 16) + 1 for frame in seen if "native" in frame]
    names = [frame.get("native") or frame.get("function") for frame in seen]
    at = [number for number, frame in enumerate(seen) if frame.get("function") == "park"][0]
    outer = [int(frame["address"], 16) + 1 for frame in seen[at:] if "native" in frame]
    oracle = [address for address in state.addresses[:state.count] if address]
    rest = list(oracle)
    if thread["tid"] != state.tid:
        differences.append("%s is thread %d, not %d" % (state.name, state.tid, thread["tid"]))
    if not thread["native"] or not thread["merged"] or python != state.frames or not inserted:
        differences.append("%s: %s, not %s" % (state.name, thread, state.frames))
        return
    for address in outer:
        while rest and rest[0] != address:
            rest.pop(0)
        if not rest:
            differences.append("%s: %#x is not in %s: %s" % (state.name, address, [hex(word) for word in oracle], names))
            return
    evaluations = [address for address in oracle[oracle.index(outer[0]):] if address not in outer]
    # Until 3.10 each function has an evaluation of its own. 3.11 has one more for a function called with *arguments, as a Thread calls its
    # target; from 3.14 on a Thread has a context call run().
    more = sys.version_info < (3, 12) or sys.version_info >= (3, 14)
    wanted = len(state.frames) - 1 if sys.version_info < (3, 11) else state.groups - 1 + more
    if state.groups and len(evaluations) != wanted:
        differences.append("%s: %d evaluations outside of park(), not %d: %s" % (state.name, len(evaluations), wanted, names))


for target in plain, in_qsort, in_sorted, Adds:
    threading.Thread(target=target, name=target.__name__, daemon=True).start()
others = [threading.Thread(target=target) for target in (computes, sleeps)]
for thread in others:
    thread.start()
while len(parked) < 4:
    time.sleep(0.01)
time.sleep(0.3)
for _ in range(3):
    text = subprocess.check_output([EVPROF, "stack", "--native", "--json", str(os.getpid())]).decode()
    (process,) = json.loads(text)["processes"]
    threads = {thread["name"]: thread for thread in process["threads"]}
    for state in parked:
        compare(threads[state.name], state)
qsort = [frame.get("native", "") for frame in threads["in_qsort"]["frames"]]
if sum(name.startswith("qsort") for name in qsort) < 3:
    differences.append("qsort: %s" % qsort)
with open("/proc/self/status") as status:
    if "\nTracerPid:\t0\n" not in status.read():
        differences.append("it is traced")
for thread in others:
    thread.join()
if set(sums) != {333328333350000} or slept[0] < 3:
    differences.append("sums %s, slept %s" % (sums, slept))
print("\n".join(differences) or "same")
sys.stdout.flush()
os._exit(1 if differences else 0)
