"""Stands in for pyperf: runs a benchmark of pyperformance in this process, a fixed number of times, without measuring.

pyperf runs each benchmark in processes of its own and as often as the clock asks for; a profiler's runs are to be
compared with the same work. BENCH_LOOPS has the number of loops of each benchmark of the file, with commas. Without it
each runs for BENCH_SECONDS of CPU time, and the numbers are the last line on stdout. With BENCH_CPU the process keeps to that
processor. See run.py.
"""
import argparse
import os
import platform
import time

perf_counter = time.perf_counter
_given = [int(loops) for loops in os.environ.get("BENCH_LOOPS", "").split(",") if loops]
_seconds = float(os.environ.get("BENCH_SECONDS", "1"))
loops_run = []
if "BENCH_CPU" in os.environ:
    os.sched_setaffinity(0, {int(os.environ["BENCH_CPU"])})


def python_implementation():
    return platform.python_implementation().lower()


def _run(repeat):
    """repeat(N) runs the benchmark N times."""
    if _given:
        loops_run.append(_given[len(loops_run)])
        repeat(loops_run[-1])
        return
    begin, loops, done = time.process_time(), 1, 0
    while time.process_time() - begin < _seconds:
        repeat(loops)
        done += loops
        loops *= 2
    loops_run.append(done)


class Runner:
    def __init__(self, **_):
        self.argparser = argparse.ArgumentParser()
        self.metadata = {}
        self.args = None

    def parse_args(self, args=None):
        self.args = self.argparser.parse_args(args)
        return self.args

    def bench_func(self, name, function, *args, **_):
        def repeat(loops):
            for _ in range(loops):
                function(*args)

        _run(repeat)

    def bench_time_func(self, name, function, *args, **_):
        _run(lambda loops: function(loops, *args))

    def bench_async_func(self, name, function, *args, **_):
        import asyncio

        async def several(loops):
            for _ in range(loops):
                await function(*args)

        _run(lambda loops: asyncio.run(several(loops)))
