"""count.py cprofile|evprof PROGRAM [FILE]: counts the calls of PROGRAM's main(), the second time it runs.

cprofile writes to FILE, as JSON, a list of [file, line, name, calls, primitive calls], C functions with the file "~"
and cProfile's own label. evprof sets the marks "begin" and "end". What both do around main() is the same but for the
profiler. Entries of the same name are added up, which pstats does not do. The garbage collector rests: when it runs
depends on how much was allocated, and it runs Python code (weak references, destructors).
"""
import cProfile
import gc
import importlib.util
import json
import sys

profiles = []


def load(path):
    spec = importlib.util.spec_from_file_location("counted", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["counted"] = module
    spec.loader.exec_module(module)
    return module


def plain(function):
    def wrapped(*arguments):
        function(*arguments)
    return wrapped


def profiled(function):
    """Up to 3.11 a profile covers the thread that enables it."""
    def wrapped(*arguments):
        profile = cProfile.Profile()
        profiles.append(profile)
        profile.enable()
        function(*arguments)
        profile.disable()
    return wrapped


def add_up(found):
    counts = {}
    for profile in found:
        for entry in profile.getstats():
            code = entry.code
            key = ("~", 0, code) if isinstance(code, str) else (code.co_filename, code.co_firstlineno, code.co_name)
            total, primitive = counts.get(key, (0, 0))
            counts[key] = total + entry.callcount, primitive + entry.callcount - entry.reccallcount
    return counts


def by_cprofile(program, path):
    profile = cProfile.Profile()
    profiles.append(profile)
    program.wrap = profiled if sys.version_info < (3, 12) else plain
    profile.enable()
    program.main()
    profile.disable()
    rows = [list(key) + list(value) for key, value in sorted(add_up(profiles).items())]
    with open(path, "w") as file:
        json.dump(rows, file, indent=0)


def by_evprof(program):
    import ctypes
    mark = ctypes.CDLL(None).evprof_mark
    mark.argtypes = [ctypes.c_char_p]
    mark.restype = None
    begin, end = b"begin", b"end"
    program.wrap = plain
    mark(begin)
    program.main()
    mark(end)


def main():
    program = load(sys.argv[2])
    for name in getattr(program, "NEEDS", []):
        __import__(name)
    program.wrap = plain
    program.main()
    gc.collect()
    gc.disable()
    if sys.argv[1] == "cprofile":
        by_cprofile(program, sys.argv[3])
    else:
        by_evprof(program)


main()
