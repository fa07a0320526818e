"""calls.py CSV LOG BLOCKS TRACED: the table of programs/table.py against what Python's own modules reported of it.

    LOG       sys.setprofile()'s calls and ends in program(), in order, with their functions and callers
    BLOCKS    id() and sys.getsizeof() of the blocks that holds() made
    TRACED    bytes that tracemalloc counted for holds()

Used by test_table.c. Status 1 with the first difference.
"""
import csv
import json
import sys

CALLS = ("call", "return", "c_call", "c_return", "c_exception")


def within(rows, name):
    """The rows from the call of that function to its end."""
    begin, = [i for i, row in enumerate(rows) if (row["event"], row["name"]) == ("call", name)]
    end, = [i for i, row in enumerate(rows) if (row["event"], row["name"]) == ("return", name)]
    return rows[begin:end + 1]


def shape(row):
    return [row["event"], row["name"], row["mod"], int(row["lineno"]), row["from_name"], row["from_mod"],
            int(row["from_line"])]


def check_calls(rows, log):
    mine = [shape(row) for row in within(rows, "program") if row["event"] in CALLS]
    names = [entry[:2] for entry in log]
    theirs = log[names.index(["call", "program"]):names.index(["return", "program"]) + 1]
    mine[0][4:] = mine[-1][4:] = theirs[0][4:] = theirs[-1][4:] = []  # each was started its own way
    for i, (left, right) in enumerate(zip(mine, theirs)):
        if left != right:
            sys.exit("event %d is %s, sys.setprofile() reports %s" % (i, left, right))
    if len(mine) != len(theirs):
        sys.exit("%d events, sys.setprofile() reports %d" % (len(mine), len(theirs)))
    if len(mine) < 100:
        sys.exit("only %d events" % len(mine))


def check_blocks(rows, blocks):
    made = {int(row["value1"]): int(row["value2"]) for row in within(rows, "holds")
            if row["event"] in ("malloc", "calloc") and row["name"] in ("holds", "<listcomp>")}
    freed = {int(row["value1"]): int(row["value2"]) for row in within(rows, "releases") 
             if row["event"] == "free" and row["name"] == "releases"}
    for address, size in blocks:
        if made.get(address) != size:
            sys.exit("the block at %d is made with %s bytes, it has %d" % (address, made.get(address), size))
        if freed.get(address) != -size:
            sys.exit("the block at %d is freed with %s bytes, it has %d" % (address, freed.get(address), size))


def main(table, log, blocks, traced):
    with open(table, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, strict=True) if row["pid"] == row["tid"]]
    with open(log) as log, open(blocks) as blocks, open(traced) as traced:
        check_calls(rows, json.load(log))
        check_blocks(rows, json.load(blocks))
        bytes_traced = json.load(traced)
    mine = sum(int(row["value2"]) for row in within(rows, "holds"))
    if abs(mine - bytes_traced) > bytes_traced // 1000:
        sys.exit("value2 of holds() adds up to %d, tracemalloc counted %d" % (mine, bytes_traced))
    print("as it should be")


main(*sys.argv[1:])
