"""Runs main() of a program for its memory, and nothing else that allocates much.

measure.py evprof PROGRAM SCALE        between two marks
measure.py memray PROGRAM SCALE FILE   recorded by memray; prints the peak and the allocations

A program's BEFORE is imported before: OpenBLAS maps 32 MiB in a constructor of its library, which memray cannot see (it
changes a library's calls after dlopen() has returned).
"""
import ctypes
import gc
import importlib
import importlib.util
import sys

import memray  # in both, as it imports much that programs import, too


def load(path):
    spec = importlib.util.spec_from_file_location("measured", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in getattr(module, "BEFORE", []):
        importlib.import_module(name)
    return module.main


def by_evprof(main, scale):
    mark = ctypes.CDLL(None).evprof_mark
    mark(b"begin")
    main(scale)
    mark(b"end")


def by_memray(main, scale, file):
    with memray.Tracker(file, native_traces=False, trace_python_allocators=True):
        main(scale)
    metadata = memray.FileReader(file).metadata
    print(metadata.peak_memory, metadata.total_allocations)


def run():
    how, path, scale = sys.argv[1], sys.argv[2], int(sys.argv[3])
    main = load(path)
    gc.collect()
    if how == "memray":
        by_memray(main, scale, sys.argv[4])
    else:
        by_evprof(main, scale)


run()
