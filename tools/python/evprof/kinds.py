"""The kinds of events as numbers, and what each does to the stacks of its thread. include/evprof/wire.h is the model."""
import numpy as np

from .model import KINDS

_KIND = {name: number for number, name in enumerate(KINDS)}
TIME, CPU, GAP, STACK, FRAME, PAUSE, SWITCH, OPEN = (_KIND[name] for name in (
    "time", "cpu", "gap", "stack", "frame", "pause", "switch", "open"))
MALLOC, REALLOC, FREE = (_KIND[name] for name in ("malloc", "realloc", "free"))
STACK_CUT = 1 << 26  # in the argument of a stack: there are frames below the first

#: In version 1 the rare kinds had these numbers, and some of the later ones were in `time`.
OF_VERSION_1 = np.array([*range(19), *range(_KIND["thread_start"], _KIND["pause"] + 1), *range(28, 32)], np.uint8)

_BEGINS = ("call", "resume", "throw", "c_call", "frame")
_ENDS = ("return", "yield", "unwind", "c_return", "c_exception")
_FORGETTING = ("gap", "pause", "thread_end")  # all stacks; "stack" only that which runs


def by_kind(values, dtype):
    """An array over the kinds of events, from their names."""
    array = np.zeros(len(KINDS), dtype)
    for name, value in values.items():
        array[_KIND[name]] = value
    return array


STEP = by_kind({**dict.fromkeys(_BEGINS, 1), **dict.fromkeys(_ENDS, -1)}, np.int8)
MOVES = by_kind(dict.fromkeys(_BEGINS + _ENDS + _FORGETTING + ("stack", "switch"), 1), np.bool_)
EMPTIES = by_kind(dict.fromkeys(_FORGETTING + ("stack",), 1), np.bool_)
FORGETS = by_kind(dict.fromkeys(_FORGETTING, 1), np.bool_)
#: Behind these it is known anew what runs, or that nothing is known.
TELLS = by_kind(dict.fromkeys(("gap", "pause", "stack"), 1), np.bool_)
