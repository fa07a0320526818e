"""Runs inside the interpreter that is measured: times one program and prints the times as one line of JSON.

usage: harness.py PROGRAM [--with cprofile|viztracer|emptyhook|leastmemory|memray...] [--repeat N]

Started by tests/bench/lib/target.py. The clock runs around the program's main() (without one: around the whole script),
so neither the start of the interpreter nor imports are in the figures. `emptyhook` and `leastmemory` change nothing:
they refuse to go on where the library that is to be preloaded is not at work. Must run on every Python from 3.6 on.
"""
import argparse
import contextlib
import json
import os
import sys
import time


def load(path):
    """The program as a function to call: its main(), or all of it."""
    with open(path) as file:
        code = compile(file.read(), path, "exec")
    names = {"__name__": "bench_program", "__file__": path}
    if "main" not in code.co_names:
        return lambda: exec(code, dict(names))
    exec(code, names)
    return names["main"]


#: What a preloaded library of the bench says of itself.
INSTALLED = {"emptyhook": "empty_hook_installed", "leastmemory": "least_memory_installed"}


def require(name):
    import ctypes

    installed = getattr(ctypes.CDLL(None), INSTALLED[name], None)
    if installed is None or not installed():
        sys.exit("harness: %s() is not there or 0: a library of tests/bench is not at work here" % INSTALLED[name])


def memray_tracker(name):
    """The file is BENCH_MEMRAY; "-python" and "-native" in the name are memray's options."""
    import memray

    return memray.Tracker(os.environ["BENCH_MEMRAY"], native_traces="-native" in name,
                          trace_python_allocators="-python" in name)


@contextlib.contextmanager
def profiler(name):
    if name == "cprofile":
        import cProfile

        profile = cProfile.Profile()
        profile.enable()
        yield
        profile.disable()
    elif name == "viztracer":
        from viztracer import VizTracer

        tracer = VizTracer(verbose=0)
        tracer.start()
        yield
        tracer.stop()
    elif name.startswith("memray"):
        with memray_tracker(name):
            yield
    else:
        if name in INSTALLED:
            require(name)
        yield


def measure(main, repeat, name):
    """Seconds of wall clock and of CPU (this process, all threads)."""
    with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
        wall, cpu = time.perf_counter(), time.process_time()
        with profiler(name):
            for _ in range(repeat):
                main()
        return time.perf_counter() - wall, time.process_time() - cpu


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--with", dest="profiler", default="")
    parser.add_argument("--repeat", type=int, default=1)
    return parser.parse_args()


def run():
    args = options()
    wall, cpu = measure(load(args.program), args.repeat, args.profiler)
    print(json.dumps({"wall": wall, "cpu": cpu, "python": sys.version.split()[0]}))


run()
