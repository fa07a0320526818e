"""spoil.py TRACE COPY: copies a trace with one byte of a chunk of events changed, and prints a time within that chunk (ns since the
start of the trace). The chunk is in the middle of the thread with the most of them. Used by test_table.c.
"""
import sys

import plain

trace = plain.load(sys.argv[1])
thread = max(trace.threads, key=lambda thread: len(thread.places))
if len(thread.places) < 3:
    sys.exit("only %d chunks" % len(thread.places))
place = thread.places[len(thread.places) // 2]
with open(sys.argv[1], "rb") as file:
    data = bytearray(file.read())
data[place.offset + 100] ^= 1
with open(sys.argv[2], "wb") as file:
    file.write(data)
first, last = (thread.process.line.at(ticks) - trace.start_ns for ticks in (place.first_ticks, place.last_ticks))
print((first + last) // 2)
