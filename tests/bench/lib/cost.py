"""What evprof adds to a program's time, against an empty hook, cProfile and other profilers, in interleaved rounds."""
import json
import os
import re

from . import stats, target

PROGRAMS = ["calls", "json_pure", "tokens", "differences", "simulation", "pingpong"]
PROGRAMS_QUICK = ["calls", "tokens"]
DISTURBED = 1.02  # wall-clock over CPU time
CLOSING_LINE = re.compile(r"^evprof: (\d+) events? .*?\b(\d+) lost", re.M)


def variants(interpreter, scratch, with_evprof):
    """Name -> (environment, profiler inside the harness)."""
    setups = {
        "bare": (target.environment(), None),
        "hook": (target.environment(LD_PRELOAD=target.EMPTY_HOOK), "emptyhook"),
        "least": (target.environment(LD_PRELOAD=target.LEAST_HOOK), "emptyhook"),
        "cprofile": (target.environment(), "cprofile"),
    }
    if with_evprof:
        setups["calls"] = (target.preloaded(scratch.template(), "call,c_call"), None)
        setups["all"] = (target.preloaded(scratch.template()), None)
    if interpreter.has("viztracer"):
        setups["viztracer"] = (target.environment(), "viztracer")
    return setups


def lost_events(stderr):
    """The losses in the closing line, or None where there is no such line."""
    found = CLOSING_LINE.search(stderr)
    return int(found.group(2)) if found else None


def rounds_of(interpreter, path, setups, rounds, scratch, repeat=1):
    """{variant: {"wall": [...], "cpu": [...]}} and the events lost; the order turns from round to round."""
    samples = {name: {"wall": [], "cpu": []} for name in setups}
    lost = 0
    names = list(setups)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            env, profiler = setups[name]
            try:
                measured = target.harness(interpreter, path, env, profiler, repeat)
            except target.Failed as error:
                raise target.Failed("%s, %s: %s" % (os.path.basename(path), name, error)) from None
            samples[name]["wall"].append(measured["wall"])
            samples[name]["cpu"].append(measured["cpu"])
            if "EVPROF_OUTPUT" in env:
                lost += lost_events(measured["stderr"]) or 0
            scratch.clear()
    return samples, lost


def steady_clock(samples):
    """Which clock judges: CPU time where other programs took the processor from runs that never wait."""
    shares = [w / c for name in ("bare", "hook") for w, c in zip(samples[name]["wall"], samples[name]["cpu"])]
    return "wall" if stats.spread(shares)["high"] <= DISTURBED else "cpu"


def summary(samples):
    """The figures of the table out of one program's samples."""
    row = {"clock": steady_clock(samples)}
    for clock in ("wall", "cpu"):
        bare = samples["bare"][clock]
        row[clock] = {
            "bare_s": stats.spread(bare),
            "times_bare": {n: stats.ratio(s[clock], bare) for n, s in samples.items() if n != "bare"},
        }
        if "calls" in samples:
            mine = samples["calls"][clock]
            row[clock]["least_of_hook"] = stats.added_ratio(bare, samples["least"][clock], samples["hook"][clock])
            row[clock]["of_least"] = stats.added_ratio(bare, mine, samples["least"][clock])
            row[clock]["of_hook"] = stats.added_ratio(bare, mine, samples["hook"][clock])
            row[clock]["of_cprofile"] = stats.added_ratio(bare, mine, samples["cprofile"][clock])
    return row


def measure(rows, interpreters, rounds, programs, with_evprof, scratch, progress, failures):
    for interpreter in interpreters:
        setups = variants(interpreter, scratch, with_evprof)
        for name in programs:
            progress("cost: Python %s, %s" % (interpreter.name, name))
            try:
                samples, lost = rounds_of(interpreter, target.program(name), setups, rounds, scratch)
            except target.Failed as error:
                failures.append("cost, Python %s: %s" % (interpreter.name, error))
                continue
            row = {"python": interpreter.name, "program": name, "lost": lost, "samples": samples}
            row.update(summary(samples))
            rows.append(row)


def allocation_variants(interpreter, scratch, with_evprof):
    """Name -> (environment, words before the harness)."""
    setups = {"bare": (target.environment(), [])}
    if with_evprof:
        setups["calls"] = (target.preloaded(scratch.template(), "call,c_call"), [])
        setups["all"] = (target.preloaded(scratch.template()), [])
    if interpreter.has("memray"):
        words = ["-m", "memray", "run", "-q", "-f", "--trace-python-allocators", "-o"]
        setups["memray"] = (target.environment(), words + [os.path.join(scratch.path, "memray.bin")])
    return setups


def allocation_run(interpreter, path, env, words):
    """alloc.py once. memray takes the harness as its script, so its words come before it."""
    result = target.run(interpreter, words + [target.HARNESS, path], env)
    if result.status:
        raise target.Failed("status %d: %s" % (result.status, target.last_line(result.err)))
    return json.loads(target.last_line(result.out))["wall"]


def allocations(rows, interpreters, rounds, with_evprof, scratch, progress, failures):
    path = target.program("alloc")
    for interpreter in interpreters:
        progress("allocations: Python %s" % interpreter.name)
        setups = allocation_variants(interpreter, scratch, with_evprof)
        walls = {name: [] for name in setups}
        try:
            for _ in range(rounds):
                for name, (env, words) in setups.items():
                    walls[name].append(allocation_run(interpreter, path, env, words))
                    scratch.clear()
        except target.Failed as error:
            failures.append("allocations, Python %s: %s" % (interpreter.name, error))
            continue
        times = {n: stats.ratio(w, walls["bare"]) for n, w in walls.items() if n != "bare"}
        rows.append({"python": interpreter.name, "bare_s": stats.spread(walls["bare"]), "times_bare": times})
