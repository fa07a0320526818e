"""What recording memory adds, against what memray adds: the same Python, the same program, in turns.

Beside it stands what the least recorder adds (least_memory.c), which knows no stack.
"""
import os

from . import stats, target


class Row:
    """A program, what evprof records of it, the least recorder, how memray runs (None: not measured), the ratio's bound."""

    def __init__(self, title, program, events, native, least, memray, bound):
        self.title, self.program, self.events, self.native = title, program, events, native
        self.least, self.memray, self.bound = least, memray, bound


ROWS = [
    Row("Python's allocators", "alloc", "mem", False, target.LEAST_PYTHON_MEMORY, "memray-python", 0.12),
    Row("malloc without native stacks", "mallocs", "mem,malloc", False, target.LEAST_MALLOC, "memray", 0.5),
    Row("malloc with native stacks", "mallocs", "mem,malloc", True, target.LEAST_MALLOC, "memray-native", 0.2),
    Row("Python's allocators with native stacks", "alloc", "mem", True, target.LEAST_PYTHON_MEMORY, "memray-python-native",
        0.2),
    Row("eight threads of C", "mallocs_threads", "mem,malloc", False, target.LEAST_MALLOC, None, 1.25),
]


def packages(interpreter):
    """Where tests/interpreters/packages.sh puts memray."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.environ.get("TEST_PACKAGES") or os.path.join(cache, "evprof", "packages")
    return os.path.join(folder, "3.%d-peaks" % interpreter.minor)


def setups(row, interpreter, scratch):
    """Name -> (environment, profiler inside the harness)."""
    more = {"BENCH_MALLOCS": target.MALLOCS, "PYTHONPATH": packages(interpreter)}
    native = {"EVPROF_NATIVE": "1"} if row.native else {}
    evprof = target.preloaded(scratch.template(), row.events)
    found = {"bare": (target.environment(**more), None), "evprof": (dict(evprof, **more, **native), None),
             "least": (target.environment(LD_PRELOAD=row.least, **more), "leastmemory")}
    if row.memray:
        file = {"BENCH_MEMRAY": os.path.join(scratch.path, "memray.bin")}
        found["memray"] = (target.environment(**more, **file), row.memray)
    return found


def on_disk(scratch):
    """(bytes, allocations) of the trace that was just made."""
    path = scratch.take()[-1]
    info = target.info([path])
    kinds = ("malloc", "calloc", "realloc", "mmap")
    made = sum(t["events"].get(k, 0) for p in info["processes"] for t in p["threads"] for k in kinds)
    return os.path.getsize(path), made, info["lost"]


def once(interpreter, path, environment, profiler, scratch):
    file = environment.get("BENCH_MEMRAY")
    if file and os.path.exists(file):
        os.unlink(file)  # memray writes over nothing
    measured = target.harness(interpreter, path, environment, profiler)
    return measured["wall"], measured["cpu"]


def measure_row(row, interpreter, rounds, scratch):
    found = setups(row, interpreter, scratch)
    samples, disk = {name: {"wall": [], "cpu": []} for name in found}, None
    names = list(found)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            wall, cpu = once(interpreter, target.program(row.program), *found[name], scratch)
            samples[name]["wall"].append(wall)
            samples[name]["cpu"].append(cpu)
            if name == "evprof":
                disk = on_disk(scratch)
            scratch.clear()
    result = {"python": interpreter.name, "program": row.title, "bound": row.bound, "samples": samples, "disk": disk}
    for clock in ("wall", "cpu"):
        bare = samples["bare"][clock]
        result[clock] = {"bare_s": stats.spread(bare),
                         "times_bare": {n: stats.ratio(s[clock], bare) for n, s in samples.items() if n != "bare"}}
        result[clock]["ratio"], result[clock]["least"] = (result[clock]["times_bare"][n] for n in ("evprof", "least"))
        if row.memray:
            theirs = samples["memray"][clock]
            result[clock]["ratio"] = stats.added_ratio(bare, samples["evprof"][clock], theirs)
            result[clock]["least"] = stats.added_ratio(bare, samples["least"][clock], theirs)
    return result


def measure(rows, interpreters, rounds, scratch, progress, failures):
    for interpreter in interpreters:
        env = target.environment(PYTHONPATH=packages(interpreter))
        if target.run(interpreter, ["-c", "import memray"], env).status:
            continue
        for row in ROWS:
            progress("memory: Python %s, %s" % (interpreter.name, row.title))
            try:
                rows.append(measure_row(row, interpreter, rounds, scratch))
            except target.Failed as error:
                failures.append("memory, Python %s, %s: %s" % (interpreter.name, row.title, error))
