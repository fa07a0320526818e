"""parts.py LEAST TRACE...: the calls of each trace, read in parts, against those of the whole. Used by test_table.c. Each call comes once,
with all that the whole says of it, and callers are the same. Prints the number of traces, and how many were really divided: into LEAST
parts or more that have rows. Parts of one trace are read at once, too, and it is used meanwhile.
"""
import itertools
import sys

import evprof
import pyarrow
import pyarrow.compute

FILTERS = [{}, {"max_depth": 3}, {"min_duration": 300}, {"exclude": "re:[12]$"}, {"start": 8000}, {"start": 3000, "end": 20000},
           {"start": "2ms", "end": "6ms", "min_duration": "1us"}]


def rows_of(path, filters, **part):
    """A table with plain texts. Each part has a trace of its own, as in processes of their own."""
    batches = list(evprof.load(path).call_batches(batch_rows=1000, **part, **filters))
    plain = [[one.dictionary_decode() if pyarrow.types.is_dictionary(one.type) else one for one in batch.columns] for batch in batches]
    return pyarrow.concat_tables(pyarrow.table(columns, batches[0].schema.names) for columns in plain)


def renumbered(table):
    """In the order of their ids, which count from 0 on."""
    table = table.sort_by("id").combine_chunks()
    ids = table["id"]
    if len(pyarrow.compute.unique(ids)) < len(ids):
        sys.exit("two rows have one id")
    for name in ("parent", "id"):
        rank = pyarrow.compute.fill_null(pyarrow.compute.index_in(table[name], value_set=ids), -1)
        table = table.set_column(table.schema.get_field_index(name), name, rank)
    return table


def judge(path, filters, whole, parts):
    """How many parts have rows."""
    found = [rows_of(path, filters, part=part, parts=parts) for part in range(1, parts + 1)]
    mine = renumbered(pyarrow.concat_tables(found))
    if not mine.equals(whole):
        for left, right in zip(mine.to_pylist(), whole.to_pylist()):
            if left != right:
                sys.exit("%s in %d parts, %s: %s instead of %s" % (path, parts, filters, left, right))
        sys.exit("%s in %d parts, %s: %d calls instead of %d" % (path, parts, filters, len(mine), len(whole)))
    return sum(len(rows) > 0 for rows in found)


def judge_at_once(path):
    trace = evprof.load(path)
    events, rows = trace.batches(), 0
    next(events, None)
    for first, second in itertools.zip_longest(*(trace.call_batches(part, 2, batch_rows=1000) for part in (1, 2))):
        events = None  # its end waits for the trace
        rows += sum(batch.num_rows for batch in (first, second) if batch)
        str(trace.damage)
    if rows != len(trace.calls()):
        sys.exit("%s at once: %d calls instead of %d" % (path, rows, len(trace.calls())))


least, paths, divided = int(sys.argv[1]), sys.argv[2:], 0
for number, path in enumerate(paths):
    most = 0
    for filters in (FILTERS[0], FILTERS[1 + number % 6]):
        whole = renumbered(rows_of(path, filters))
        most = max([most] + [judge(path, filters, whole, parts) for parts in (1, 2, 7)])
    divided += most >= least
    judge_at_once(path)
print("%d traces, %d divided" % (len(paths), divided))
