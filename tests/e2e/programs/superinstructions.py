"""Which superinstructions functions have after the program has run for a while, and what a debugger sees of them (3.12).

usage: superinstructions.py SECONDS. Those that Python gives a copy of the code that never ran are the oracle.
"""
import dis
import json
import sys
import time


def pairs(a, b):
    c = a
    d = b
    e = c + d
    f = 7 + e
    return f


def long(n):
    total = 0
    for i in range(n):
        a, b, c = i, total, i
        total = a + b + c
    return total


def steps(n):
    last = n
    for i in range(n):
        last = i
        yield last


# Locals and constants beyond 255: their instructions are EXTENDED_ARG and one more.
exec("def wide(n):\n    %s = range(300)\n    x = y = n\n    v1 = v298\n    return v297, v298, x, v2, y, 'wide'"
     % ", ".join("v%d" % i for i in range(300)))


def caught(n):
    try:
        a = n
        b = a
        raise KeyError(a, b)
    except KeyError as error:
        m, n = error.args
        return m, n


FUNCTIONS = (pairs, long, steps, wide, caught,  # noqa: F821
             json.encoder.py_encode_basestring, dis.findlinestarts)


def found(code):
    return [(one.offset, one.opname) for one in dis.get_instructions(code, adaptive=True)
            if one.opname.startswith(("LOAD_FAST__", "STORE_FAST__", "LOAD_CONST__"))]


def call_all():
    for i in range(200):
        pairs(i, i)
    long(20000)
    sum(steps(10))
    caught(1)
    wide(1)  # noqa: F821
    json.encoder.py_encode_basestring("text")
    list(dis.findlinestarts(pairs.__code__))


def are_joined():
    return [one.__name__ for one in FUNCTIONS if found(one.__code__) == found(one.__code__.replace()) != []]


def lines_seen():
    seen, monitoring = [], sys.monitoring
    monitoring.use_tool_id(0, "debugger")
    monitoring.register_callback(0, monitoring.events.LINE, lambda code, line: seen.append(line - code.co_firstlineno))
    monitoring.set_local_events(0, pairs.__code__, monitoring.events.LINE)
    result = pairs(1, 2)
    monitoring.set_local_events(0, pairs.__code__, 0)
    monitoring.free_tool_id(0)
    return seen, result


until = time.process_time() + float(sys.argv[1])
while time.process_time() < until:
    call_all()
for _ in range(100):  # a burst of a budget may have come since the last call
    call_all()
    joined = are_joined()
    if len(joined) == len(FUNCTIONS):
        break
print(json.dumps({"joined": joined, "of": len(FUNCTIONS), "debugger": lines_seen()}))
