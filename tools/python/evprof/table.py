"""The table of events, by numpy: what `evprof export --format csv` writes, as arrays. Called by model.Trace.

    Functions      all functions of all processes as numbers; names and files as codes
    Stack          which function runs at each event of a thread, chunk by chunk
    thread_rows    the rows of one thread
    make           all threads in one order of time, sizes of freed blocks

A function's number is base of its process + 2 * code id, or + 2 * C function id + 1, so that odd ones are C functions;
0 is nobody. Where the table follows a rule of evprof's tools, tools/timeline.c and tools/export_csv.c are the models.
"""
import numpy as np

from . import reading
from .model import KINDS

(_NONE, _CALL, _RESUME, _THROW, _RETURN, _YIELD, _UNWIND, _C_CALL, _C_RETURN, _C_EXCEPTION, _EXCEPTION, _MALLOC, _CALLOC,
 _REALLOC, _FREE, _TIME, _GAP, _STACK, _FRAME, _, _THREAD_END) = range(21)
_PAUSE = 27
_SWITCH = 29
_TASK = 30
_OPEN = 31
_NOBODY = 0
_FREED = 1003       # events from here on free a block; from _MADE on they make one
_REALLOC_FREE = 1004
_MADE = 1000
_LOOK_BACK_EVENTS = 1 << 22  # of a thread, before a stretch
_KEEPS = -1         # in value2 of a realloc_free: the realloc failed, nothing was freed


def _by_kind(values, dtype):
    array = np.zeros(32, dtype)
    for kind, value in values.items():
        array[kind] = value
    return array


_EXTRA_WORDS = _by_kind({_MALLOC: 1, _CALLOC: 1, _FREE: 1, _TIME: 1, _GAP: 1, _REALLOC: 2, _SWITCH: 2, _TASK: 1}, np.uint8)
_BEGINS = (_CALL, _RESUME, _THROW, _C_CALL, _FRAME)
_ENDS = (_RETURN, _YIELD, _UNWIND, _C_RETURN, _C_EXCEPTION)
_EMPTIES = (_GAP, _STACK, _PAUSE, _THREAD_END, _SWITCH)  # of a greenlet that goes on, what it called is not kept
_STEP = _by_kind({**{kind: 1 for kind in _BEGINS}, **{kind: -1 for kind in _ENDS}}, np.int8)
_ON_STACK = _by_kind({kind: 1 for kind in _BEGINS + _ENDS + _EMPTIES}, np.bool_)
_IS_EMPTYING = _by_kind({kind: 1 for kind in _EMPTIES}, np.bool_)
_TELLS = _by_kind({_STACK: 1, _GAP: 1, _PAUSE: 1}, np.bool_)
_IS_NATIVE = _by_kind({kind: 1 for kind in (_C_CALL, _C_RETURN, _C_EXCEPTION)}, np.uint8)
_IS_MEMORY = _by_kind({kind: 1 for kind in (_MALLOC, _CALLOC, _REALLOC, _FREE)}, np.bool_)
#: The kinds as the events of the table, by EventProfiler's numbers; 0: no row.
_EVENT = _by_kind({_CALL: 1, _RESUME: 1, _THROW: 1, _RETURN: 2, _YIELD: 2, _UNWIND: 2, _C_CALL: 3, _C_RETURN: 4,
                   _EXCEPTION: 5, _C_EXCEPTION: 6, _MALLOC: 1000, _CALLOC: 1001, _REALLOC: 1002, _FREE: 1003}, np.int16)


# --- names ---

class _Codes:
    """Texts as numbers, in the order in which they are met."""

    def __init__(self):
        self.texts = []
        self._numbers = {}

    def of(self, text):
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


class Functions:
    """name, mod and line of all functions of a trace, by their numbers."""

    def __init__(self, trace):
        names, mods = _Codes(), _Codes()
        self.base = {}
        columns = [(names.of(""), mods.of(""), -1)] * 2
        for process in trace.processes:
            self.base[process.number] = len(columns)
            for number in range(max(process.code_limit, process.c_function_limit, 1)):
                columns.append(self._code(process, number, names, mods))
                columns.append(self._c_function(process, number, names, mods))
        self.names, self.mods = names.texts, mods.texts
        self.name, self.mod, self.line = (np.array(column, np.int32) for column in zip(*columns))

    @staticmethod
    def _code(process, number, names, mods):
        code = process.codes.get(number)
        if code is None:
            return names.of("<unknown function %d>" % number), mods.of("?"), 0
        return names.of(_storable(code.name)), mods.of(_storable(code.file)), code.line & 0x7fffffff

    @staticmethod
    def _c_function(process, number, names, mods):
        function = process.c_functions.get(number)
        if function is None:
            return names.of("<unknown C function %d>" % number), mods.of(""), -1
        cls = function.cls.rpartition(".")[2]
        name = cls + "." + function.name if cls else function.name
        return names.of(_storable(name)), mods.of(_storable(function.module)), -1


def _storable(text):
    return text.replace("\0", "\ufffd")


# --- chunks ---

class _Events:
    """The events of a chunk, unpacked."""

    def __init__(self, chunk, payload):
        n, m = chunk.events, chunk.extras
        self.count, self.first_ticks = n, chunk.first_ticks
        self.ok = n <= reading.CHUNK_EVENTS_MAX and len(payload) == 8 * n + 8 * m
        if not self.ok:
            return
        raw = np.frombuffer(payload, np.uint8)
        self.heads = raw[:4 * n].view("<u4")
        self.kinds = (self.heads & np.uint32(31)).astype(np.uint8)
        self.words = _EXTRA_WORDS[self.kinds]
        self.ok = int(self.words.sum()) == m
        self.extras = _gather(raw[8 * n:], 8, m, np.uint64)
        self.ticks = self._absolute(_gather(raw[4 * n:8 * n], 4, n, np.uint32), chunk.first_ticks) if self.ok else None

    def _absolute(self, deltas, first_ticks):
        times = np.flatnonzero(self.kinds == _TIME)
        ticks = deltas.astype(np.uint64)
        if not len(times):
            ticks[:1] += np.uint64(first_ticks)
            return np.cumsum(ticks, out=ticks)
        ticks[times] = 0
        np.cumsum(ticks, out=ticks)
        # Between two `time` events the distance to the last of them holds; before the first that to the chunk's.
        lengths = np.diff(times, prepend=0, append=self.count)
        starts = np.concatenate(([np.uint64(first_ticks)], self.extras[self.extra_places()[times]] - ticks[times]))
        ticks += np.repeat(starts.astype(np.uint64), lengths)
        return ticks

    def extra_places(self):
        """Where the extra words of each event begin."""
        ends = np.cumsum(self.words, dtype=np.int64)
        return ends - self.words


def _gather(planes, width, count, dtype):
    """The numbers whose bytes stand plane by plane, lowest byte first."""
    numbers = np.empty((count, width), np.uint8)
    for plane in range(width):
        numbers[:, plane] = planes[plane * count:(plane + 1) * count]
    return numbers.reshape(-1).view("<u%d" % width).astype(dtype, copy=False)


def _nanoseconds(line, ticks):
    """model.Line.at() of all ticks, exactly."""
    if not len(ticks):
        return np.empty(0, np.int64)
    low, high = int(ticks.min()), int(ticks.max())
    if low >= line.ticks and abs(line.at(high)) < 1 << 61 and line.at(high) - line.ns < 1 << 60:
        if line.shift == 0:
            return (ticks - np.uint64(line.ticks)).astype(np.int64) * line.factor + line.ns
        if high - low < 1 << 32 and line.shift >= 32:
            return _scaled(line, ticks, low)
    early = ticks < np.uint64(line.ticks)
    if early.any() and not early.all() and high - low < 1 << 32:
        ns = np.empty(len(ticks), np.int64)
        ns[early], ns[~early] = _nanoseconds(line, ticks[early]), _nanoseconds(line, ticks[~early])
        return ns
    return np.array([line.at(int(tick)) for tick in ticks], np.int64)


def _scaled(line, ticks, low):
    """(ticks - line.ticks) * factor >> shift for ticks less than 2^32 apart: 32 bits at a time from the lowest on."""
    whole, rest = divmod((low - line.ticks) * line.factor, 1 << line.shift)
    half = np.uint64(0xffffffff)
    span = ticks - np.uint64(low)
    lower = span * np.uint64(line.factor & 0xffffffff)
    upper = span
    upper *= np.uint64(line.factor >> 32)
    upper += lower >> np.uint64(32)
    lower &= half
    lower += np.uint64(rest & 0xffffffff)
    lower >>= np.uint64(32)
    upper += lower
    upper += np.uint64(rest >> 32)
    upper >>= np.uint64(line.shift - 32)
    ns = upper.view(np.int64)
    ns += line.ns + whole
    return ns


class _Stream:
    """The chunks of one thread from one of its places on, as tools/trace_stream.c reads them."""

    def __init__(self, trace, thread, first):
        self._trace = trace
        self._places = thread.places
        self._first = first

    def __iter__(self):
        """Yields (events, hole): hole says that events are missing before. The last one may have no events: None."""
        places, first = self._places, self._first
        holes = places[first].holes if 0 < first < len(places) else 0
        last_ticks, hole, began = None, False, False
        for place in places[first:]:
            hole |= place.holes & 0xffff != holes & 0xffff and (not began or place.first_ticks != last_ticks)
            events = self._read(place)
            began, holes, last_ticks = True, place.holes, place.last_ticks
            if events is None:
                hole = True
                continue
            yield events, hole
            hole = False
        if hole:
            yield None, True

    def _read(self, place):
        found = self._trace.file.read(place)
        if not found:
            return None
        events = _Events(*found)
        if not events.ok:
            self._trace.file.note_damage(place)
            return None
        return events


# --- the stack ---

class _Stack:
    """The call stack of one thread: frames, outermost first, and for each the function that called it."""

    _PIECE = 1024   # events to take together after an end that did not fit
    _SMALL = 96     # so few are taken one by one

    def __init__(self):
        self.frames = []
        self.callers = []

    def push(self, function):
        self.callers.append(self.below(len(self.frames)))
        self.frames.append(function)

    def below(self, depth):
        """The innermost Python function among the first frames."""
        if not depth:
            return _NOBODY
        return self.callers[depth - 1] if self.frames[depth - 1] & 1 else self.frames[depth - 1]

    def clear(self):
        del self.frames[:], self.callers[:]

    def _end(self, function):
        """One end, fitting or not: as replay_mismatch() of tools/replay.h. Returns the caller."""
        depth = len(self.frames)
        while depth and self.frames[depth - 1] != function:
            depth -= 1
        if not depth:
            return self.below(len(self.frames))
        caller = self.callers[depth - 1]
        del self.frames[depth - 1:], self.callers[depth - 1:]
        return caller

    def run(self, functions, steps):
        """Begins (step 1), ends (-1) and emptyings (0) in order. Returns for each the caller of its function, the function that
        runs after it, and the caller of that one."""
        count = len(functions)
        result = tuple(np.zeros(count, np.int32) for _ in range(3))
        emptyings = np.flatnonzero(steps == 0).tolist()
        at, piece = 0, count
        for stop in emptyings + [count]:
            while at < stop:
                end = min(stop, at + piece)
                take = self._one_by_one if end - at <= self._SMALL else self._together
                done = take(functions[at:end], steps[at:end], *(column[at:end] for column in result))
                at += done
                fitted = at == end
                piece = min(piece * 2, count) if fitted else self._PIECE
                if not fitted:
                    self._one_by_one(functions[at:at + 1], steps[at:at + 1], *(column[at:at + 1] for column in result))
                    at += 1
            if stop < count:
                self.clear()
                at = stop + 1
        return result

    def _one_by_one(self, functions, steps, callers, running, running_callers):
        for i, (function, step) in enumerate(zip(functions.tolist(), steps.tolist())):
            if step > 0:
                self.push(function)
                callers[i] = self.callers[-1]
            else:
                callers[i] = self._end(function)
            if self.frames:
                running[i], running_callers[i] = self.frames[-1], self.callers[-1]
        return len(functions)

    def _together(self, functions, steps, callers, running, running_callers):
        """All at once, up to the first end that does not fit; returns how many were taken.

        What runs after an event is the last begin that led to the depth after it. Sorted by depth, stable, that begin
        is the last one before it in the sorted order.
        """
        base = len(self.frames)
        functions = np.concatenate((np.array(self.frames, np.int32), functions))
        begins = np.concatenate((np.ones(base, np.bool_), steps > 0))
        depths = np.cumsum(np.where(begins, np.int32(1), np.int32(-1)), dtype=np.int32)
        floor = np.minimum.accumulate(depths)
        if floor[-1] < 0:  # ends without anything on the stack change nothing
            depths -= np.minimum(floor, 0)
        tops = self._tops(depths, begins)
        before = np.empty_like(tops)
        before[0], before[1:] = -1, tops[:-1]
        misfits = np.flatnonzero(~begins & (before >= 0) & (functions[before] != functions))
        count = int(misfits[0]) if len(misfits) else len(functions)
        parents = self._python_callers(functions, begins, before)
        own = np.where(begins, parents, np.where(before >= 0, parents[before], _NOBODY))
        callers[:count - base] = own[base:count]
        running[:count - base] = np.where(tops >= 0, functions[tops], _NOBODY)[base:count]
        running_callers[:count - base] = np.where(tops >= 0, parents[tops], _NOBODY)[base:count]
        self._keep(functions, parents, before, int(tops[count - 1]) if count else -1)
        return count - base

    @staticmethod
    def _tops(depths, begins):
        """For each event the begin that runs after it; -1: none."""
        narrow = depths.astype(np.uint16) if int(depths.max()) < 65536 else depths
        order = np.argsort(narrow, kind="stable").astype(np.int32)
        last = np.where(begins[order], np.arange(len(order), dtype=np.int32), 0)
        np.maximum.accumulate(last, out=last)
        tops = np.empty_like(order)
        tops[order] = order[last]
        tops[depths == 0] = -1
        return tops

    @staticmethod
    def _python_callers(functions, begins, before):
        """For each begin the innermost Python function that was running then."""
        callers = np.where(before >= 0, functions[before], _NOBODY)
        at = np.flatnonzero(begins & (callers & 1 == 1))
        up = before[at]
        while len(at):  # C functions call each other only in damaged traces: mostly one round
            up = before[up]
            found = np.where(up >= 0, functions[up], _NOBODY)
            callers[at] = found
            again = found & 1 == 1
            at, up = at[again], up[again]
        return callers

    def _keep(self, functions, parents, before, top):
        frames, callers = [], []
        while top >= 0:
            frames.append(int(functions[top]))
            callers.append(int(parents[top]))
            top = int(before[top])
        self.frames, self.callers = frames[::-1], callers[::-1]


# --- one thread ---

class _Choice:
    """What was asked for."""

    def __init__(self, trace, kinds, processes, threads, start, end):
        from . import EVENTS
        kinds = list(EVENTS) if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)
        unknown = [kind for kind in kinds if kind not in EVENTS]
        if unknown:
            raise ValueError("evprof: there is no kind %s; kinds are %s" % (unknown[0], ", ".join(EVENTS)))
        self.kinds = {EVENTS[kind] for kind in kinds}
        self.all_kinds = len(self.kinds) == len(EVENTS)
        # The size of a freed block is told where it was made.
        frees = self.kinds & {_FREED, _REALLOC_FREE}
        self.read = self.kinds | (set(range(_MADE, _REALLOC_FREE + 1)) if frees else set())
        self.processes = None if processes is None else _set(processes)
        self.threads = None if threads is None else _set(threads)
        self.from_ns = None if start is None else trace.start_ns + int(start)
        self.to_ns = None if end is None else trace.start_ns + int(end)

    def wants(self, thread):
        return (self.processes is None or thread.process.pid in self.processes) and (
            self.threads is None or thread.tid in self.threads)

    def first_place(self, thread):
        """Number of the first chunk that the stretch touches."""
        at = thread.process.line.at
        for number, place in enumerate(thread.places):
            if self.from_ns is None or at(place.last_ticks) >= self.from_ns:
                return number
        return len(thread.places)

    def is_after(self, thread, place):
        return self.to_ns is not None and thread.process.line.at(place.first_ticks) >= self.to_ns


def _set(values):
    return {int(values)} if np.isscalar(values) else {int(value) for value in values}


class _Rows:
    """Rows thread after thread, in arrays that grow. Numbers of functions instead of their names."""

    kept = (("time", np.int64), ("value1", np.int64), ("value2", np.int64), ("event", np.int16), ("running", np.int32),
            ("caller", np.int32))

    _BELIEVED = 1 << 27  # a damaged file may promise more than there can be

    def __init__(self, expected):
        # Reallocs take two rows, and other events none. What is not used costs no memory.
        self._room = min(expected + expected // 16, self._BELIEVED)
        self._columns = [np.empty(self._room, dtype) for _, dtype in self.kept]
        self.count = 0

    def add(self, columns):
        end = self.count + len(columns[0])
        if end > self._room:
            self._room = end + end // 2
            for column in self._columns:
                column.resize(self._room, refcheck=False)
        for column, fresh in zip(self._columns, columns):
            column[self.count:end] = fresh
        self.count = end

    def take(self):
        """The arrays by name. They are the caller's then."""
        return {name: column[:self.count] for (name, _), column in zip(self.kept, self._columns)}


class _ThreadReader:
    """Reads the rows of one thread."""

    def __init__(self, trace, thread, choice):
        self._trace, self._thread, self._choice = trace, thread, choice
        process = thread.process
        self._line = process.line
        self._base = trace._functions().base[process.number]
        self._codes, self._c_functions = np.uint32(process.code_limit), np.uint32(process.c_function_limit)
        self._first = choice.first_place(thread)
        self._stack = _Stack()
        self._now = None

    def read(self, rows):
        choice = self._choice
        if choice.from_ns is not None:
            self._begin()
        for events, hole in self._chunks(self._first):
            if hole and self._matters(events):
                self._stack.clear()
            if events is not None:
                self._take(rows, events, *self._stretch(events))

    def _chunks(self, first):
        """The chunks from that place on that the stretch touches, or that are before it."""
        passed = False
        stream = iter(_Stream(self._trace, self._thread, first))
        for place in self._thread.places[first:]:
            if self._choice.is_after(self._thread, place):
                passed = True
                break
            for events, hole in self._until(stream, place):
                yield events, hole
        if not passed:
            yield from stream

    def _matters(self, events):
        """Is what is missing before these events in the stretch?"""
        return self._choice.from_ns is None or events is None or (
            self._line.at(events.first_ticks) >= self._choice.from_ns)

    @staticmethod
    def _until(stream, place):
        if place.damaged:
            return
        found = next(stream, None)
        if found is not None:
            yield found

    def _stretch(self, events):
        """(ns, from, to): the times of a chunk's events, never going back, and which of them are asked for."""
        ns = _nanoseconds(self._line, events.ticks)
        if self._now is not None and len(ns):
            ns[0] = max(int(ns[0]), self._now)
        np.maximum.accumulate(ns, out=ns)
        if len(ns):
            self._now = int(ns[-1])
        start = 0 if self._choice.from_ns is None else int(np.searchsorted(ns, self._choice.from_ns))
        end = len(ns) if self._choice.to_ns is None else int(np.searchsorted(ns, self._choice.to_ns))
        return ns, start, max(start, end)

    def _functions_of(self, heads, kinds):
        """The numbers of the functions of events that begin or end."""
        ids = heads >> np.uint32(5)
        native = _IS_NATIVE[kinds]
        limits = np.where(native, self._c_functions, self._codes)
        ids[ids >= limits] = 0
        functions = ids.astype(np.int32)
        functions *= 2
        functions += native
        functions += self._base
        return functions

    def _begin(self):
        """Puts on the stack what runs when the stretch begins, as tools/running.c finds it."""
        first, told = self._look_back()
        unknown = first > 0 or self._thread.process.meta.get("start") == "rejoin"
        stream = self._chunks(first)
        for events, hole in stream:
            if events is None or (hole and self._matters(events)):
                break
            if hole:
                self._stack.clear()
                unknown = True
            start, at = self._stretch(events)[1], told or 0
            if told is not None:
                unknown = False
                at = self._open(events, told)
                told = 0 if at == events.count else None
            unknown = self._replay(events, at, start, unknown)
            if start < events.count:
                if unknown:
                    self._put_beneath(events, start, stream)
                break
        self._now = None

    def _look_back(self):
        """The place from which on to replay: where the stack was last told, or the first. And the event that tells it, if those
        after it need not be seen as an end of what was before."""
        place, read = self._first, 0
        while place and read < _LOOK_BACK_EVENTS:
            place -= 1
            read += self._thread.places[place].events
            events, hole = next(iter(_Stream(self._trace, self._thread, place)), (None, True))
            if events is None:
                return place, None
            opens = events.kinds == _OPEN
            opens[1:] &= ~opens[:-1].copy()
            opens[:1] &= place == 0  # the chunk before may begin what goes on here
            told = np.flatnonzero(opens | _TELLS[events.kinds])
            if hole or len(told):
                return place, int(told[-1]) if len(told) and events.kinds[told[-1]] == _OPEN else None
        return place if place == 0 else self._first, None

    def _open(self, events, at):
        """The stack as the events from number `at` on tell it. Returns the number of the event behind them."""
        behind = at
        while behind < events.count and events.kinds[behind] == _OPEN:
            behind += 1
        for function in self._functions_of(events.heads[at:behind], events.kinds[at:behind]).tolist():
            self._stack.push(function)
        return behind

    def _replay(self, events, at, end, unknown):
        """Moves the stack by events[at:end]. Returns whether there may be more beneath it."""
        kinds, heads = events.kinds[at:end], events.heads[at:end]
        moves = np.flatnonzero(_ON_STACK[kinds])
        self._stack.run(self._functions_of(heads[moves], kinds[moves]), _STEP[kinds[moves]])
        told = np.flatnonzero(_TELLS[kinds])
        return bool(kinds[told[-1]] != _STACK) if len(told) else unknown

    def _put_beneath(self, events, start, stream):
        """What ends in the stretch without having begun in it is beneath what is known."""
        frames, beneath = list(self._stack.frames), []
        self._now = None
        while events is not None:
            end = self._stretch(events)[2]
            kinds = events.kinds[start:end]
            stops = np.flatnonzero(_IS_EMPTYING[kinds] | (kinds == _SWITCH))
            kinds = kinds[:stops[0]] if len(stops) else kinds
            calls = np.flatnonzero((_STEP[kinds] != 0) & (kinds != _FRAME))
            functions = self._functions_of(events.heads[start + calls], kinds[calls])
            for function, step in zip(functions.tolist(), _STEP[kinds[calls]].tolist()):
                if step > 0:
                    frames.append(function)
                elif not frames:
                    beneath.append(function)
                elif function in frames:
                    del frames[len(frames) - 1 - frames[::-1].index(function):]
            if len(stops) or end < events.count:
                break
            events, hole = next(stream, (None, False))
            if hole:
                break
            start = 0
        known = self._stack.frames[:]
        self._stack.clear()
        for function in beneath[::-1] + known:
            self._stack.push(function)

    def _take(self, rows, events, ns, start, end):
        """Adds the rows of events[start:end] of a chunk."""
        kinds, heads = events.kinds[start:end], events.heads[start:end]
        on_stack = _ON_STACK[kinds]
        moves = np.flatnonzero(on_stack)
        functions = self._functions_of(heads[moves], kinds[moves])
        top = self._stack
        at_start = (top.frames[-1], top.callers[-1]) if top.frames else (_NOBODY, _NOBODY)
        callers, running, running_callers = self._stack.run(functions, _STEP[kinds[moves]])
        moved = np.cumsum(on_stack, dtype=np.int32)
        who = np.concatenate(([np.int32(at_start[0])], running))[moved]
        whose = np.concatenate(([np.int32(at_start[1])], running_callers))[moved]
        who[moves], whose[moves] = functions, callers
        self._add(rows, events, ns[start:end], start, end, who, whose)

    def _add(self, rows, events, ns, start, end, who, whose):
        kinds, heads = events.kinds[start:end], events.heads[start:end]
        codes = _EVENT[kinds]
        value1, value2 = np.zeros(len(kinds), np.int64), np.zeros(len(kinds), np.int64)
        memory = np.flatnonzero(_IS_MEMORY[kinds])
        old = None
        if len(memory):
            places = events.extra_places()[start:end][memory]
            words = events.extras[places]
            value1[memory] = (words & np.uint64((1 << 48) - 1)).view(np.int64)
            sizes = (words >> np.uint64(48) << np.uint64(25)).view(np.int64) + (heads[memory] >> np.uint32(7))
            value2[memory] = np.where(kinds[memory] == _FREE, 0, sizes)
            reallocs = np.flatnonzero(kinds[memory] == _REALLOC)
            if len(reallocs):
                old = memory[reallocs], (events.extras[places[reallocs] + 1] & np.uint64((1 << 48) - 1)).view(np.int64)
        columns = [ns, value1, value2, codes, who, whose]
        if old is not None:
            columns = self._split_reallocs(columns, *old)
        keep = columns[3] != 0
        if not self._choice.all_kinds:
            keep &= np.isin(columns[3], np.array(sorted(self._choice.read), np.int16))
        if not keep.all():
            columns = [column[keep] for column in columns]
        rows.add(columns)

    @staticmethod
    def _split_reallocs(columns, at, old):
        """Two rows for each: the old block goes, then the new one comes."""
        copies = np.ones(len(columns[0]), np.int64)
        copies[at] = 2
        first = at + np.arange(len(at))
        failed = columns[1][at] == 0
        columns = [np.repeat(column, copies) for column in columns]
        columns[1][first] = old
        columns[2][first] = np.where(failed, _KEEPS, 0)
        columns[3][first] = _REALLOC_FREE
        return columns


# --- all threads ---

_PIECE = 1 << 16  # events of memory to match together, at most so many

def _find_freed_sizes(rows, process):
    """Fills value2 of what frees a block with minus the size that the block had."""
    event, address, size = rows["event"], rows["value1"], rows["value2"]
    memory = event >= _MADE
    failed = (event == _REALLOC_FREE) & (size == _KEEPS)
    if failed.any():
        size[failed] = 0
        memory &= ~failed
    at = np.flatnonzero(memory & (address != 0))
    if process is None:
        _match_blocks(at, event, address, size)
        return
    numbers = process[at]
    for number in np.unique(numbers):
        _match_blocks(at[numbers == number], event, address, size)


def _match_blocks(at, event, address, size):
    """Gives each free the size of the event before with the same address, if that made a block.

    In pieces that fit the processor's caches; only the first and the last event of each address in a piece meet those of
    other pieces.
    """
    piece = _PIECE
    waits = event[at] >= _FREED  # for its size
    while True:
        left = [_match_piece(at[i:i + piece], waits[i:i + piece], event, address, size)
                for i in range(0, len(at), piece)]
        if len(left) <= 1:
            return
        fewer, waits = np.concatenate([kept for kept, _ in left]), np.concatenate([kept for _, kept in left])
        if len(fewer) > len(at) * 3 // 4:  # hardly any address comes twice in a piece
            order = np.argsort(address[fewer], kind="stable")
            addresses = address[fewer[order]]
            _give_sizes(fewer[order], waits[order], addresses[1:] == addresses[:-1], event, size)
            return
        at = fewer


def _match_piece(at, waits, event, address, size):
    """Matches up to 2^16 events. Returns those that events of other pieces may match, in order, and which of them wait."""
    keys = address[at].astype(np.uint64)
    keys <<= np.uint64(16)
    keys |= np.arange(len(at), dtype=np.uint64)
    keys.sort()
    order = (keys & np.uint64(0xffff)).astype(np.intp)
    keys >>= np.uint64(16)
    same = keys[1:] == keys[:-1]
    waits = waits[order]
    _give_sizes(at[order], waits, same, event, size)
    waits[1:] &= ~same                # what comes first of its address may be made in a piece before
    edges = waits.copy()
    edges[:-1] |= ~same               # the last of each address may be freed in a later one, or has been
    edges[-1:] = True
    keep, waiting = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
    keep[order[edges]] = True
    waiting[order[waits]] = True
    return at[keep], waiting[keep]


def _give_sizes(at, waits, same, event, size):
    """at: events sorted by address; same: whether it is that of the event before."""
    known = np.flatnonzero(waits[1:] & same)
    known = known[event[at[known]] < _FREED]
    size[at[known + 1]] = -size[at[known]]


def _merged(trace, choice):
    """The rows of all threads in one order of time, and for each the number of its thread in the list of them."""
    threads = [thread for thread in trace.threads if thread.places and choice.wants(thread)]
    rows = _Rows(sum(place.events for thread in threads for place in thread.places))
    counts = [0]
    for thread in threads:
        _ThreadReader(trace, thread, choice).read(rows)
        counts.append(rows.count)
    lengths = np.diff(counts)
    rows = rows.take()
    thread = np.repeat(np.arange(len(threads), dtype=np.int32), lengths)
    if np.count_nonzero(lengths) > 1:
        rows["thread"] = thread
        _reorder(rows, np.argsort(rows["time"], kind="stable"))
        thread = rows.pop("thread")
    return threads, rows, thread


def _reorder(rows, order):
    """Puts the rows in that order. Threads take turns, so it is made of long stretches, which are copied as they are."""
    breaks = np.flatnonzero(np.diff(order) != 1) + 1
    if len(breaks) * 64 > len(order):
        for name in rows:
            rows[name] = np.take(rows[name], order)
        return
    starts = order[np.concatenate(([0], breaks))].tolist()
    lengths = np.diff(breaks, prepend=0, append=len(order)).tolist()
    for name, column in rows.items():
        rows[name] = np.concatenate([column[start:start + length] for start, length in zip(starts, lengths)])


def _keep_small_blocks():
    """The C library gives blocks of a chunk's size back to the kernel with each chunk, and takes new ones, until it has
    seen a larger one go: half of all page faults."""
    block = np.empty(1 << 24, np.uint8)
    del block


def _spell_out(functions, threads, rows, who, whose, thread):
    """Fills in the names of functions, pid and tid. In pieces: what one needs stays in the processor's caches."""
    block = 1 << 16
    pids = np.array([thread.process.pid for thread in threads], np.int64).astype(np.int32)
    tids = np.array([thread.tid for thread in threads], np.int64).astype(np.int32)
    columns = {name: np.empty(len(who), np.int32)
               for name in ("name", "mod", "lineno", "from_name", "from_mod", "from_line", "pid", "tid")}
    for at in range(0, len(who), block):
        part = slice(at, at + block)
        running, caller = who[part].astype(np.intp), whose[part].astype(np.intp)
        # A C function has no line of its own: it stands in that of its caller.
        placed = np.where(running & 1, caller, running)
        columns["name"][part], columns["mod"][part] = functions.name[running], functions.mod[running]
        columns["lineno"][part] = functions.line[placed]
        columns["from_name"][part], columns["from_mod"][part] = functions.name[caller], functions.mod[caller]
        columns["from_line"][part] = functions.line[caller]
        columns["pid"][part], columns["tid"][part] = pids[thread[part]], tids[thread[part]]
    rows.update(columns)


def make(trace, kinds, processes, threads, start, end, since_start):
    """model.Trace.to_numpy()."""
    choice = _Choice(trace, kinds, processes, threads, start, end)
    functions = trace._functions()
    _keep_small_blocks()
    threads, rows, thread = _merged(trace, choice)
    process_of = np.array([thread.process.number for thread in threads], np.int32)
    _find_freed_sizes(rows, process_of[thread] if len(set(process_of.tolist())) > 1 else None)
    if choice.read != choice.kinds:
        keep = np.isin(rows["event"], np.array(sorted(choice.kinds), np.int16))
        rows, thread = {name: column[keep] for name, column in rows.items()}, thread[keep]
    rows["time"] += -trace.start_ns if since_start else trace.realtime_offset_ns
    _spell_out(functions, threads, rows, rows.pop("running"), rows.pop("caller"), thread)
    return rows


# --- for others ---

def _event_names(numbers):
    """(codes, names): the events as categories."""
    from . import EVENTS
    code_of = np.zeros(max(EVENTS.values()) + 1, np.int8)
    for code, number in enumerate(EVENTS.values()):
        code_of[number] = code
    return code_of[numbers], list(EVENTS)


def _cleaned(codes, texts, clean):
    """The codes and texts after clean() of each text. Two texts may become one."""
    if clean is None:
        return codes, texts
    fresh = _Codes()
    code_of = np.array([fresh.of(clean(text)) for text in texts], np.int32)
    return code_of[codes], fresh.texts


def _categories(trace, columns, clean_file_name):
    """(name, codes, texts) of the columns that hold texts, in the order of the table; texts None: numbers."""
    # Modules of C functions and file names are both in mods, and a file name never is the name of a module.
    for name, column in columns.items():
        if name == "event":
            yield (name,) + _event_names(column)
        elif name in ("name", "from_name"):
            yield name, column, trace.names
        elif name in ("mod", "from_mod"):
            yield (name,) + _cleaned(column, trace.mods, clean_file_name)
        else:
            yield name, column, None


def dataframe(trace, columns, clean_file_name):
    import pandas
    return pandas.DataFrame({
        name: codes if texts is None else pandas.Categorical.from_codes(codes, categories=texts)
        for name, codes, texts in _categories(trace, columns, clean_file_name)}, copy=False)


def parquet(trace, columns, clean_file_name, path):
    import pyarrow
    from pyarrow import parquet as writer
    arrays = {name: pyarrow.array(codes) if texts is None else
              pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes), pyarrow.array(texts))
              for name, codes, texts in _categories(trace, columns, clean_file_name)}
    writer.write_table(pyarrow.table(arrays), path)
