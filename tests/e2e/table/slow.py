"""The table of events of a trace, row by row, by the plainest replay there is: what the quick ones are compared with.

Needs no numpy. plain.py reads the chunks and names; nothing here is evprof's.
"""
import heapq
import struct

import plain

COLUMNS = "time value1 value2 event name mod lineno from_name from_mod from_line pid tid value".split()
(CALL, RESUME, THROW, RETURN, YIELD, UNWIND, C_CALL, C_RETURN, C_EXCEPTION, EXCEPTION, MALLOC, CALLOC, REALLOC, FREE, TIME,
 GAP, STACK, FRAME) = range(1, 19)
SWITCH, TASK, OPEN = 29, 30, 31
THREAD_END, MARK, PAUSE, SPAN_BEGIN, SPAN_END, COUNTER = 33, 39, 40, 43, 44, 45  # 32 + the sub-kind
STACK_CUT = 1 << 26
NAMES = {CALL: "call", RESUME: "call", THROW: "call", RETURN: "return", YIELD: "return", UNWIND: "return",
         C_CALL: "c_call", C_RETURN: "c_return", C_EXCEPTION: "c_exception", EXCEPTION: "exception", MALLOC: "malloc",
         CALLOC: "calloc", REALLOC: "realloc", FREE: "free", MARK: "mark", SPAN_BEGIN: "span_begin", SPAN_END: "span_end",
         COUNTER: "counter"}
WORDS = {MALLOC: 1, CALLOC: 1, FREE: 1, TIME: 1, GAP: 1, REALLOC: 2, SWITCH: 2, TASK: 1}
BEGINS, ENDS = (CALL, RESUME, THROW, C_CALL, FRAME), (RETURN, YIELD, UNWIND, C_RETURN, C_EXCEPTION)
EMPTIES = (GAP, STACK, PAUSE, THREAD_END)


def numbers(payload, at, count, width):
    planes = [payload[at + plane * count:at + (plane + 1) * count] for plane in range(width)]
    return [int.from_bytes(digits, "little") for digits in zip(*planes)]


def known(head):
    """The kind, of six bits, with the argument or value above it; and its number of extra words."""
    kind = head & 31
    if kind < 19 or kind > 27:
        return kind | head >> 5 << 6, WORDS.get(kind, 0)
    if kind == 19:
        kind, words = 32 + (head >> 5 & 31), head >> 10 & 15
        return (kind if kind not in (SPAN_BEGIN, COUNTER) or words > 1 else 0) | head >> 14 << 6, words
    return (TIME if kind == 20 else 0), kind in (20, 26, 27)


def unpacked(chunk, payload):
    """(head, delta, extras) of each event; None where the payload contradicts itself."""
    n, m = chunk.events, chunk.extras
    if n > plain.CHUNK_EVENTS_MAX or len(payload) != 8 * (n + m):
        return None
    payload = bytes(payload)
    heads, deltas, words = struct.unpack_from("<%dI" % n, payload), numbers(payload, 4 * n, n, 4), numbers(
        payload, 8 * n, m, 8)
    events, used = [], 0
    for head, delta in zip(heads, deltas):
        head, more = known(head)
        more += used
        events.append((head, delta, words[used:more]))
        used = more
    return events if used == m else None


def events_of(trace, thread, first=0):
    """(number of the chunk, ns, head, extras) of each event of a thread from a chunk on; missing chunks are gaps."""
    hole, last, latest = False, None, None
    holes = thread.places[first].holes if first and first < len(thread.places) else 0
    line = thread.process.line
    for number, place in enumerate(thread.places[first:], first):
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
            yield number, max(line.at(ticks), latest or line.at(ticks)), GAP, [0]
        hole = False
        for head, delta, extras in events:
            ticks = extras[0] if head & 63 == TIME else ticks + delta
            latest = line.at(ticks) if latest is None else max(latest, line.at(ticks))
            yield number, latest, head, extras


class Thread:
    """The stack of one thread: (is a C function, id)."""

    def __init__(self, trace, thread, start, end):
        self.trace, self.thread, self.process = trace, thread, thread.process
        self.stack = []
        self.unknown = self.process.meta.get("start") == "rejoin"  # there may be frames beneath the stack
        self.greenlet, self.others = 0, {}  # the one that runs, 0: not known; stacks of the others, and what may be beneath
        self.others_unknown, self.met = self.unknown, False  # of greenlets that were not met; one was met
        self.events = (event[1:] for event in events_of(trace, thread))
        if start is not None:
            self._find_initial_stack(start, end)

    def function(self, head):
        native = head & 63 in (C_CALL, C_RETURN, C_EXCEPTION)
        limit = self.process.c_function_limit if native else self.process.code_limit
        return native, head >> 6 if head >> 6 < limit else 0

    def _look_back(self, start):
        """The chunk to begin with, and the first of its events that opens the stack; None: no opens."""
        places, opens = self.thread.places, None
        stretch = [n for n, place in enumerate(places) if self.process.line.at(place.last_ticks) >= start]
        first = at = stretch[0] if stretch else len(places)
        while at:
            at -= 1
            events, before = [], FRAME if at == 0 else OPEN
            for number, _, head, _ in events_of(self.trace, self.thread, at):
                if events and number != events[0]:
                    break
                events.append(number)
                kind = head & 63
                if kind in (GAP, STACK, PAUSE) or (kind == OPEN and before != OPEN):
                    opens = len(events) - 1 if kind == OPEN and number < first else -1
                before = kind
            if opens is not None or not events:
                break
        return at, None if opens == -1 else opens

    def _find_initial_stack(self, start, end):
        """The stack as what was before leaves it; after a gap, on top of what ends without having begun."""
        place, opens = self._look_back(start)
        self.unknown = self.others_unknown = self.unknown or place > 0
        known, beneath = None, []
        for i, (_, ns, head, extras) in enumerate(events_of(self.trace, self.thread, place)):
            kind = head & 63
            if opens is not None and (i < opens or kind == OPEN):
                self.unknown = False
                self.stack += [self.function(head)] if i >= opens else []
                continue
            opens = None
            if ns < start:
                self.move(head, extras)
                continue
            if known is None:
                known = list(self.stack)
            if not self.unknown or kind in EMPTIES + (SWITCH,) or (end is not None and ns >= end):
                break
            if kind in BEGINS and kind != FRAME:
                self.stack.append(self.function(head))
            elif kind in ENDS and not self.stack:
                beneath.insert(0, self.function(head))
            elif kind in ENDS:
                self.move(head, extras)
        self.stack = beneath + (self.stack if known is None else known)

    def caller(self, depth):
        """The innermost Python function below that depth."""
        for native, number in reversed(self.stack[:depth]):
            if not native:
                return native, number
        return None

    def switch(self, target, origin):
        """To the stack of another greenlet. What ran is lost if it is not the one that is said to stop."""
        self.met = True
        if not target or not origin:
            return
        if self.greenlet in (0, origin):
            self.others[origin] = self.stack, self.unknown
        self.greenlet = target
        self.stack, self.unknown = self.others.pop(target, ([], self.others_unknown))

    def empty(self, kind, head):
        self.stack = []
        if kind == STACK:
            self.unknown = bool(head >> 6 & STACK_CUT)
            return
        self.greenlet, self.others = 0, {}
        if kind != THREAD_END:
            self.unknown, self.others_unknown = True, self.others_unknown or self.met

    def move(self, head, extras):
        """Moves the stack. Returns the (function, caller) of the event."""
        kind = head & 63
        if kind in EMPTIES:
            self.empty(kind, head)
        elif kind == SWITCH:
            self.switch(*extras)
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
    """(address, size, event, 0.0) of each row."""
    kind, address = head & 63, extras[0] & (1 << 48) - 1
    size = head >> 8 | extras[0] >> 48 << 25
    if kind == FREE:
        yield address, -blocks.pop(address, 0), "free", 0.0
        return
    if kind == REALLOC:
        old = extras[1] & (1 << 48) - 1
        yield old, -blocks.pop(old, 0) if address else 0, "realloc_free", 0.0
    if address:
        blocks[address] = size
    yield address, size, NAMES[kind], 0.0


def named(process, head, extras, spans):
    """(number of the span, 0, event, value) and the name of a span, mark or counter."""
    kind, number = head & 63, extras[0] if extras else head >> 6
    if kind in (SPAN_BEGIN, COUNTER):
        name = extras[0] & 0xffffffff
    else:
        name = spans.pop(number, 0) if kind == SPAN_END else number & 0xffffffff
    if kind == SPAN_BEGIN and extras[1]:
        spans[extras[1]] = name
    value = struct.unpack("<d", struct.pack("<Q", extras[1]))[0] if kind == COUNTER else 0.0
    number = {SPAN_BEGIN: extras[-1] if extras else 0, SPAN_END: number}.get(kind, 0)
    return (number - (number >> 63 << 64), 0, NAMES[kind], value), process.marks.get(name, "")


def rows(trace, start=None, end=None):
    """The rows as lists of the strings in the csv, times since the start of the trace."""
    start = None if start is None else trace.start_ns + start
    end = None if end is None else trace.start_ns + end
    threads = [Thread(trace, thread, start, end) for thread in trace.threads]
    blocks, spans = ({process: {} for process in trace.processes} for _ in range(2))
    streams = [tagged(i, thread.events) for i, thread in enumerate(threads)]
    for ns, i, head, extras in heapq.merge(*streams, key=lambda event: event[:2]):
        if start is not None and ns < start:
            continue
        if end is not None and ns >= end:
            break
        thread = threads[i]
        function, caller = thread.move(head, extras)
        kind = head & 63
        if kind not in NAMES:
            continue
        name, mod, line = thread.texts(function)
        from_name, from_mod, from_line = thread.texts(caller)
        if function and function[0]:
            line = from_line
        opens = [(0, 0, NAMES[kind], 0.0)]
        if MALLOC <= kind <= FREE:
            opens = memory(head, extras, blocks[thread.process])
        elif kind in (MARK, SPAN_BEGIN, SPAN_END, COUNTER):
            from_name, from_mod, from_line = thread.texts(function if function and not function[0] else caller)
            first, name = named(thread.process, head, extras, spans[thread.process])
            opens, mod, line = [first], "", from_line
        for value1, value2, event, value in opens:
            yield [str(field).replace("\0", "\ufffd") for field in (
                ns - trace.start_ns, value1, value2, event, name, mod, line, from_name, from_mod, from_line,
                thread.process.pid, thread.thread.tid, value)]


def tagged(i, events):
    return ((ns, i, head, extras) for ns, head, extras in events)
