"""The events of a thread as far as they are asked for, with times that never go back, and what of them moves the thread's stacks.
Used by running.py and threads.py.

A function's number is the base of its process + 2 * code id, or + 2 * C function id + 1.
"""
import numpy as np

from .chunks import Stream, nanoseconds
from .kinds import MOVES, STEP, SWITCH, by_kind
from .stack import Moves

_IS_NATIVE = by_kind({"c_call": 1, "c_return": 1, "c_exception": 1}, np.uint8)


class Part:
    """The events of a chunk from number start to number end; their times and kinds. events None: none are left of the chunk."""

    def __init__(self, events, ns, start, end, hole=False, gap_ns=0):
        self.events, self.start, self.end = events, start, end
        self.hole, self.gap_ns = hole, gap_ns  # events before these are missing, which was found at that time
        self._all_ns = ns
        here = slice(start, end)
        self.ns = ns[here]
        self.kinds = events.kinds[here] if events else np.empty(0, np.uint8)
        self.heads = events.heads[here] if events else np.empty(0, np.uint32)

    def piece(self, start, end):
        """Other events of the same chunk."""
        return Part(self.events, self._all_ns, start, end, self.hole, self.gap_ns)

    @property
    def is_cut(self):
        """Are there events of the chunk behind these?"""
        return self.end < self.events.count

    def extra_places(self):
        """Where the extra words of each event begin."""
        return self.events.extra_places()[self.start:self.end]


class Source:
    """The events of one thread. base: of the functions of its process; hidden: which of those are not shown, by their number less
    base, None: all are."""

    def __init__(self, trace, thread, filters, base, hidden):
        self.thread, self.hidden, self.base = thread, hidden, base
        self.first, self._end = filters.places(thread)
        self.from_ns, self.to_ns = filters.from_ns, filters.to_ns
        self.now = None  # of the last event that was read
        self._trace, self._filters = trace, filters
        self._codes, self._c_functions = np.uint32(thread.process.code_limit), np.uint32(thread.process.c_function_limit)

    def stream(self, first, end=None):
        return iter(Stream(self._trace, self.thread, first, end))

    def parts(self, first):
        """What the chunks from that place on have of the stretch. Chunks after it are not read."""
        self.now = None
        for events, hole in self.stream(first, self._end):
            if events is None and self._end < len(self.thread.places):
                return
            gap_ns = self._gap_ns(events) if hole else None
            if events is None:
                yield Part(None, np.empty(0, np.int64), 0, 0, True, gap_ns)
            else:
                yield Part(events, *self._stretch(events), hole, gap_ns)

    def matters(self, events):
        """Whether the gap before these events is within the time range."""
        return self.from_ns is None or events is None or self.thread.process.line.at(events.first_ticks) >= self.from_ns

    def _gap_ns(self, events):
        ns = self.thread.process.line.at(events.first_ticks if events else self.thread.places[-1].last_ticks)
        ns = ns if self.now is None else max(ns, self.now)
        return ns if self.to_ns is None else min(ns, self.to_ns)

    def _stretch(self, events):
        """(ns, from, to): the times of a chunk's events, never going back, and which of them are asked for."""
        ns = nanoseconds(self.thread.process.line, events.ticks)
        if self.now is not None and len(ns):
            ns[0] = max(int(ns[0]), self.now)
        np.maximum.accumulate(ns, out=ns)
        if len(ns):
            self.now = int(ns[-1])
        start = 0 if self.from_ns is None else int(np.searchsorted(ns, self.from_ns))
        end = len(ns) if self.to_ns is None else int(np.searchsorted(ns, self.to_ns))
        return ns, start, max(start, end)

    # --- functions ---

    def functions_of(self, heads, kinds):
        """The numbers of the functions of events that begin or end."""
        ids = heads >> np.uint32(5)
        native = _IS_NATIVE[kinds]
        limits = np.where(native, self._c_functions, self._codes)
        ids[ids >= limits] = 0
        functions = ids.astype(np.int32)
        functions *= 2
        functions += native
        functions += self.base
        return functions

    def shown(self, functions):
        """A mask of those that are not hidden; None: all are shown."""
        return None if self.hidden is None else ~self.hidden[functions - self.base]

    def moves(self, part):
        """What begins, ends and empties stacks in the part, without the functions that are hidden."""
        at = np.flatnonzero(MOVES[part.kinds])
        kinds = part.kinds[at]
        functions = self.functions_of(part.heads[at], kinds)
        ns = part.ns[at] if self._filters.min_ns else np.zeros(len(at), np.int64)
        switches = at[kinds == SWITCH]
        pairs = np.empty((0, 2), np.uint64)
        if len(switches):
            places = part.extra_places()[switches]
            pairs = np.stack((part.events.extras[places], part.events.extras[places + 1]), axis=1)
        moves = Moves(kinds, functions, at, ns, pairs)
        shown = self.shown(functions)
        return moves if shown is None else moves.keep((STEP[kinds] == 0) | shown)
