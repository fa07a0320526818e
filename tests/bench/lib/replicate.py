"""Traces made of a recorded one, with other pids, hosts and times. Written from docs/trace.md and docs/wire.md alone.

Events stay as they are, but for the pids of forks: their times are moved by the clock of the trace.
"""
import ctypes
import json
import struct
import zlib

HEADER = struct.Struct("<4sHHIIIIQQIIQI")
META, DEFINITIONS, EVENTS, CLOCK, INDEX = 1, 2, 3, 4, 5
NOBODY = 2**32 - 1
FORK = 19 | 3 << 5  # kind 19, sub-kind 3: the child's pid is in the 18 bits of the value
FORK_MASK, FORK_WORDS = 0x3FF, 0x3C00
ENTRIES = 100000  # of an index
ZSTD = ctypes.CDLL("libzstd.so.1")
for name in ("ZSTD_decompress", "ZSTD_compress", "ZSTD_compressBound"):
    getattr(ZSTD, name).restype = ctypes.c_size_t


def decompress(payload, size):
    room = ctypes.create_string_buffer(max(size, 1))
    found = ZSTD.ZSTD_decompress(room, ctypes.c_size_t(size), payload, ctypes.c_size_t(len(payload)))
    if found != size:
        raise ValueError("a zstd frame of %d bytes has %d" % (size, found))
    return room.raw[:size]


def compress(raw):
    room = ctypes.create_string_buffer(ZSTD.ZSTD_compressBound(ctypes.c_size_t(len(raw))))
    found = ZSTD.ZSTD_compress(room, ctypes.c_size_t(len(room)), bytes(raw), ctypes.c_size_t(len(raw)), 1)
    return room.raw[:found]


class Chunk:
    def __init__(self, data, at):
        (_, self.kind, self.codec, stored, self.raw, self.process, self.thread, self.first, self.last, self.events, self.extras,
         _, self.crc) = HEADER.unpack_from(data, at)
        self.payload = data[at + 64:at + 64 + stored]
        self.end = at + 64 + (stored + 7) // 8 * 8

    def plain(self):
        return decompress(self.payload, self.raw) if self.codec else self.payload


class Source:
    """A complete trace without damage."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.header, self.chunks, at = data[:64], [], 64
        while data[at:at + 4] == b"EVCK":
            chunk = Chunk(data, at)
            at = chunk.end
            if chunk.kind != INDEX:
                self.chunks.append(chunk)
        _, _, _, self.events, self.lost, self.processes, _ = struct.unpack_from("<4sIQQQII", data, at)
        self.threads = 1 + max(chunk.thread for chunk in self.chunks if chunk.kind == EVENTS)
        for chunk in self.chunks:
            chunk.meta = json.loads(chunk.plain().decode()) if chunk.kind == META else None
            chunk.forks = self._forks(chunk) if chunk.kind == EVENTS else []

    @staticmethod
    def _forks(chunk):
        """The numbers of the events that are forks."""
        raw, n = chunk.plain(), chunk.events
        heads = memoryview(raw)[:4 * n].cast("I")
        return [i for i, head in enumerate(heads) if head & FORK_MASK == FORK and not head & FORK_WORDS and head >> 14]


def moved(chunk, shift):
    """The payload of a chunk, compressed, whose forks have pids that are larger by shift."""
    raw = bytearray(chunk.plain())
    for i in chunk.forks:
        head = struct.unpack_from("<I", raw, 4 * i)[0]
        struct.pack_into("<I", raw, 4 * i, head + (shift << 14))
    return compress(raw)


class Writer:
    def __init__(self, source, path, created_ns):
        self.source, self.file, self.at, self.entries, self.previous = source, open(path, "wb", 1 << 20), 0, [], 0
        self.events = self.lost = self.processes = 0
        header = bytearray(source.header[:60])
        struct.pack_into("<Q", header, 24, created_ns)
        struct.pack_into("<QQ", header, 32, zlib.crc32(path.encode()), created_ns)
        self._put(bytes(header) + struct.pack("<I", zlib.crc32(header)))

    def _put(self, data):
        self.file.write(data)
        self.at += len(data)

    def chunk(self, kind, codec, payload, raw, process, thread, first=0, last=0, events=0, extras=0, previous=0, crc=None):
        header = HEADER.pack(b"EVCK", kind, codec, len(payload), raw, process, thread, first, last, events, extras, previous,
                             zlib.crc32(payload) if crc is None else crc)
        if kind != INDEX:
            self.entries.append((self.at, first, last, process, thread, events, kind, 0))
        self._put(b"".join((header, struct.pack("<I", zlib.crc32(header)), payload, bytes(-len(payload) % 8))))
        if len(self.entries) == ENTRIES:
            self.index()

    def index(self):
        entries, at = self.entries, self.at
        self.entries = []
        payload = b"".join(struct.pack("<QQQIIIHH", *entry) for entry in entries)
        self.chunk(INDEX, 0, payload, len(payload), NOBODY, NOBODY, events=len(entries), previous=self.previous)
        self.previous = at

    def _meta(self, chunk, host, pid_shift, processes, threads):
        meta = dict(chunk.meta)
        for key, shift in (("pid", pid_shift), ("ppid", pid_shift), ("tid", pid_shift), ("process", processes), ("thread", threads)):
            if isinstance(meta.get(key), int):
                meta[key] += shift
        if meta["type"] == "process":
            meta["host"] = host
        payload = json.dumps(meta, separators=(",", ":")).encode()
        self.chunk(META, 0, payload, len(payload), *self._owner(chunk, processes, threads))

    @staticmethod
    def _owner(chunk, processes, threads):
        return (chunk.process if chunk.process == NOBODY else chunk.process + processes,
                chunk.thread if chunk.thread == NOBODY else chunk.thread + threads)

    def _clock(self, chunk, time_shift_ns):
        records = bytearray(chunk.plain())
        for at in range(0, len(records), 32):
            struct.pack_into("<Q", records, at + 24, struct.unpack_from("<Q", records, at + 24)[0] + time_shift_ns)
        self.chunk(CLOCK, 0, bytes(records), len(records), chunk.process, chunk.thread, chunk.first, chunk.last)

    def add(self, host, pid_shift, time_shift_ns):
        """Adds the processes of the source once more. The clock is that of the first time."""
        processes, threads, first = self.processes, self.processes // self.source.processes * self.source.threads, not self.processes
        for chunk in self.source.chunks:
            if chunk.kind == META and (chunk.meta["type"] != "kinds" or first):
                self._meta(chunk, host, pid_shift, processes, threads)
            elif chunk.kind == CLOCK and first:
                self._clock(chunk, time_shift_ns)
            elif chunk.kind in (DEFINITIONS, EVENTS):
                payload, codec, crc = chunk.payload, chunk.codec, chunk.crc
                if chunk.forks:
                    payload, codec, crc = moved(chunk, pid_shift), 1, None
                self.chunk(chunk.kind, codec, payload, chunk.raw, *self._owner(chunk, processes, threads), chunk.first, chunk.last,
                           chunk.events, chunk.extras, 0, crc)
        self.events += self.source.events
        self.lost += self.source.lost
        self.processes += self.source.processes

    def close(self):
        if self.entries:
            self.index()
        end = struct.pack("<4sIQQQI", b"EEND", 0, self.previous, self.events, self.lost, self.processes)
        self._put(end + struct.pack("<I", zlib.crc32(end)))
        self.file.close()
        return self.at


def replicate(source, path, copies, host, number, time_shift_ns):
    """Writes the processes of the source `copies` times. number: of the trace. Returns its bytes."""
    created_ns = struct.unpack_from("<Q", source.header, 24)[0] + time_shift_ns
    writer = Writer(source, path, created_ns)
    for copy in range(copies):
        writer.add(host, 997 * number % 100000 + 1000 * copy if copies == 1 else 1000 * copy, time_shift_ns)
    return writer.close()
