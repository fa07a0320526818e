"""What is left on in production: recording that is stopped, and a trace that keeps its last stretch, in interleaved rounds.

Stopped is compared with the bare program, kept with the same recording of the whole trace.
"""
from . import stats, target

EVENTS = "call,c_call"


def variants(scratch):
    """Name -> environment."""
    whole = target.preloaded(scratch.template(), EVENTS)
    return {
        "bare": target.environment(),
        "stopped": dict(whole, EVPROF_START="0"),
        "whole": whole,
        "kept": dict(whole, EVPROF_KEEP="1s"),
    }


def session(interpreter, name, rounds, scratch):
    setups = variants(scratch)
    samples = {variant: {"wall": [], "cpu": []} for variant in setups}
    names = list(setups)
    for turn in range(rounds):
        for variant in names[turn % len(names):] + names[:turn % len(names)]:
            measured = target.harness(interpreter, target.program(name), setups[variant], None, 3)
            for clock in ("wall", "cpu"):
                samples[variant][clock].append(measured[clock])
            scratch.clear()
    return samples


def measure(rows, interpreters, rounds, programs, scratch, progress, failures):
    for interpreter in interpreters:
        for name in programs:
            progress("production: Python %s, %s" % (interpreter.name, name))
            try:
                samples = session(interpreter, name, rounds, scratch)
            except target.Failed as error:
                failures.append("production, Python %s: %s" % (interpreter.name, error))
                continue
            rows.append({"python": interpreter.name, "program": name})
            for clock in ("wall", "cpu"):
                rows[-1][clock] = {
                    "stopped_of_bare": stats.ratio(samples["stopped"][clock], samples["bare"][clock]),
                    "kept_of_whole": stats.ratio(samples["kept"][clock], samples["whole"][clock]),
                }
