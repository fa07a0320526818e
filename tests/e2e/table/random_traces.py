"""random_traces.py DIRECTORY COUNT: writes small traces of random events that no Python would report, for test_table.c.

Written from include/evprof/trace.h: ends that do not fit, gaps, stacks, times set, unknown ids, threads of several
processes, deep stacks, greenlets that take turns as they should and as they should not, open frames for readers that begin in
the middle, damaged chunks. The seed is fixed: each run writes the same.
"""
import json
import os
import random
import struct
import sys
import zlib

CALLS, ENDS = [1, 2, 3, 7], [4, 5, 6, 8, 9]
MEMORY = [11, 12, 13, 14]
STACK_CUT = 1 << 26


class Writer:
    def __init__(self):
        header = struct.pack("<8sIIIIQ16s12s", b"\x89EVP\r\n\x1a\n", 3, 64, 0, 0, 1700000000 * 10**9, b"", b"")
        self.bytes = header + struct.pack("<I", zlib.crc32(header))
        self.entries, self.events = [], 0

    def chunk(self, kind, payload, process=0xffffffff, thread=0xffffffff, first=0, last=0, events=0, extras=0):
        if kind != 5:
            self.entries.append((len(self.bytes), first, last, process, thread, events, kind, 0))
        head = struct.pack("<4sHHIIIIQQIIQI", b"EVCK", kind, 0, len(payload), len(payload), process, thread, first, last,
                           events, extras, 0, zlib.crc32(payload))
        self.bytes += head + struct.pack("<I", zlib.crc32(head)) + payload + bytes(-len(payload) % 8)

    def meta(self, members):
        self.chunk(1, json.dumps(members).encode(), members["process"])

    def define(self, process, kind, number, line, *strings):
        strings = [string.encode("utf-8", "surrogatepass") for string in strings]
        size = (40 + sum(map(len, strings)) + 7) // 8 * 8
        record = struct.pack("<IHHIIQ4I", size, kind, 0, number, line, 0, *map(len, strings)) + b"".join(strings)
        self.chunk(2, record + bytes(size - len(record)), process)

    def end(self):
        offset = len(self.bytes)
        self.chunk(5, b"".join(struct.pack("<QQQIIIHH", *entry) for entry in self.entries), events=len(self.entries))
        end = struct.pack("<4sIQQQI", b"EEND", 0, offset, self.events, 0, 1)
        self.bytes += end + struct.pack("<I", zlib.crc32(end))


def planes(numbers, width):
    return b"".join(bytes(n >> 8 * plane & 255 for n in numbers) for plane in range(width))


class Thread:
    """Makes events: mostly such as fit the stack."""

    def __init__(self, writer, number, process, wild, greenlets):
        self.greenlets = greenlets  # how often they take turns
        self.writer, self.number, self.process, self.wild = writer, number, process, wild
        self.now = self.last = 5000 + number
        self.stack, self.blocks = [], []
        self.greenlet, self.others = 1, {}
        self.opens = 0  # still to come

    def call(self):
        kind, number = random.choice(CALLS), random.randrange(12)
        self.stack.append((kind, number))
        return kind, number, []

    def end(self):
        if self.stack and random.random() > self.wild:
            kind, number = self.stack.pop()
        else:
            kind, number = random.choice(CALLS), random.randrange(12)
        return (random.choice([8, 9]) if kind == 7 else random.choice([4, 5, 6])), number, []

    def memory(self):
        kind = random.choice(MEMORY)
        size = random.choice([0, 1, 500, 1 << 30, random.randrange(1 << 41)])
        address = random.choice([0x10, 0x20, 0x7f0000001000, 0, random.randrange(1 << 48)])
        word = address | (size >> 25 << 48 if kind != 14 else 0)
        extras = [word] + ([random.choice([0x10, 0x20, 0, 0x7f0000001000])] if kind == 13 else [])
        return kind, (random.randrange(3) | (size << 2) & (1 << 27) - 1) if kind != 14 else 1, extras

    def other(self):
        kind = random.choice([10, 15, 16, 17, 18, 30, 31, 33, 36, 38, 39, 40])
        if kind == 15:
            self.now += random.randrange(1 << 34)
            return kind, 0, [self.now]
        if kind in (16, 17, 33, 40):
            self.stack = []
        if kind == 31:
            self.opens = random.randrange(5)
        argument = random.randrange(8) | (random.choice([0, STACK_CUT]) if kind == 17 else 0)
        return kind, argument, [random.randrange(100)] if kind in (16, 30) else []

    def named(self):
        """A span, mark or counter; spans end as they should and as they should not, and some lack words."""
        kind, name, number = random.choice([39, 43, 43, 44, 44, 45]), random.randrange(7), random.randrange(9)
        if kind == 39:
            return kind, name, []
        if kind == 44:
            return (kind,) + random.choice([(number, []), (0, [number + random.choice([0, 0, 1 << 63])])])
        if random.random() < self.wild / 10:
            return kind, number, [name] * random.randrange(2)
        value = random.choice([0.1, -3.0, 1e300, float("inf"), float("nan"), -0.0])
        return kind, 0, [name, number if kind == 43 else struct.unpack("<Q", struct.pack("<d", value))[0]]

    def switch(self):
        """To another greenlet, whose stack goes on; now and then the trace names others."""
        target, origin = random.randrange(1, 7), self.greenlet
        self.others[origin] = self.stack
        self.greenlet, self.stack = target, self.others.pop(target, [])
        if random.random() < self.wild:
            return 29, 0, [random.randrange(7), random.randrange(7)]
        return 29, 0, [target, origin]

    def event(self):
        draw = random.random()
        if self.opens:
            self.opens -= 1
            return 31, random.randrange(12), []
        if self.greenlets and random.random() < self.greenlets:
            return self.switch()
        if draw < self.wild / 4:
            return self.other()
        if draw < 0.02:
            return self.named()
        if draw < 0.3:
            return self.memory()
        return self.call() if random.random() < (0.5 if len(self.stack) < 30 else 0.45) else self.end()

    def flush(self, count):
        heads, ticks, extras, first = [], [], [], self.last
        for _ in range(count):
            before = self.now
            kind, argument, words = self.event()
            delta = 0 if kind == 15 else random.randrange(50)
            self.now = (before if kind != 15 else self.now) + delta
            rare = kind > 31
            heads.append(19 | kind - 32 << 5 | len(words) << 10 | argument << 14 if rare else kind | argument << 5)
            ticks.append(delta)
            extras += words
        payload = struct.pack("<%dI" % count, *heads) + planes(ticks, 4) + planes(extras, 8)
        self.writer.chunk(3, payload, self.process, self.number, first, self.now, count, len(extras))
        self.last = self.now


def trace(wild, chunk):
    writer = Writer()
    kind, shift = random.choice([(0, 0), (1, 3)])
    if kind:
        writer.chunk(4, struct.pack("<IIQQQ", kind, shift, 5050, 777777, 1700000000 * 10**9) +
                     struct.pack("<IIQQQ", kind, shift, 5050 + (1 << 33), 777777 + 22222222222, 17 * 10**17))
    threads = []
    for process in range(random.choice([1, 1, 3])):
        writer.meta({"type": "process", "process": process, "pid": 101 + process, "ppid": 1, "clock_kind": kind,
                     "clock_shift": shift})
        for number in range(1, 9):
            writer.define(process, 1, number, number * 10, "dir/file%d,%d.py" % (process, number % 3),
                          random.choice(["f%d", "say \"%d\"", "\ud800%d", "new\nline%d", "nul\0%d"]) % number, "", "m")
            writer.define(process, 2, number, 0, random.choice(["", "list", "a.b.c"]), "c%d" % number, "", "builtins")
        for number in range(1, 5):
            writer.define(process, 5, number, 0, "", random.choice(["span%d", "a,b%d", "\"%d\"", "f%d", "nul\0%d"]) % number, "", "")
        for _ in range(random.choice([1, 2, 5])):
            thread = Thread(writer, len(threads), process, wild, random.choice([0, 0, 0.02, 0.2]))
            writer.meta({"type": "thread", "process": process, "thread": thread.number, "tid": 201 + thread.number})
            threads.append(thread)
    for _ in range(random.randrange(1, 12)):
        random.choice(threads).flush(random.randrange(chunk))
    return writer


def main(directory, count):
    random.seed(20260101)
    for number in range(int(count)):
        writer = trace(wild=random.choice([0.01, 0.1, 0.6]), chunk=random.choice([40, 1500, 4000]))
        damaged = number % 4 == 3
        if not damaged or number % 8 == 7:
            writer.end()
        written = bytearray(writer.bytes)
        for _ in range(3 if damaged else 0):
            written[random.randrange(len(written) // 2, len(written))] ^= 1 << random.randrange(8)
        with open(os.path.join(directory, "random%d.trace" % number), "wb") as file:
            file.write(written)


main(*sys.argv[1:])
