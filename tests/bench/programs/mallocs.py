"""Nothing but malloc() and free(), by a library of C that is called 2,000 times (native_mallocs.c)."""
import ctypes
import os

LIBRARY = ctypes.CDLL(os.environ["BENCH_MALLOCS"])


def allocate():
    LIBRARY.mallocs_allocate(ctypes.c_ulong(500))


def main():
    for _ in range(2000):
        allocate()
