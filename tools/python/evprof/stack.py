"""What runs in a thread: its call stacks, chunk by chunk, by numpy. Called by running.py and threads.py.

    Moves      what begins, ends and empties stacks, in order of time
    Stacks     the stacks of a thread, one for each greenlet: who runs after each move, and who called it
    Calls      how long each call lasts

tools/replay/replay.c and tools/replay/event_stream.c are the models. A function is an odd number if it is a C function; NOBODY is none.
"""
import numpy as np

from .kinds import EMPTIES, FORGETS, FRAME, STACK, STEP, SWITCH

NOBODY = 0


class Moves:
    """kinds, functions (without meaning where it is neither begin nor end) and ns of moves, and at: where in the chunk each
    belongs, never going back. switches: for each switch of greenlets, in order, the one that goes on and the one that stops."""

    def __init__(self, kinds, functions, at, ns, switches):
        self.kinds, self.functions, self.at, self.ns, self.switches = kinds, functions, at, ns, switches

    def __len__(self):
        return len(self.kinds)

    def keep(self, mask):
        """Only those; no switch is left out."""
        return Moves(self.kinds[mask], self.functions[mask], self.at[mask], self.ns[mask], self.switches)

    def preceded(self, kind, functions, at, ns):
        """Some moves of one kind, and then these."""
        count = len(functions)
        return Moves(np.concatenate((np.full(count, kind, np.uint8), self.kinds)),
                     np.concatenate((np.array(functions, np.int32), self.functions)),
                     np.concatenate((np.full(count, at, self.at.dtype), self.at)),
                     np.concatenate((np.full(count, ns, np.int64), self.ns)), self.switches)


# --- one row of moves ---

class _Row:
    """functions, steps (1 begin, -1 end, 0 neither) and fresh (the stack is empty before this one; None: never) of moves that
    stand one after the other. Found for each: top, the begin that is on top after it; below, of a begin what it stands on;
    ended, of an end the begin that it ends; depth, how many are on the stack after it. -1 is none."""

    PIECE = 1024   # moves to take together after an end that did not fit
    SMALL = 96     # so few are taken one by one

    def __init__(self, functions, steps, fresh):
        self.functions, self.steps, self.fresh = functions, steps, fresh
        count = len(functions)
        self.top, self.below, self.ended, self.depth = (np.full(count, -1, np.int32) for _ in range(4))
        self._frames = []  # on the stack, outermost first
        at, piece = 0, count
        while at < count:
            end = min(count, at + piece)
            done = self._one_by_one(at, end) if end - at <= self.SMALL else self._together(at, end)
            piece = min(piece * 2, count) if done == end else self.PIECE
            at = done if done == end else self._one_by_one(done, done + 1)

    def frames(self, top):
        """The functions on the stack with that begin on top, outermost first."""
        found = []
        while top >= 0:
            found.append(int(self.functions[top]))
            top = int(self.below[top])
        return found[::-1]

    def _one_by_one(self, begin, end):
        frames, functions = self._frames, self.functions
        steps = self.steps[begin:end].tolist()
        fresh = None if self.fresh is None else self.fresh[begin:end].tolist()
        for i, step in enumerate(steps):
            at = begin + i
            if fresh and fresh[i]:
                frames.clear()
            if step > 0:
                self.below[at] = frames[-1] if frames else -1
                frames.append(at)
            elif step < 0:
                self._end(at, functions[at])
            self.top[at] = frames[-1] if frames else -1
            self.depth[at] = len(frames)
        return end

    def _end(self, at, function):
        """One end, fitting or not, as replay_mismatch() of tools/replay/replay.h has it."""
        frames = self._frames
        depth = len(frames)
        while depth and self.functions[frames[depth - 1]] != function:
            depth -= 1
        if depth:
            self.ended[at] = frames[depth - 1]
            del frames[depth - 1:]

    def _together(self, begin, end):
        """All at once, up to the first end that does not fit, whose number it returns.

        What is on top after a move is the last begin that led to the depth after it. Sorted by depth, stable, that begin
        is the last one before it in the sorted order.
        """
        base = len(self._frames)
        where = np.concatenate((np.array(self._frames, np.int32), np.arange(begin, end, dtype=np.int32)))
        steps = np.concatenate((np.ones(base, np.int8), self.steps[begin:end]))
        functions = self.functions[where]
        begins, ends = steps > 0, steps < 0
        starts = () if self.fresh is None else base + np.flatnonzero(self.fresh[begin:end])
        depths = _depths(steps, starts)
        tops = _tops(depths, begins)
        before = np.empty_like(tops)
        before[0], before[1:] = -1, tops[:-1]
        before[list(starts)] = -1
        misfits = np.flatnonzero(ends & (before >= 0) & (functions[before] != functions))
        count = int(misfits[0]) if len(misfits) else len(functions)
        part, here = slice(begin, begin + count - base), slice(base, count)
        globally = np.append(where, np.int32(-1))  # the last one for -1
        self.top[part], self.depth[part] = globally[tops[here]], depths[here]
        under = globally[before[here]]
        self.below[part] = np.where(begins[here], under, -1)
        self.ended[part] = np.where(ends[here], under, -1)
        self._keep(int(self.top[begin + count - base - 1]) if count > base else None)
        return begin + count - base

    def _keep(self, top):
        if top is None:
            return
        self._frames.clear()
        while top >= 0:
            self._frames.append(top)
            top = int(self.below[top])
        self._frames.reverse()


def ends_of_others(frames, moves):
    """Follows begins and ends from that stack on. Returns the functions that end without having begun, and the stack behind."""
    base = len(frames)
    row = _Row(np.concatenate((np.array(frames, np.int32), moves.functions)),
               np.concatenate((np.ones(base, np.int8), STEP[moves.kinds])), None)
    empty = np.concatenate(([True], row.depth[:-1] == 0))[:len(row.depth)]
    ended = np.flatnonzero(empty & (row.steps < 0))
    return row.functions[ended].tolist(), row.frames(int(row.top[-1])) if len(row.top) else []


def _depths(steps, starts):
    """The depth after each step; at each of the starts the stack is empty. Ends without anything on the stack change nothing."""
    depths = np.cumsum(steps, dtype=np.int32)
    if not len(starts):
        lowest = np.minimum.accumulate(depths)
        if lowest[-1] < 0:
            depths -= np.minimum(lowest, 0)
        return depths
    offsets = np.concatenate(([0], np.where(starts > 0, depths[starts - 1], 0)))
    lengths = np.diff(starts, prepend=0, append=len(depths))
    depths -= np.repeat(offsets, lengths).astype(np.int32)
    # Each row lower than all before it: so the lowest so far is that of the row.
    steps_down = np.repeat(np.arange(len(lengths), dtype=np.int64) * (2 * len(depths) + 2), lengths)
    lowest = np.minimum.accumulate(depths - steps_down) + steps_down
    depths -= np.minimum(lowest, 0).astype(np.int32)
    return depths


def _tops(depths, begins):
    """For each move the begin that is on top after it; -1: none."""
    narrow = depths.astype(np.uint16) if int(depths.max()) < 65536 else depths
    order = np.argsort(narrow, kind="stable").astype(np.int32)
    last = np.where(begins[order], np.arange(len(order), dtype=np.int32), 0)
    np.maximum.accumulate(last, out=last)
    tops = np.empty_like(order)
    tops[order] = order[last]
    tops[depths == 0] = -1
    return tops


def _python_callers(functions, below):
    """For each begin the innermost Python function that it stands on."""
    functions, below = np.append(functions, np.int32(NOBODY)), np.append(below, np.int32(-1))
    callers = functions[below]
    at = np.flatnonzero(callers & 1 == 1)
    up = below[at]
    while len(at):  # C functions call each other only in damaged traces: mostly one round
        up = below[up]
        found = functions[up]
        callers[at] = found
        again = found & 1 == 1
        at, up = at[again], up[again]
    return callers[:-1]


# --- the stacks of a thread ---

class Run:
    """A row that Stacks made, which begins with what was on the stacks, and place: where in it the moves are."""

    def __init__(self, row, place):
        self.row, self.place = row, place

    def functions(self):
        """For each move the caller of its function, the function that runs after it, and the caller of that one."""
        row, place = self.row, self.place
        called_by = _python_callers(row.functions, row.below)
        callers = np.append(called_by, np.int32(NOBODY))
        functions = np.append(row.functions, np.int32(NOBODY))
        top, ended = row.top[place], row.ended[place]
        running, running_callers = functions[top], callers[top]
        # An end without its begin was called by what goes on running.
        above = np.where(running & 1 == 1, running_callers, running)
        own = np.where(row.steps[place] > 0, called_by[place], np.where(ended >= 0, callers[ended], above))
        return own, running, running_callers

    def numbers(self):
        """How many frames are below that of each begin or end."""
        return self.row.depth[self.place] - (self.row.steps[self.place] > 0)


class _Lanes:
    """Sorts the moves of a chunk by the greenlets whose stacks they move: a lane is a stretch of one greenlet's moves that begins
    with a known stack. As replay_switch() of tools/replay/replay.c goes from one to the other."""

    def __init__(self, current, kept, moves):
        self.current, self._kept = current, kept
        self.bases = []      # the stack at the beginning of each lane
        self.of = {}         # greenlet: number of its lane
        self._starts, self._numbers = [], []
        self._enter(0, current)
        pairs = iter(moves.switches.tolist())
        marks = np.flatnonzero(FORGETS[moves.kinds] | (moves.kinds == SWITCH))
        for at, kind in zip(marks.tolist(), moves.kinds[marks].tolist()):
            if kind != SWITCH:
                self._forget(at)
            else:
                self._switch(at, *next(pairs))
        lengths = np.diff(self._starts, append=len(moves))
        self.number = np.repeat(np.array(self._numbers, np.int32), lengths)  # of the lane of each move

    def _enter(self, at, greenlet):
        if greenlet not in self.of:
            self.of[greenlet] = len(self.bases)
            self.bases.append(self._kept.pop(greenlet, []))
        self.current = greenlet
        self._starts.append(at)
        self._numbers.append(self.of[greenlet])

    def _forget(self, at):
        self.of.clear()
        self._kept.clear()
        self._enter(at, 0)

    def _switch(self, at, target, origin):
        if not target or not origin:
            return
        if not self.current:
            self.of[origin] = self.of.pop(0)
        elif self.current != origin:
            del self.of[self.current]  # what it had on its stack is not known any more
        self._enter(at, target)


class Stacks:
    """The stacks of one thread."""

    def __init__(self, current=0, others=()):
        self.current = current      # the greenlet that runs; 0: not known
        self._kept = dict(others)   # the functions on the stack of each greenlet, outermost first

    def frames(self):
        """The functions that run, outermost first."""
        return list(self._kept.get(self.current, ()))

    def others(self):
        """The stacks of the greenlets that do not run."""
        return {greenlet: frames for greenlet, frames in self._kept.items() if greenlet != self.current}

    def run(self, moves):
        """Goes on with the moves of a chunk."""
        steps, empties = STEP[moves.kinds], EMPTIES[moves.kinds]
        if len(moves.switches):
            return self._run_lanes(moves, steps, empties)
        base = np.array(self._kept.get(self.current, ()), np.int32)
        fresh = np.concatenate((np.zeros(len(base), np.bool_), empties)) if empties.any() else None
        row = _Row(np.concatenate((base, moves.functions)), np.concatenate((np.ones(len(base), np.int8), steps)), fresh)
        if FORGETS[moves.kinds].any():
            self._kept, self.current = {}, 0
        self._kept[self.current] = row.frames(int(row.top[-1])) if len(row.top) else []
        return Run(row, slice(len(base), None))

    def _run_lanes(self, moves, steps, empties):
        lanes = _Lanes(self.current, self._kept, moves)
        order = np.argsort(lanes.number, kind="stable")
        bases = np.array([len(base) for base in lanes.bases])
        ends = np.cumsum(np.bincount(lanes.number, minlength=len(bases)) + bases)
        starts = np.concatenate(([0], ends[:-1]))
        place = np.empty(len(moves), np.int64)
        place[order] = np.arange(len(moves)) + np.cumsum(bases)[lanes.number[order]]
        functions, row_steps = np.empty(ends[-1], np.int32), np.ones(ends[-1], np.int8)
        fresh = np.zeros(ends[-1] + 1, np.bool_)
        functions[place], row_steps[place], fresh[place] = moves.functions, steps, empties
        fresh[starts] = True
        for base, start in zip(lanes.bases, starts.tolist()):
            functions[start:start + len(base)] = base
        row = _Row(functions, row_steps, fresh[:-1])
        self.current = lanes.current
        for greenlet, lane in lanes.of.items():
            self._kept[greenlet] = row.frames(int(row.top[ends[lane] - 1])) if ends[lane] > starts[lane] else []
        return Run(row, place)

    def unrolled(self, moves):
        """The moves with greenlets spelled out: a switch empties the stack, and the frames of the other follow it."""
        run = self.run(moves)
        if not len(moves.switches):
            return moves
        switches = np.flatnonzero(moves.kinds == SWITCH)[moves.switches.all(axis=1)].tolist()
        stacks = [run.row.frames(int(run.row.top[run.place[at]])) for at in switches]
        before = np.repeat(np.array(switches, np.int64) + 1, [len(stack) for stack in stacks])
        kinds = moves.kinds.copy()
        kinds[switches] = STACK
        return Moves(np.insert(kinds, before, FRAME),
                     np.insert(moves.functions, before, [function for stack in stacks for function in stack]),
                     np.insert(moves.at, before, moves.at[before - 1]), np.insert(moves.ns, before, moves.ns[before - 1]),
                     np.empty((0, 2), np.uint64))


# --- how long calls last ---

class Calls:
    """Numbers the calls of a thread in the order in which they begin, and knows how long each lasts. Greenlets are spelled
    out: a call of one that does not run has ended, and begins anew when it goes on."""

    def __init__(self):
        self._stacks = Stacks()
        self.count = 0       # of calls so far
        self._open = np.empty(0, np.int64)    # numbers of the calls on the stack, outermost first
        self._starts = np.empty(0, np.int64)  # and when they began

    def run(self, moves):
        """Returns the run; for each move the number of its call, -1 where there is none; and for the calls that ended, their
        numbers and their ns."""
        run = self._stacks.run(moves)
        row, base = run.row, len(run.row.steps) - len(moves)
        begins = row.steps > 0
        numbers = np.where(begins, self.count - base + np.cumsum(begins) - 1, -1)
        numbers[:base] = self._open
        ns = np.concatenate((self._starts, moves.ns))
        ends = self._ends(row)
        over = np.flatnonzero(ends >= 0)
        result = numbers[base:].copy()
        ended = row.ended[base:]
        result[ended >= 0] = numbers[ended[ended >= 0]]
        self.count += int(begins[base:].sum())
        left = np.flatnonzero(begins & (ends < 0))
        self._open, self._starts = numbers[left], ns[left]
        return run, result, numbers[over], ns[ends[over]] - ns[over]

    def finish(self, now):
        """(numbers, ns) of the calls that have not ended, which last until now."""
        return self._open, now - self._starts

    @staticmethod
    def _ends(row):
        """For each begin the move that takes it off the stack; -1: none."""
        ends = np.full(len(row.steps), -1, np.int64)
        fitting = np.flatnonzero(row.ended >= 0)
        ends[row.ended[fitting]] = fitting
        fresh = np.flatnonzero(row.fresh) if row.fresh is not None else np.empty(0, np.int64)
        left = np.flatnonzero((row.steps > 0) & (ends < 0))
        # What no end names goes with the call that it stands on.
        for at, below in zip(left.tolist(), row.below[left].tolist()):
            if below >= 0:
                ends[at] = ends[below]
            else:
                next_fresh = int(np.searchsorted(fresh, at, side="right"))
                ends[at] = fresh[next_fresh] if next_fresh < len(fresh) else -1
        return ends
