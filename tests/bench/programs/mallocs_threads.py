"""Eight threads of C that allocate and never meet Python (native_mallocs.c)."""
import ctypes
import os

LIBRARY = ctypes.CDLL(os.environ["BENCH_MALLOCS"])


def main():
    LIBRARY.mallocs_threads(8, ctypes.c_ulong(500000))
