"""The table of events of a trace, row by row, by the plainest replay there is: what the quick ones are compared with.

Needs no numpy. Shares the reading of chunks and names with the package evprof, and nothing of stacks, times and rows.
"""
import heapq
import struct

from evprof import reading

COLUMNS = "time value1 value2 event name mod lineno from_name from_mod from_line pid tid".split()
(CALL, RESUME, THROW, RETURN, YIELD, UNWIND, C_CALL, C_RETURN, C_EXCEPTION, EXCEPTION, MALLOC, CALLOC, REALLOC, FREE, TIME,
 GAP, STACK, FRAME) = range(1, 19)
THREAD_END, PAUSE, SWITCH, TASK = 20, 27, 29, 30
NAMES = {CALL: "call", RESUME: "call", THROW: "call", RETURN: "return", YIELD: "return", UNWIND: "return",
         C_CALL: "c_call", C_RETURN: "c_return", C_EXCEPTION: "c_exception", EXCEPTION: "exception", MALLOC: "malloc",
         CALLOC: "calloc", REALLOC: "realloc", FREE: "free"}
WORDS = {MALLOC: 1, CALLOC: 1, FREE: 1, TIME: 1, GAP: 1, REALLOC: 2, SWITCH: 2, TASK: 1}
BEGINS, ENDS = (CALL, RESUME, THROW, C_CALL, FRAME), (RETURN, YIELD, UNWIND, C_RETURN, C_EXCEPTION)
EMPTIES = (GAP, STACK, PAUSE, THREAD_END)


def numbers(payload, at, count, width):
    planes = [payload[at + plane * count:at + (plane + 1) * count] for plane in range(width)]
    return [int.from_bytes(digits, "little") for digits in zip(*planes)]


def unpacked(chunk, payload):
    """(head, delta, extras) of each event; None where the payload contradicts itself."""
    n, m = chunk.events, chunk.extras
    if n > reading.CHUNK_EVENTS_MAX or len(payload) != 8 * (n + m):
        return None
    payload = bytes(payload)
    heads, deltas, words = struct.unpack_from("<%dI" % n, payload), numbers(payload, 4 * n, n, 4), numbers(
        payload, 8 * n, m, 8)
    events, used = [], 0
    for head, delta in zip(heads, deltas):
        more = used + WORDS.get(head & 31, 0)
        events.append((head, delta, words[used:more]))
        used = more
    return events if used == m else None


def events_of(trace, thread):
    """(ns, head, extras) of each event of a thread; missing chunks are gaps."""
    hole, holes, last, latest = False, 0, None, None
    line = thread.process.line
    for place in thread.places:
        hole |= place.holes != holes and place.first_ticks != last
        holes, last = place.holes, place.last_ticks
        found = trace.file.read(place)
        events = found and unpacked(*found)
        if found and events is None:
            trace.file.note_damage(place)
        if events is None:
            hole = True
            continue
        ticks = place.first_ticks
        if hole:
            yield max(line.at(ticks), latest or line.at(ticks)), GAP, [0]
        hole = False
        for head, delta, extras in events:
            ticks = extras[0] if head & 31 == TIME else ticks + delta
            latest = line.at(ticks) if latest is None else max(latest, line.at(ticks))
            yield latest, head, extras


class Thread:
    """The stack of one thread: (is a C function, id)."""

    def __init__(self, trace, thread, start, end):
        self.thread, self.process = thread, thread.process
        self.stack = []
        self.events = events_of(trace, thread)
        if start is not None:
            self._find_running(trace, start, end)

    def function(self, head):
        native = head & 31 in (C_CALL, C_RETURN, C_EXCEPTION)
        limit = self.process.c_function_limit if native else self.process.code_limit
        return native, head >> 5 if head >> 5 < limit else 0

    def _find_running(self, trace, start, end):
        """The stack as all that was before leaves it; after a gap, on top of what ends without having begun."""
        unknown = self.process.meta.get("start") == "rejoin"
        known, beneath = None, []
        for ns, head, _ in events_of(trace, self.thread):
            kind = head & 31
            if ns < start:
                self.move(head)
                unknown = kind in (GAP, PAUSE) or (unknown and kind != STACK)
                continue
            if known is None:
                known = list(self.stack)
            if not unknown or kind in EMPTIES + (SWITCH,) or (end is not None and ns >= end):
                break
            if kind in BEGINS and kind != FRAME:
                self.stack.append(self.function(head))
            elif kind in ENDS and not self.stack:
                beneath.insert(0, self.function(head))
            elif kind in ENDS:
                self.move(head)
        self.stack = beneath + (self.stack if known is None else known)

    def caller(self, depth):
        """The innermost Python function below that depth."""
        for native, number in reversed(self.stack[:depth]):
            if not native:
                return native, number
        return None

    def move(self, head):
        """Moves the stack. Returns the (function, caller) of the event."""
        kind = head & 31
        if kind in EMPTIES:
            self.stack = []
        elif kind in BEGINS:
            self.stack.append(self.function(head))
            return self.stack[-1], self.caller(len(self.stack) - 1)
        elif kind in ENDS:
            function = self.function(head)
            if function not in self.stack:
                return function, self.caller(len(self.stack))
            while self.stack[-1] != function:
                self.stack.pop()
            caller = self.caller(len(self.stack) - 1)
            self.stack.pop()
            return function, caller
        elif self.stack:
            return self.stack[-1], self.caller(len(self.stack) - 1)
        return None, None

    def texts(self, function):
        """name, mod, line."""
        if function is None:
            return "", "", -1
        native, number = function
        if native:
            known = self.process.c_functions.get(number)
            if known is None:
                return "<unknown C function %d>" % number, "", -1
            cls = known.cls[known.cls.rfind(".") + 1:]
            return (cls + "." if cls else "") + known.name, known.module, -1
        known = self.process.codes.get(number)
        return (known.name, known.file, known.line) if known else ("<unknown function %d>" % number, "?", 0)


def memory(head, extras, blocks):
    """(address, size, event) of each row."""
    kind, address = head & 31, extras[0] & (1 << 48) - 1
    size = head >> 7 | extras[0] >> 48 << 25
    if kind == FREE:
        yield address, -blocks.pop(address, 0), "free"
        return
    if kind == REALLOC:
        old = extras[1] & (1 << 48) - 1
        yield old, -blocks.pop(old, 0) if address else 0, "realloc_free"
    if address:
        blocks[address] = size
    yield address, size, NAMES[kind]


def rows(trace, start=None, end=None):
    """The rows as lists of the strings in the csv, times since the start of the trace."""
    start = None if start is None else trace.start_ns + start
    end = None if end is None else trace.start_ns + end
    threads = [Thread(trace, thread, start, end) for thread in trace.threads]
    blocks = {process: {} for process in trace.processes}
    streams = [tagged(i, thread.events) for i, thread in enumerate(threads)]
    for ns, i, head, extras in heapq.merge(*streams, key=lambda event: event[:2]):
        if start is not None and ns < start:
            continue
        if end is not None and ns >= end:
            break
        thread = threads[i]
        function, caller = thread.move(head)
        kind = head & 31
        if kind not in NAMES:
            continue
        name, mod, line = thread.texts(function)
        from_name, from_mod, from_line = thread.texts(caller)
        if function and function[0]:
            line = from_line
        told = [(0, 0, NAMES[kind])]
        if MALLOC <= kind <= FREE:
            told = memory(head, extras, blocks[thread.process])
        for address, size, event in told:
            yield [str(value).replace("\0", "\ufffd") for value in (
                ns - trace.start_ns, address, size, event, name, mod, line, from_name, from_mod, from_line,
                thread.process.pid, thread.thread.tid)]


def tagged(i, events):
    return ((ns, i, head, extras) for ns, head, extras in events)
