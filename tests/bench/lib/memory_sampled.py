"""What sampled memory adds to programs, and what a library adds that only forwards the same calls (least_memory.c).

An interval that few programs reach leaves evprof's hooks and nothing else; the difference is the price of the samples.
"""
from . import cost, stats, target

EVENTS = {"EVPROF_EVENTS": "mem,malloc", "EVPROF_MEMORY_INTERVAL": "512K"}
PROGRAMS = ["alloc", "mallocs"]  # and those of the calls
REPEAT = 3


def variants(scratch):
    """Name -> (environment, profiler inside the harness)."""
    more = {"BENCH_MALLOCS": target.MALLOCS}
    sampled = dict(target.preloaded(scratch.template()), **EVENTS, **more)
    return {
        "bare": (target.environment(**more), None),
        "empty": (target.environment(LD_PRELOAD=target.EMPTY_MEMORY, **more), "leastmemory"),
        "sampled": (sampled, None),
        "hooks": (dict(sampled, EVPROF_MEMORY_INTERVAL="1G"), None),
    }


def measure(rows, interpreters, rounds, programs, scratch, progress, failures):
    for interpreter in interpreters:
        for name in programs + PROGRAMS:
            progress("sampled memory: Python %s, %s" % (interpreter.name, name))
            try:
                samples, _ = cost.rounds_of(interpreter, target.program(name), variants(scratch), rounds, scratch, REPEAT)
            except target.Failed as error:
                failures.append("sampled memory, Python %s: %s" % (interpreter.name, error))
                continue
            rows.append({"python": interpreter.name, "program": name, "samples": samples,
                         "bare_s": stats.spread(samples["bare"]["cpu"]),
                         "cpu": {n: stats.ratio(s["cpu"], samples["bare"]["cpu"]) for n, s in samples.items()}})
