"""native_lines.py LIBRARY: native blocks of half a megabyte and more, each allocated at a line of its own, and kept. Prints "line bytes
blocks" of each line. LIBRARY is made of native_keep.c.

ctypes.CDLL releases the GIL around malloc(), ctypes.PyDLL does not; the callback runs Python below a native function.
"""
import ctypes
import sys
import threading

free = ctypes.CDLL(None)
held = ctypes.PyDLL(None)
for library in (free, held):
    library.malloc.restype = library.calloc.restype = library.mmap.restype = ctypes.c_void_p
    library.malloc.argtypes = (ctypes.c_size_t,)
    library.calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t) + (ctypes.c_int,) * 3 + (ctypes.c_size_t,)
keep, keep_free = ctypes.PyDLL(sys.argv[1]).keep, ctypes.CDLL(sys.argv[1]).keep
keep.restype = keep_free.restype = None
rows = {}
lock = threading.Lock()


def count(size):
    with lock:
        line = sys._getframe(1).f_lineno
        bytes_, blocks = rows.get(line, (0, 0))
        rows[line] = bytes_ + size, blocks + 1


def leaf(size):
    held.malloc(size); count(size)
    free.malloc(size + 1); count(size + 1)


def other(size):
    free.calloc(3, size); count(3 * size)


def maps(size):
    free.mmap(None, size, 3, 0x22, -1, 0); count(size)


def recursive(depth, size):
    if depth:
        recursive(depth - 1, size)
    held.malloc(size); count(size)


def generator(size):
    while True:
        free.malloc(size); count(size)
        yield


def compare(a, b):
    free.malloc(700001); count(700001)
    return 0


def quiet():
    """The lines below the first allocate nothing else: no object of Python's stands before their blocks."""
    known = [[n] for n in range(1000)]
    keep()
    keep_free()
    silent()
    keep()
    keep_free()


def silent():
    keep_free()
    keep()


def work(base):
    made = generator(base + 40)
    for _ in range(50):
        leaf(base)
        other(base + 10)
        recursive(5, base + 20)
        next(made)
    maps(1 << 20)
    for _ in range(20):
        quiet()


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
work(600000)
threads = [threading.Thread(target=work, args=(600100 + 100 * n,)) for n in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
array = (ctypes.c_int * 2)(1, 2)
free.qsort.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, COMPARE)
free.qsort(array, 2, 4, COMPARE(compare))
for function, lines in (quiet, (3, 4, 6, 7)), (silent, (1, 2)):
    for line in lines:
        rows[function.__code__.co_firstlineno + line] = 80 * 500000, 80
for line in sorted(rows):
    print(line, *rows[line])
