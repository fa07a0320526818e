"""How the cost of an event grows: with threads, processes, the depth of the stack, the functions, the length, the rate of events.
Calls are recorded, but for `allocations`, which are made below that many functions, and are recorded with their stacks alone.

A program (programs/growth.py) runs bare and recorded in turn. What recording adds to the CPU time of everything, the collector's
included, is divided by the events; memory is the collector's and the program's, above that of the bare program.
"""
import os

from . import stats, target

PROGRAM = os.path.join(target.BENCH, "programs", "growth.py")
STEPS = {
    "threads": (1, 2, 8, 64, 500),
    "processes": (1, 8, 64, 500),
    "depth": (10, 100, 1000, 10000),
    "allocations": (10, 100, 1000, 10000),
    "functions": (10, 1000, 100000, 1000000),
    "length": (1, 10, 100, 1000),
    "rate": (1000, 10000, 100000, 1000000),
}
EVENTS = {"allocations": "mem"}


def measure_one(interpreter, kind, number, rounds, scratch):
    words, evprof = [PROGRAM, kind, str(number)], [target.EVPROF, "run", "-q", "--events", EVENTS.get(kind, "call"), "-o", scratch.template()]
    bare, own, row = [], [], {"python": interpreter.name, "kind": kind, "number": number}
    for _ in range(1 if kind == "length" and number >= 1000 else rounds):
        bare.append(target.run_whole(interpreter, words, target.environment()))
        own.append(target.run_whole(interpreter, words, target.environment(), evprof))
        info = target.info(scratch.take()[-1:])
        row.update(events=info["events"], lost=info["lost"], bytes=info["size_bytes"])
        scratch.clear()
    row["ns"] = stats.spread([(o.cpu_s - b.cpu_s) / row["events"] * 1e9 for o, b in zip(own, bare)])
    row["bare_s"] = stats.spread([b.cpu_s for b in bare])
    row["wall"] = stats.ratio([o.wall_s for o in own], [b.wall_s for b in bare])
    row["mib"] = stats.spread([(o.peak_kib - b.peak_kib) / 1024 for o, b in zip(own, bare)])
    return row


def measure(rows, interpreters, rounds, scratch, progress, failures):
    for interpreter in interpreters:
        for kind, numbers in STEPS.items():
            for number in numbers:
                progress("growth: Python %s, %d %s" % (interpreter.name, number, kind))
                try:
                    rows.append(measure_one(interpreter, kind, number, rounds, scratch))
                except target.Failed as error:
                    failures.append("growth, Python %s, %d %s: %s" % (interpreter.name, number, kind, error))
