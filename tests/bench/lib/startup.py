"""What a start costs: python -c pass, and a program that is not Python, with and without libevprof.so.

In an empty virtual environment: what other packages run at every start (.pth files) is work of theirs that is recorded
like any other, not the cost of a start.
"""
import os
import shutil

from . import stats, target


def pairs(interpreter, arguments, bare, measured, count, scratch):
    """Milliseconds of each: two lists, of runs that took turns."""
    times = [[], []]
    for turn in range(count + 1):
        for which in (0, 1) if turn % 2 else (1, 0):
            result = target.run(interpreter, arguments, measured if which else bare)
            if result.status:
                raise target.Failed("status %d: %s" % (result.status, target.last_line(result.err)))
            if turn:  # the first pair warms the page cache
                times[which].append(result.wall_s * 1e3)
        scratch.clear()
    return times


def row(name, times, limit_ms):
    differences = [b - a for a, b in zip(*times)]
    return {
        "program": name,
        "bare_ms": stats.spread(times[0]),
        "measured_ms": stats.spread(times[1]),
        "added_ms": stats.spread(differences),
        "limit_ms": limit_ms,
    }


def bare_environment(interpreter, scratch):
    """The interpreter in an empty virtual environment."""
    path = os.path.join(scratch.path, "venv-" + interpreter.name)
    result = target.run(interpreter, ["-m", "venv", "--without-pip", path], target.environment())
    if result.status:
        raise target.Failed("venv: " + target.last_line(result.err))
    return target.Interpreter.at(interpreter, os.path.join(path, "bin", "python"))


def measure(rows, interpreters, count, scratch, progress, failures, limit_python_ms, limit_other_ms):
    for interpreter in interpreters:
        name = "Python %s -c pass" % interpreter.name
        progress("start: " + name)
        try:
            env = target.preloaded(scratch.template())
            start = bare_environment(interpreter, scratch)
            times = pairs(start, ["-c", "pass"], target.environment(), env, count, scratch)
        except target.Failed as error:
            failures.append("start, %s: %s" % (name, error))
            continue
        rows.append(row(name, times, limit_python_ms))
    other = shutil.which("true")
    progress("start: true")
    env = target.preloaded(scratch.template())
    times = pairs(None, [other], target.environment(), env, count * 5, scratch)
    rows.append(row("true (not Python)", times, limit_other_ms))
