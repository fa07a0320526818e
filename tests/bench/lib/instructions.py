"""Instructions a call costs, counted by valgrind's callgrind: a figure without noise, for comparing two builds.

Two runs of different length are subtracted from each other, so the start is not in the figure.
"""
import os
import re
import shutil

from . import target

PROGRAM = os.path.join(target.BENCH, "programs", "steps.py")
CALLS = 2 * 20000  # calls of Python functions, with one C call each, in one main() of steps.py
COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


def instructions(interpreter, env, profiler, repeat, scratch):
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + os.path.join(scratch.path, "callgrind.out")]
    measured = target.harness(interpreter, PROGRAM, env, profiler, repeat, words)
    if "this process is not recorded" in measured["stderr"]:
        raise target.Failed("this valgrind does not know pidfd_open(2), so evprof cannot join; use a newer one")
    counts = COLLECTED.findall(measured["stderr"])
    if not counts:
        raise target.Failed("valgrind printed no count: " + target.last_line(measured["stderr"]))
    return max(int(count) for count in counts)  # the forks that start the collector print theirs, too


def per_call(interpreter, env, profiler, scratch):
    one = instructions(interpreter, env, profiler, 1, scratch)
    three = instructions(interpreter, env, profiler, 3, scratch)
    scratch.clear()
    return (three - one) / 2 / CALLS


def measure(rows, interpreters, with_evprof, scratch, progress, failures):
    if not shutil.which("valgrind"):
        failures.append("instructions: valgrind is not installed")
        return
    for interpreter in interpreters:
        if len(interpreter.command) > 1:  # valgrind is the host's
            continue
        setups = {"bare": ({}, None), "hook": ({"LD_PRELOAD": target.EMPTY_HOOK}, None), "cprofile": ({}, "cprofile")}
        setups = {name: (target.environment(**more), profiler) for name, (more, profiler) in setups.items()}
        if with_evprof:
            setups["calls"] = (target.preloaded(scratch.template(), "call,c_call"), None)
        row = {"python": interpreter.name}
        rows.append(row)
        try:
            for name, (env, profiler) in setups.items():
                progress("instructions: Python %s, %s" % (interpreter.name, name))
                row[name] = per_call(interpreter, env, profiler, scratch)
        except target.Failed as error:
            failures.append("instructions, Python %s: %s" % (interpreter.name, error))
