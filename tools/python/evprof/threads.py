"""The rows of one thread: which calls are shown, what runs at each event and who called it. Used by table.py."""
import numpy as np

from .kinds import FRAME, FREE, GAP, REALLOC, STEP, by_kind
from .running import Running
from .stack import NOBODY, Calls, Stacks

#: The events of the table, by EventProfiler's numbers. Those from MADE on are of memory, those from FREED on free a block.
MADE, FREED, REALLOC_FREE = 1000, 1003, 1004
KEEPS = -1          # in value2 of a realloc_free: the realloc failed, nothing was freed

_IS_MEMORY = by_kind({"malloc": 1, "calloc": 1, "realloc": 1, "free": 1}, np.bool_)
_EVENT = by_kind({"call": 1, "resume": 1, "throw": 1, "return": 2, "yield": 2, "unwind": 2, "c_call": 3, "c_return": 4,
                  "exception": 5, "c_exception": 6, "malloc": 1000, "calloc": 1001, "realloc": 1002, "free": 1003}, np.int16)


class Reader:
    """Reads the rows of one thread. kinds: a table.Kinds."""

    def __init__(self, source, filters, kinds):
        self._source, self._filters, self._kinds = source, filters, kinds
        self._long = None    # by the number of a call: it lasts long enough
        self._frames, self._greenlet, self._others = [], 0, {}
        if filters.from_ns is not None:
            running = Running(source)
            self._frames, self._greenlet, self._others = running.frames, running.greenlet, running.others

    def read(self, rows):
        filters = self._filters
        narrowed = bool(filters.min_ns or filters.max_depth)
        if filters.min_ns:
            self._measure()
        # Frames that are too far in are as good as none.
        stacks = Stacks(self._greenlet, {greenlet: frames[:filters.max_depth] for greenlet, frames in self._others.items()})
        shape = Calls() if filters.min_ns else self._stacks()
        before = NOBODY, NOBODY
        for part, moves in self._parts():
            moves = self._shown(shape, moves) if narrowed else moves
            before = self._take(rows, part, moves, stacks.run(moves), before)

    def _stacks(self):
        """The stacks of the other greenlets at the start of the time range; the running frames come as moves."""
        return Stacks(self._greenlet, self._others)

    def _parts(self):
        """The parts of chunks within the time range, and their moves. Long calls are found without greenlets."""
        frames = self._frames
        unrolling = self._stacks() if self._filters.min_ns else None
        for part in self._source.parts(self._source.first):
            hole = part.hole and self._source.matters(part.events)
            moves = self._source.moves(part)
            if hole:
                moves = moves.preceded(GAP, [NOBODY], 0, part.gap_ns)
            if frames and (len(part.kinds) or hole):
                moves, frames = moves.preceded(FRAME, frames, 0, self._filters.from_ns), []
            yield part, unrolling.unrolled(moves) if unrolling else moves

    # --- which calls are shown ---

    def _measure(self):
        """Finds the calls that last long enough."""
        calls, found = Calls(), []
        last = 0
        for _, moves in self._parts():
            _, _, numbers, ns = calls.run(moves)
            found.append(numbers[ns >= self._filters.min_ns])
            last = self._source.now
        thread, to_ns = self._source.thread, self._filters.to_ns
        if to_ns is not None and thread.process.line.at(thread.places[-1].last_ticks) >= to_ns:
            last = to_ns
        numbers, ns = calls.finish(last)
        found.append(numbers[ns >= self._filters.min_ns])
        self._long = np.zeros(calls.count + 1, np.bool_)  # the last one for -1, an end without a call
        self._long[np.concatenate(found)] = True

    def _shown(self, shape, moves):
        """The moves without calls that are too short or too far in. A call within one that is not shown is not shown."""
        shown = STEP[moves.kinds] == 0
        if self._long is None:
            return moves.keep(shown | (shape.run(moves).numbers() < self._filters.max_depth))
        run, numbers, _, _ = shape.run(moves)
        lasting = self._long[numbers]
        if self._filters.max_depth:
            lasting &= run.numbers() < self._filters.max_depth
        return moves.keep(shown | lasting)

    # --- rows ---

    def _take(self, rows, part, moves, run, before):
        """Adds the rows of a part. before: what ran before it, and its caller; returns what runs after it."""
        own, running, running_callers = run.functions()
        running = np.concatenate((np.array(before[:1], np.int32), running))
        running_callers = np.concatenate((np.array(before[1:], np.int32), running_callers))
        moved = np.cumsum(np.bincount(moves.at, minlength=len(part.kinds)))[:len(part.kinds)]
        who, whose = running[moved], running_callers[moved]
        calls = np.flatnonzero((STEP[moves.kinds] != 0) & (moves.kinds != FRAME))
        at = moves.at[calls]
        who[at], whose[at] = moves.functions[calls], own[calls]
        codes = _EVENT[part.kinds]
        if self._filters.narrows:
            codes[STEP[part.kinds] != 0] = 0
            codes[at] = _EVENT[moves.kinds[calls]]
        if part.events:
            self._add(rows, part, codes, who, whose)
        return int(running[-1]), int(running_callers[-1])

    def _add(self, rows, part, codes, who, whose):
        columns = [part.ns, None, None, codes, who, whose]
        memory = np.flatnonzero(_IS_MEMORY[part.kinds])
        if len(memory):
            columns = self._with_memory(columns, part, memory)
        keep = columns[3] != 0
        if not self._kinds.all:
            keep &= np.isin(columns[3], np.array(sorted(self._kinds.read), np.int16))
        if not keep.all():
            columns = [column if column is None else column[keep] for column in columns]
        rows.add(columns)

    def _with_memory(self, columns, part, memory):
        """The columns with addresses and sizes; memory: the numbers of those events."""
        kinds, extras = part.kinds[memory], part.events.extras
        columns[1], columns[2] = np.zeros(len(part.kinds), np.int64), np.zeros(len(part.kinds), np.int64)
        places = part.extra_places()[memory]
        words = extras[places]
        columns[1][memory] = (words & np.uint64((1 << 48) - 1)).view(np.int64)
        sizes = (words >> np.uint64(48) << np.uint64(25)).view(np.int64) + (part.heads[memory] >> np.uint32(7))
        columns[2][memory] = np.where(kinds == FREE, 0, sizes)
        reallocs = np.flatnonzero(kinds == REALLOC)
        if not len(reallocs):
            return columns
        old = (extras[places[reallocs] + 1] & np.uint64((1 << 48) - 1)).view(np.int64)
        return self._split_reallocs(columns, memory[reallocs], old)

    @staticmethod
    def _split_reallocs(columns, at, old):
        """Two rows for each: the old block goes, then the new one comes."""
        copies = np.ones(len(columns[0]), np.int64)
        copies[at] = 2
        first = at + np.arange(len(at))
        failed = columns[1][at] == 0
        columns = [np.repeat(column, copies) for column in columns]
        columns[1][first] = old
        columns[2][first] = np.where(failed, KEEPS, 0)
        columns[3][first] = REALLOC_FREE
        return columns
