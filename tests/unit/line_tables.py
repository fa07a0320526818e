"""Prints the line tables of some modules' code objects, and what Python itself reads in them, for test_collector_lines.c: one
line for each, with the minor version, the first line, the table, and the line of each instruction (0: none)."""
import argparse
import ast
import binascii
import dis
import inspect
import json.decoder
import sys
import threading

MINOR = sys.version_info[1]


def lines_of(code):
    """The line of each instruction."""
    found = [0] * (len(code.co_code) // 2)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            found[start // 2:end // 2] = [line or 0] * ((end - start) // 2)
        return found
    starts = list(dis.findlinestarts(code)) + [(len(code.co_code), 0)]
    for (start, line), (end, _) in zip(starts, starts[1:]):
        found[start // 2:end // 2] = [line] * ((end - start) // 2)
    return found


def show(code):
    table = code.co_linetable if MINOR >= 10 else code.co_lnotab
    print(MINOR, code.co_firstlineno, binascii.hexlify(table).decode() or "-", *lines_of(code))
    for constant in code.co_consts:
        if inspect.iscode(constant):
            show(constant)


for module in argparse, ast, json.decoder, threading, inspect:
    with open(module.__file__, encoding="utf-8") as file:
        show(compile(file.read(), module.__file__, "exec"))
# Long jumps back and forth, and lines far from each other.
show(compile("x = (1,\n" + "\n" * 300 + "y)\n" + "\n" * 9000 + "try:\n a(\n\nb,\nc)\nfinally:\n d\n", "made", "exec"))
