"""Known blocks between two marks, kept until the second. `memory.py tracemalloc` prints what tracemalloc traced
of them, `memory.py` alone is for evprof. Sizes above 512 bytes are exact in both; smaller ones may come
from free lists."""
import ctypes
import sys

SIZES = list(range(600, 3000, 7)) + [100000, 1000003, 50000017]
kept = []


def work():
    made = [b"%d" % size + bytes(size - 40) for size in SIZES]
    made.append(bytearray(5000))
    made[-1].extend(b"y" * 70001)  # grows: realloc
    made.append([None] * 4001)
    made.append(dict.fromkeys(range(1000)))
    for size in SIZES[:50]:
        bytearray(size * 3)  # not kept
    return made


def domains():
    """One block of a size of its own from each domain, and each way to get one."""
    api = ctypes.pythonapi
    for name, size in (("PyMem_Raw", 100003), ("PyMem_", 100019), ("PyObject_", 100043)):
        malloc, calloc = getattr(api, name + "Malloc"), getattr(api, name + "Calloc")
        realloc, free = getattr(api, name + "Realloc"), getattr(api, name + "Free")
        for function in (malloc, calloc, realloc):
            function.restype = ctypes.c_void_p
        malloc.argtypes, calloc.argtypes = [ctypes.c_size_t], [ctypes.c_size_t, ctypes.c_size_t]
        realloc.argtypes, free.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p]
        block = realloc(malloc(size), size + 2)
        free(block)
        free(calloc(size + 4, 1))


def by_tracemalloc():
    import tracemalloc
    tracemalloc.start()
    kept.append(work())
    snapshot = tracemalloc.take_snapshot()
    first, last = work.__code__.co_firstlineno, domains.__code__.co_firstlineno
    sizes = sorted(trace.size for trace in snapshot.traces
                   if trace.size > 512 and trace.traceback[0].filename == __file__
                   and first < trace.traceback[0].lineno < last)
    print(len(sizes), sum(sizes))
    print(*sizes)


def by_evprof():
    mark = ctypes.CDLL(None).evprof_mark
    domains()
    mark(b"begin")
    kept.append(work())
    mark(b"end")


work()
if sys.argv[1:] == ["tracemalloc"]:
    by_tracemalloc()
else:
    by_evprof()
