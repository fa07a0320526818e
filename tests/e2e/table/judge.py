"""judge.py TRACE CSV OPTIONS [TRACE CSV OPTIONS ...]: the same table three times. Used by test_table.c.

    CSV         evprof export --format csv --since-start OPTIONS, read by Python's csv module
    slow.py     the plain replay, without a filter or with a stretch of time only
    evprof      the package in tools/python, where this Python has numpy, pandas, pyarrow

OPTIONS are filters, as words. Prints how many rows were the same, and with what; status 1 and the first row that is
not otherwise.
"""
import argparse
import csv
import sys

import evprof
import plain
import slow

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None
try:
    import pyarrow
except ImportError:
    pyarrow = None

#: How far two readings of a young trace's clock may differ.
CLOCK_NS = 2000000


def from_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    if rows[0] != slow.COLUMNS:
        sys.exit("the columns are %s" % rows[0])
    return [row[:-1] + [str(float(row[-1]))] for row in rows[1:]]


def from_numpy(trace, columns):
    event = {number: name for name, number in evprof.EVENTS.items()}
    texts = {"event": lambda n: event[n]}
    texts.update(dict.fromkeys(("name", "from_name"), trace.names.__getitem__))
    texts.update(dict.fromkeys(("mod", "from_mod"), trace.mods.__getitem__))
    lists = [list(map(texts.get(name, str), columns[name].tolist())) for name in slow.COLUMNS]
    return [list(map(str, row)) for row in zip(*lists)]


def from_pandas(frame):
    return [list(map(str, row)) for row in zip(*(frame[name].tolist() for name in slow.COLUMNS))]


def compare(path, what, theirs, mine):
    """theirs: the rows of the csv."""
    if mine == theirs:
        return
    if len(mine) != len(theirs):
        print("%s: %s has %d rows, the csv %d" % (path, what, len(mine), len(theirs)))
    for i, (left, right) in enumerate(zip(mine, theirs)):
        if left != right:
            print("%s: row %d\n  %s: %s\n  csv: %s" % (path, i, what, left, right))
            break
    sys.exit(1)


def parts(trace, whole):
    """The package's filters leave what they should leave of the whole."""
    pids, tids = {int(row[10]) for row in whole}, {int(row[11]) for row in whole}
    for kinds in (["call", "return"], ["free"], ["malloc", "c_call"], "exception", ["span_end", "counter"]):
        wanted = [row for row in whole if row[3] in ([kinds] if isinstance(kinds, str) else kinds)]
        compare(trace.path, "kinds %s" % kinds, wanted, from_numpy(trace, trace.to_numpy(kinds=kinds, since_start=True)))
    if len(tids) > 1:
        tid = max(tids)
        calls = ["call", "return", "c_call", "c_return"]
        compare(trace.path, "thread %d" % tid, [row for row in whole if int(row[11]) == tid and row[3] in calls],
                from_numpy(trace, trace.to_numpy(kinds=calls, threads=tid, since_start=True)))
    if len(pids) > 1:
        compare(trace.path, "a process", [row for row in whole if int(row[10]) == min(pids)],
                from_numpy(trace, trace.to_numpy(processes=[min(pids)], since_start=True)))


def in_batches(trace, wanted, filters):
    """The same as an Arrow stream, in batches so small that most end within a chunk."""
    rows = [list(map(str, row.values())) for batch in trace.batches(batch_rows=64, since_start=True, **filters)
            for row in batch.to_pylist()]
    compare(trace.path, "Arrow in batches, %s" % filters, wanted, rows)


def only_what_is_asked(path, filters):
    """Of the chunks of events none is read that lies behind the stretch: damage there is not found."""
    trace = plain.load(path)
    behind = [place for thread in trace.threads for place in thread.places
              if thread.process.line.at(place.first_ticks) - trace.start_ns >= int(filters.get("end", 1 << 62)) + CLOCK_NS]
    if not behind:
        return
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[behind[0].offset + 64] ^= 1
    with open(path + ".behind", "wb") as file:
        file.write(data)
    damages = []
    for name in (path, path + ".behind"):
        trace = evprof.load(name)
        trace.to_numpy(**filters)
        damages.append(trace.damage)
    if damages[0] != damages[1]:
        sys.exit("%s: a chunk behind the stretch is read for %s: %s" % (path, filters, damages[1]))


def filters_of(options):
    """The options as to_numpy() takes them. One that comes once is no list: both must do."""
    parser = argparse.ArgumentParser()
    for option, name, kind in (("--include", "include", str), ("--exclude", "exclude", str), ("--process", "processes", int),
                               ("--thread", "threads", int)):
        parser.add_argument(option, dest=name, action="append", type=kind)
    for option, name in (("--from", "start"), ("--to", "end"), ("--min-duration", "min_duration")):
        parser.add_argument(option, dest=name)
    parser.add_argument("--max-depth", dest="max_depth", type=int)
    parser.add_argument("--exclude-syspath", dest="exclude_syspath", action="store_true")
    found = vars(parser.parse_args(options))
    return {name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in found.items()
            if value}


def judge(path, table, options):
    trace, filters = evprof.load(path), filters_of(options.split())
    wanted = from_csv(table)
    if set(filters) <= {"start", "end"}:
        compare(path, "slow.py", wanted, list(slow.rows(plain.load(path), **{name: int(ns) for name, ns in filters.items()})))
    if any(int(a[0]) > int(b[0]) for a, b in zip(wanted, wanted[1:])):
        sys.exit("%s: time goes back" % table)
    if numpy:
        compare(path, "numpy, %s" % filters, wanted, from_numpy(trace, trace.to_numpy(since_start=True, **filters)))
        if set(filters) <= {"start", "end"}:
            only_what_is_asked(path, filters)
        if not filters:
            parts(trace, wanted)
    if pandas:
        compare(path, "pandas, %s" % filters, wanted, from_pandas(trace.to_dataframe(since_start=True, **filters)))
    if pyarrow and len(wanted) < 30000:
        in_batches(trace, wanted, filters)
    return len(wanted)


def main(arguments):
    rows = sum(judge(*arguments[i:i + 3]) for i in range(0, len(arguments), 3))
    print("%d rows are the same%s%s" % (rows, ", numpy" if numpy else "", ", pandas" if pandas else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
