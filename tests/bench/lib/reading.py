"""How fast the package reads a trace: rows a second of to_numpy() and batches(), and those of numpy and pyarrow with the same rows.

read_rows.py measures, in a Python that has numpy, and reads in turns. pyarrow is measured where it is.
"""
import json
import os

from . import collector, stats, target

# Program, how often, its events: what most traces have, and one in which the size of each freed block is followed.
TRACES = [("simulation", 1, "call,c_call"), ("simulation", 1, None)]
READ_ROWS = os.path.join(target.BENCH, "read_rows.py")


def packages(interpreter):
    """Where tests/interpreters/packages.sh puts what its pins name."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.environ.get("TEST_PACKAGES") or os.path.join(cache, "evprof", "packages")
    return os.path.join(folder, "3.%d" % interpreter.minor)


def environment(interpreter):
    found = [packages(interpreter), os.path.join(target.REPO, "tools", "python")]
    return target.environment(PYTHONPATH=os.pathsep.join(found),
                              EVPROF_READER_LIBRARY=os.path.join(target.BUILD, "libevprof-reader.so"))


def reader(interpreters):
    """The interpreter that reads: one with pyarrow, or one with numpy at least. None: there is none."""
    for module in ("numpy, pyarrow.parquet", "numpy"):
        for interpreter in interpreters:
            if not target.run(interpreter, ["-c", "import " + module], environment(interpreter)).status:
                return interpreter
    return None


def figures(times, rows):
    """Million rows a second of each way, and what to_numpy() takes, of numpy's copy of the same bytes."""
    found = {name: stats.spread([rows / s / 1e6 for s in seconds]) for name, seconds in times.items() if seconds}
    found["of_copy"] = stats.ratio(times["to_numpy"], times["copy"])
    if times["parquet"]:
        found["of_parquet"] = stats.ratio(times["batches"], times["parquet"])
    return found


def session(interpreter, program, repeat, events, rounds, scratch):
    scratch.clear()
    target.harness(interpreter, target.program(program), target.preloaded(scratch.template(), events), None, repeat)
    path = scratch.take()[0]
    result = target.run(interpreter, [READ_ROWS, path, str(rounds)], environment(interpreter))
    if result.status:
        raise target.Failed("status %d: %s" % (result.status, target.last_line(result.err)))
    measured = json.loads(target.measured_line(result.out))
    row = {"python": interpreter.name, "program": program, "events_asked": events or "default", "repeat": repeat,
           "events": collector.totals(path)[0], "rows": measured["rows"]}
    for clock in ("wall", "cpu"):
        row[clock] = figures(measured[clock], measured["rows"])
    scratch.clear()
    return row


def measure(rows, interpreters, rounds, scratch, progress, failures):
    interpreter = reader(interpreters)
    if interpreter is None:
        failures.append("reading: no Python here has numpy; tests/interpreters/packages.sh fetches it")
        return
    for program, repeat, events in TRACES:
        progress("reading: Python %s, %s, %s" % (interpreter.name, program, events or "default events"))
        try:
            rows.append(session(interpreter, program, repeat, events, rounds, scratch))
        except target.Failed as error:
            failures.append("reading, Python %s: %s" % (interpreter.name, error))
