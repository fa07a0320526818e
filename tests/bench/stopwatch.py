"""Runs inside the interpreter that is measured: the CPU time of the turns of each program, as one line of JSON.

usage: stopwatch.py TURNS PROGRAM... (paths, or names of kernels.py)

Started by tests/bench/calibrated. Each turn is a function of its own, turn_PROGRAM_N, so that a report has it by itself.
Programs are made small, so that other work on the machine falls between turns more often than into them.
"""
import contextlib
import json
import os
import sys
import time

from kernels import KERNELS

SMALL = {
    "json_pure": {"ROUNDS": 1}, "tokens": {"ROUNDS": 1}, "differences": {"ROUNDS": 1},
    "calls": {"ROUNDS": 1, "DEPTH": 14, "TIMES": 1000}, "simulation": {"ROUNDS": 1, "UNTIL": 1000}, "pingpong": {"ROUNDS": 500},
}


def load(program):
    """(name, function)"""
    for kernel in KERNELS:
        if kernel.__name__ == program:
            return program, kernel
    name = os.path.basename(program)[: -len(".py")]
    names = {"__name__": name, "__file__": program}
    with open(program) as file:
        exec(compile(file.read(), program, "exec"), names)
    names.update(SMALL.get(name, {}))
    return name, names["main"]


def turn(name, number, function):
    scope = {"function": function}
    run = "turn_%s_%d" % (name, number)
    exec("def %s():\n    function()" % run, scope)
    begin = time.thread_time_ns()
    scope[run]()
    return time.thread_time_ns() - begin


def main(turns, programs):
    result = {}
    with open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
        for program in programs:
            name, function = load(program)
            result[name] = [turn(name, number, function) for number in range(turns)]
    print(json.dumps(result))


main(int(sys.argv[1]), sys.argv[2:])
