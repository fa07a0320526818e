"""left_open.py TRACE HOW: a program that ends while it has an iterator of call_batches(), which has more to give. Used by test_table.c.

Prints the rows of each batch that it takes.
"""
import atexit
import os
import sys

import evprof


def take():
    try:
        print(next(batches).num_rows)
    except evprof.EvprofError as error:
        print(error)


how = sys.argv[2]
if how == "at exit, too late":
    atexit.register(take)
trace = evprof.load(sys.argv[1])
batches = trace.call_batches(batch_rows=1000)
take()
if how == "at exit":
    atexit.register(take)
elif how == "closed":
    trace.close()
elif how == "raised":
    for batch in batches:
        raise KeyError("a column")
elif how == "forked" and os.fork():
    os.wait()
