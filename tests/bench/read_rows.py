"""Reads a trace in several ways, in turns, and prints the seconds of each as one line of JSON: read_rows.py TRACE ROUNDS.

to_numpy: the table of events in new memory. copy: numpy copies the same arrays into new memory. batches: the table as an Arrow
stream, whose batches are dropped. parquet: pyarrow reads the same rows from a file, uncompressed, in one thread. "cpu" is the time of
the thread that reads. evprof's own second thread (tools/api/populate.h) is not in it: it has the kernel clear memory ahead.
Started by tests/bench/lib/reading.py.
"""
import json
import os
import sys
import tempfile
import time

import evprof
import numpy

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


def to_numpy(trace, arrays, folder):
    return trace.to_numpy()


def copy(trace, arrays, folder):
    return {name: numpy.array(array) for name, array in arrays.items()}


def batches(trace, arrays, folder):
    return sum(batch.num_rows for batch in trace.batches())


def parquet(trace, arrays, folder):
    file = pyarrow.parquet.ParquetFile(os.path.join(folder, "rows.parquet"))
    return sum(batch.num_rows for batch in file.iter_batches(1 << 17, use_threads=False))


def main():
    trace, rounds = evprof.load(sys.argv[1]), int(sys.argv[2])
    arrays, ways = trace.to_numpy(), [to_numpy, copy] + ([batches, parquet] if pyarrow else [])
    times = {clock: {name: [] for name in ("to_numpy", "copy", "batches", "parquet")} for clock in ("wall", "cpu")}
    with tempfile.TemporaryDirectory(dir=os.path.dirname(sys.argv[1])) as folder:
        if pyarrow:
            columns = pyarrow.table({name: pyarrow.array(array) for name, array in arrays.items()})
            pyarrow.parquet.write_table(columns, os.path.join(folder, "rows.parquet"), compression="none")
            del columns
        for turn in range(rounds):
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
                wall, cpu = time.perf_counter(), time.thread_time()
                made = way(trace, arrays, folder)
                times["cpu"][way.__name__].append(time.thread_time() - cpu)
                times["wall"][way.__name__].append(time.perf_counter() - wall)
                del made
    print(json.dumps(dict(times, rows=len(arrays["time"]))))


main()
