"""frame.py TRACE CSV: the calls in to_dataframe() and to_parquet() against the csv of programs/known.py. Used by test_table.c.

Prints "read", or which package this Python has not.
"""
import csv
import os
import sys

try:
    import pandas
except ImportError:
    sys.exit(print("no pandas"))

import evprof

CALLS = ["call", "return"]
trace = evprof.load(sys.argv[1])
frame = trace.to_dataframe(clean_file_name=os.path.basename, kinds=CALLS)
with open(sys.argv[2], encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["event"] in CALLS]
assert list(frame.columns) == list(rows[0]), frame.columns
assert frame["mod"].astype(str).tolist() == [os.path.basename(row["mod"]) for row in rows]
assert frame["from_name"].astype(str).tolist() == [row["from_name"] for row in rows]
assert frame["time"].tolist() == [int(row["time"]) for row in rows]
counts = frame[frame["event"] == "call"].groupby("name", observed=True).size()
assert counts["leaf"] == 1000, counts
try:
    import pyarrow.parquet
except ImportError:
    sys.exit(print("no pyarrow"))
trace.to_parquet(sys.argv[1] + ".parquet", clean_file_name=os.path.basename, kinds=CALLS)
again = pyarrow.parquet.read_table(sys.argv[1] + ".parquet").to_pandas()
for name in frame.columns:
    assert again[name].astype(str).tolist() == frame[name].astype(str).tolist(), name
try:
    import matplotlib
    import polars
except ImportError:
    sys.exit(print("no polars, or no matplotlib"))
assert trace.to_polars(kinds=CALLS)["time"].to_list() == frame["time"].tolist()
assert polars.DataFrame(trace.functions(include="leaf"))["calls"].to_list() == [1000]
# A plot has as many events as the table, and the peak of what was allocated.
events = trace.to_dataframe(since_start=True)
for line in trace.plot_events(bins=50).lines:
    assert line.get_ydata().sum() == (events["event"] == line.get_label()).sum(), line.get_label()
live = events.loc[events["value1"] != 0, "value2"].cumsum().max()
assert abs(max(line.get_ydata().max() for line in trace.plot_memory().lines) * 2**20 - live) < 1, live
assert [bar.get_width() for bar in trace.plot_functions(include="leaf").patches] == [1000]
print("read")
