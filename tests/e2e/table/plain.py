"""A plain reader of traces, without evprof's code: chunks, processes, threads, names and the clock.

Written from include/evprof/trace.h. slow.py replays what it reads; both are what the package is compared with. It needs zstd
from compression.zstd (3.14), the package zstandard or libzstd.so.1.
"""
import codecs
import collections
import fcntl
import json
import mmap
import os
import struct
import zlib

# --- zstd ---

def _join_frames(new, stored, raw_bytes):
    """These two stop after a frame. new() returns what reads one. Stops where there is more than raw_bytes."""
    raw = b""
    while stored and len(raw) <= raw_bytes:
        frame = new()
        raw += frame.decompress(stored)
        if not frame.eof:
            raise EOFError
        stored = frame.unused_data
    return raw


def _of_module_zstandard():
    import zstandard

    def unpack(stored, raw_bytes):
        return _join_frames(zstandard.ZstdDecompressor().decompressobj, bytes(stored), raw_bytes)
    return unpack, zstandard.ZstdError


def _of_standard_library():
    from compression import zstd

    def unpack(stored, raw_bytes):
        return _join_frames(zstd.ZstdDecompressor, stored, raw_bytes)
    return unpack, zstd.ZstdError


def _of_c_library():
    import ctypes
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]

    def unpack(stored, raw_bytes):
        raw = bytearray(raw_bytes)
        to = (ctypes.c_char * raw_bytes).from_buffer(raw)
        written = library.ZSTD_decompress(ctypes.addressof(to), raw_bytes, bytes(stored), len(stored))
        if library.ZSTD_isError(written):
            raise ValueError("no zstd frame")
        return memoryview(raw)[:written]
    return unpack, ValueError


def _find():
    for place in (_of_standard_library, _of_module_zstandard, _of_c_library):
        try:
            return place()
        except (ImportError, OSError, AttributeError):
            pass
    return None, ValueError


_unpack, _error = _find()


def unpack(stored, raw_bytes):
    """The raw_bytes bytes of zstd frames, or None where they are damaged."""
    if _unpack is None:
        raise ImportError("traces are packed with zstd, which this Python lacks: install the package "
                          "zstandard or the library libzstd.so.1")
    if not raw_bytes:
        return b""
    try:
        raw = _unpack(stored, raw_bytes)
    except (_error, EOFError):
        return None
    return raw if len(raw) == raw_bytes else None


# --- chunks ---

META, DEFINITIONS, EVENTS, CLOCK, INDEX = 1, 2, 3, 4, 5
CHUNK_EVENTS_MAX = 131072
PAYLOAD_MAX_BYTES = 16 << 20

_MAGIC = b"\x89EVP\r\n\x1a\n"
_CHUNK_MAGIC = b"EVCK"
_HEADER = struct.Struct("<8sIIIIQ16s12sI")
_CHUNK = struct.Struct("<4sHHIIIIQQIIQII")
_ENTRY = struct.Struct("<QQQIIIHH")
_END = struct.Struct("<4sIQQQII")
_F_OFD_GETLK = 36

Chunk = collections.namedtuple("Chunk", "magic type codec stored_bytes raw_bytes process thread first_ticks last_ticks "
                               "events extras previous payload_crc crc")


class TraceError(Exception):
    """The file is not a trace, or is of a later evprof."""


class Damage:
    """The damage of a trace, as far as it was read until now. False without damage; str() is a line of text."""

    def __init__(self):
        self.hole_bytes = 0    # of the file, that belong to no valid chunk
        self.holes = 0
        self.chunks = 0        # with a good header and an unreadable payload
        self.events = 0        # in those chunks
        self.cut_bytes = 0     # of an unfinished chunk at the end of the file
        self.no_clock = False  # times are in ticks
        self.bad_index = False
        self.bad_end = False   # its writing was cut short, or goes on
        self.growing = False   # it goes on

    def __bool__(self):
        return bool(self.holes or self.chunks or self.cut_bytes or self.no_clock or self.bad_index or self.bad_end)

    def __str__(self):
        parts = []
        if self.growing:
            parts.append("it is still being written, and this is what it holds so far")
        elif self.bad_end:
            parts.append("it has no end: its writing was cut short")
        if self.cut_bytes and not self.growing:
            parts.append("its last %d bytes are an incomplete chunk" % self.cut_bytes)
        if self.bad_index:
            parts.append("its index is damaged and was made anew")
        if self.holes:
            parts.append("%d damaged stretches (%d bytes) were skipped" % (self.holes, self.hole_bytes))
        if self.chunks:
            parts.append("%d damaged chunks with %d events were left out" % (self.chunks, self.events))
        if self.no_clock:
            parts.append("it has no clock: times are in ticks")
        return "; ".join(parts)

    __repr__ = __str__


class Place:
    """Where a chunk is, and what is known about it without reading it."""
    __slots__ = ("offset", "first_ticks", "last_ticks", "process", "thread", "events", "type", "holes", "damaged")

    def __init__(self, offset, first_ticks, last_ticks, process, thread, events, kind, holes=0):
        self.offset, self.first_ticks, self.last_ticks = offset, first_ticks, last_ticks
        self.process, self.thread, self.events, self.type = process, thread, events, kind
        self.holes = holes  # unreadable stretches of the file before it
        self.damaged = False


def _is_being_written(file):
    """Whoever writes a trace holds a lock on it."""
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    try:
        return struct.unpack_from("h", fcntl.fcntl(file, _F_OFD_GETLK, lock))[0] != fcntl.F_UNLCK
    except OSError:
        return False


class File:
    """The chunks of a trace file: places, in the order of the file, without the index."""

    def __init__(self, path):
        self.path = path
        self.damage = Damage()
        self.places = []
        with open(path, "rb") as file:
            # Before its size is looked at: if nobody was writing then, the size is the last.
            self.damage.growing = _is_being_written(file)
            try:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                self._map = file.read()
        self._bytes = memoryview(self._map)
        self._read_header()
        index = self._read_end()
        if index is None or not self._read_index(index):
            self.damage.bad_index = index is not None
            self._scan()

    def _read_header(self):
        head = bytes(self._bytes[:_HEADER.size])
        if len(head) < _HEADER.size or head[:8] != _MAGIC:
            raise TraceError("%s: not an evprof trace" % self.path)
        (_, version, self._begin, _, incompatible, self.created_ns, _, _, crc) = _HEADER.unpack(head)
        if crc != zlib.crc32(head[:-4]) or not 64 <= self._begin <= 65536 or self._begin % 8:
            raise TraceError("%s: the header of the trace is damaged" % self.path)
        if version != 3 or incompatible:
            raise TraceError("%s: the trace has version %d, flags %#x" % (self.path, version, incompatible))

    def _read_end(self):
        """The offset of the last index, or None where the file has no valid end."""
        size = len(self._bytes)
        if size >= self._begin + _END.size:
            end = bytes(self._bytes[size - _END.size:])
            magic, _, index, _, _, _, crc = _END.unpack(end)
            if magic == b"EEND" and crc == zlib.crc32(end[:-4]) and self._begin <= index < size:
                self.damage.growing = False
                return index
        self.damage.bad_end = True
        return None

    def _chunk_at(self, offset):
        """The header of the chunk at offset, or None."""
        head = bytes(self._bytes[offset:offset + _CHUNK.size])
        if len(head) < _CHUNK.size or head[:4] != _CHUNK_MAGIC or zlib.crc32(head[:-4]) != int.from_bytes(
                head[-4:], "little"):
            return None
        chunk = Chunk._make(_CHUNK.unpack(head))
        if max(chunk.stored_bytes, chunk.raw_bytes, chunk.events) > PAYLOAD_MAX_BYTES:
            return None
        return chunk

    def _payload_at(self, offset, chunk):
        start = offset + _CHUNK.size
        stored = self._bytes[start:start + chunk.stored_bytes]
        if chunk.codec > 1 or len(stored) != chunk.stored_bytes or zlib.crc32(stored) != chunk.payload_crc:
            return None
        if chunk.codec:
            return unpack(stored, chunk.raw_bytes)
        return stored if chunk.stored_bytes == chunk.raw_bytes else None

    def read(self, place):
        """(header, payload) of the chunk at that place, or None where it is damaged, which is counted."""
        chunk = None if place.damaged else self._chunk_at(place.offset)
        if chunk and (chunk.type, chunk.process, chunk.thread) == (place.type, place.process, place.thread) and (
                chunk.type != EVENTS or chunk.events == place.events):
            payload = self._payload_at(place.offset, chunk)
            if payload is not None:
                return chunk, payload
        self.note_damage(place)
        return None

    def note_damage(self, place):
        """Counts what the chunk at that place held as missing, once."""
        if not place.damaged:
            place.damaged = True
            self.damage.chunks += 1
            if place.type == EVENTS:
                self.damage.events += place.events

    # --- the index ---

    def _index_chunks(self, offset):
        """Offsets of the chain of indices, the first one first, or None. Offsets fall along it, so it ends."""
        offsets = []
        while offset:
            chunk = self._chunk_at(offset)
            if not chunk or chunk.type != INDEX or chunk.previous >= offset:
                return None
            offsets.append(offset)
            offset = chunk.previous
        return reversed(offsets)

    def _read_index(self, offset):
        before = 0
        places = []
        offsets = self._index_chunks(offset)
        if offsets is None:
            return False
        for offset in offsets:
            chunk = self._chunk_at(offset)
            payload = self._payload_at(offset, chunk)
            if payload is None or len(payload) != chunk.events * _ENTRY.size:
                return False
            for at, first, last, process, thread, events, kind, _ in _ENTRY.iter_unpack(payload):
                if not META <= kind <= CLOCK:
                    continue
                if at <= before or at >= len(self._bytes) or (kind == EVENTS and events > CHUNK_EVENTS_MAX):
                    return False
                places.append(Place(at, first, last, process, thread, events, kind))
                before = at
        self.places = places
        return True

    # --- without it ---

    def _find_chunk(self, offset, end):
        """The next valid chunk at offset or later, at any byte: a damaged file may have lost some. Returns its place."""
        while True:
            offset = self._map.find(_CHUNK_MAGIC, offset, end)
            if offset < 0:
                return end
            if self._chunk_at(offset):
                return offset
            offset += 1

    def _skip_hole(self, search, offset, end):
        found = self._find_chunk(search, end)
        if found == end:
            self.damage.cut_bytes = max(end - offset, 0)
        else:
            self.damage.holes += 1
            self.damage.hole_bytes += max(found - offset, 0)
        return found

    def _scan(self):
        """Finds the chunks one after the other; where one does not follow, behind the last good header."""
        end = len(self._bytes) - (0 if self.damage.bad_end else _END.size)
        offset = search = self._begin
        self.places = []
        while offset < end:
            chunk = self._chunk_at(offset)
            if not chunk:
                offset = self._skip_hole(search, offset, end)
                if offset >= end:
                    break
                chunk = self._chunk_at(offset)
            search = offset + _CHUNK.size
            if search + chunk.stored_bytes > end:
                start = offset
                offset = self._skip_hole(search, offset, end)
                if offset < end:
                    continue
                self.damage.cut_bytes = end - start
                break
            if META <= chunk.type <= CLOCK:
                self.places.append(Place(offset, chunk.first_ticks, chunk.last_ticks, chunk.process, chunk.thread,
                                         chunk.events, chunk.type, self.damage.holes))
            offset = search + (chunk.stored_bytes + 7) // 8 * 8

    def __len__(self):
        """Bytes of the file."""
        return len(self._bytes)


# --- contents ---

KINDS = ("none", "call", "resume", "throw", "return", "yield", "unwind", "c_call", "c_return", "c_exception",
         "exception", "malloc", "calloc", "realloc", "free", "time", "gap", "stack", "frame", "extended", "cpu",
         "native_stack", "at_line", "other_call", "at_instruction", "25", "26", "27", "line", "switch", "task", "open", "thread_start",
         "thread_end", "process_start", "fork", "exec", "exec_failed", "exit", "mark", "pause", "mmap", "munmap", "span_begin",
         "span_end", "counter", "realloc_begin") + tuple(map(str, range(47, 52))) + ("argument", "thin", "thin_end", "stack_change") + \
    ("freed", "greenlet_stack") + tuple(map(str, range(58, 64)))

_DEFINITION = struct.Struct("<IHHIIQ4I")
_CLOCK = struct.Struct("<IIQQQ")
_CODE, _C_FUNCTION, _TYPE, _THREAD_NAME, _MARK = 1, 2, 3, 4, 5
_ARG_MAX = (1 << 27) - 1
_ID_JUMP_MAX = 1 << 20
_NUMBER_MAX = 1 << 24
_NS_FAR = 1 << 60

#: A Python function. name is co_name, module its __name__.
Code = collections.namedtuple("Code", "file name qualname module line")
#: A C function. cls is the type it is a method of, as tp_name, or "".
CFunction = collections.namedtuple("CFunction", "cls name module")


def _broken_text(error):
    """Invalid text becomes U+FFFD: a lone surrogate (three bytes) as one, any other byte by itself."""
    three = error.object[error.start:error.start + 3]
    surrogate = len(three) == 3 and three[0] == 0xed and 0xa0 <= three[1] <= 0xbf and 0x80 <= three[2] <= 0xbf
    return "\ufffd", error.start + (3 if surrogate else 1)


codecs.register_error("evprof.broken_text", _broken_text)


def _text(raw):
    return str(raw, "utf-8", "evprof.broken_text")


class Line:
    """A straight line from ticks to ns: ns + ((ticks - self.ticks) * factor >> shift)."""
    __slots__ = ("ticks", "ns", "factor", "shift")

    def __init__(self, ticks, ns, factor, shift):
        self.ticks, self.ns, self.factor, self.shift = ticks, ns, factor, shift

    def at(self, ticks):
        span = min(abs(ticks - self.ticks) * self.factor >> self.shift, _NS_FAR)
        return self.ns - span if ticks < self.ticks else self.ns + span

    @classmethod
    def through(cls, first, last):
        ns, ticks = last[3] - first[3], last[2] - first[2]
        shift = 63
        while shift and (ns << shift) // ticks >> 63:
            shift -= 1
        return cls(first[2], first[3], (ns << shift) // ticks, shift)


class Process:
    """One process image. argv, python, program, exe, cwd, host are as recorded, and empty where that is missing."""

    def __init__(self, number):
        self.number = number
        self.pid = self.ppid = 0
        self.meta = {}      # what the trace says at its start
        self.end = None     # and at its end; None: it was not seen
        self.threads = []
        self.codes = {}     # by id, from 1
        self.c_functions = {}
        self.types = {}     # names of exceptions, by id
        self.marks = {}     # names of marks, by id
        self.line = Line(0, 0, 1, 0)
        self.id_limits = {}  # by kind of definition: ids are below

    argv = property(lambda self: self.meta.get("argv", []))
    python = property(lambda self: self.meta.get("python", ""))
    program = property(lambda self: self.meta.get("program", ""))
    title = property(lambda self: self.meta.get("title", ""))  # what it calls itself (setproctitle); "": nothing else
    exe = property(lambda self: self.meta.get("exe", ""))
    cwd = property(lambda self: self.meta.get("cwd", ""))
    host = property(lambda self: self.meta.get("host", ""))

    @property
    def code_limit(self):
        """Ids of codes are below."""
        return self.id_limits.get(_CODE, 0)

    @property
    def c_function_limit(self):
        return self.id_limits.get(_C_FUNCTION, 0)

    def __repr__(self):
        return "<evprof process %d: %s, %d threads>" % (self.pid, " ".join(self.argv), len(self.threads))


class Thread:
    """A thread. events and lost count by kind, as its end in the trace says; None where that is missing."""

    def __init__(self, number, process):
        self.number = number
        self.process = process
        self.tid = 0
        self.name = None
        self.events = None
        self.lost = None
        self.ended = False
        self.places = []  # of its chunks of events

    def __repr__(self):
        return "<evprof thread %d of process %d: %s>" % (self.tid, self.process.pid, self.name or "without a name")


def _number(value, limit=_NUMBER_MAX):
    """A number of a META object that may be an index, or None."""
    return value if type(value) is int and 0 <= value < limit else None


def _integer(value):
    return value if type(value) is int else 0


class Trace:
    """A trace file. Made by load()."""

    def __init__(self, path):
        self.path = path
        self.file = File(path)
        self.damage = self.file.damage
        self.start_ns = 0  # of the earliest event, CLOCK_MONOTONIC; times count from here
        self.end_ns = 0    # of the latest
        self._processes, self._threads, self._clocks = {}, {}, []
        self._latest, self._pending = {}, {}
        self._load()

    @property
    def processes(self):
        """In the order in which they joined."""
        return [self._processes[number] for number in sorted(self._processes)]

    @property
    def threads(self):
        """In the order in which they joined."""
        return [self._threads[number] for number in sorted(self._threads)]

    @property
    def complete(self):
        return not self.damage.bad_end

    @property
    def duration_ns(self):
        return self.end_ns - self.start_ns

    def __repr__(self):
        return "<trace %s: %d processes, %d threads%s>" % (
            self.path, len(self._processes), len(self._threads), ", incomplete" if self.damage else "")

    # --- processes and threads ---

    def _possible(self, number):
        """Each process and thread has its own chunk, so the size of the file limits their number."""
        return number is not None and number < _NUMBER_MAX and number <= len(self.file) // 64

    def _process(self, number):
        if not self._possible(number):
            return None
        if number not in self._processes:
            self._processes[number] = Process(number)
        return self._processes[number]

    def _thread(self, number, process):
        if not self._possible(number):
            return None
        if number not in self._threads:
            process = self._process(process)
            if process is None:
                return None
            self._threads[number] = Thread(number, process)
        return self._threads[number]

    # --- META ---

    def _load_process(self, meta):
        process = self._process(_number(meta.get("process")))
        if process is None:
            return False
        process.pid, process.ppid = _integer(meta.get("pid")), _integer(meta.get("ppid"))
        process.meta = meta
        return True

    def _load_thread(self, meta):
        thread = self._thread(_number(meta.get("thread")), _number(meta.get("process")))
        if thread is None:
            return False
        thread.tid = _integer(meta.get("tid")) & 0xffffffff
        key = thread.process.number, thread.tid
        self._latest[key] = thread
        if key in self._pending:
            thread.name = self._pending.pop(key)
        return True

    def _load_thread_end(self, meta):
        thread = self._threads.get(_number(meta.get("thread")))
        if thread is None:
            return False
        thread.ended = True
        thread.events, thread.lost = dict(meta.get("events") or {}), dict(meta.get("lost") or {})
        return True

    def _load_title(self, meta):
        process = self._processes.get(_number(meta.get("process")))
        if process is not None:
            process.meta["title"] = meta.get("title") or ""
        return process is not None

    def _load_process_end(self, meta):
        process = self._processes.get(_number(meta.get("process")))
        if process is not None:
            process.end = meta
        return process is not None

    def _load_meta(self, chunk, payload):
        try:
            meta = json.loads(bytes(payload).decode("utf-8"))
            kind = meta["type"]
        except (ValueError, TypeError, KeyError):
            return False
        load_it = {"process": self._load_process, "thread": self._load_thread, "thread_end": self._load_thread_end,
                   "process_end": self._load_process_end, "title": self._load_title}.get(kind)
        return load_it(meta) if load_it else isinstance(kind, str)

    # --- DEFINITIONS ---

    def _name_thread(self, process, tid, name):
        thread = self._latest.get((process.number, tid))
        if thread and not thread.ended:
            thread.name = name
        else:
            self._pending[process.number, tid] = name

    def _define(self, process, kind, number, line, strings):
        table = {_CODE: process.codes, _C_FUNCTION: process.c_functions, _TYPE: process.types,
                 _MARK: process.marks}.get(kind)
        if kind == _THREAD_NAME:
            self._name_thread(process, number, strings[1])
        if table is None:
            return True
        if not 0 < number <= min(_ARG_MAX, process.id_limits.get(kind, 0) + _ID_JUMP_MAX):
            return False
        process.id_limits[kind] = max(number + 1, process.id_limits.get(kind, 0))
        if kind == _CODE:
            table[number] = Code(strings[0], strings[1], strings[2] or strings[1], strings[3], line)
        elif kind == _C_FUNCTION:
            table[number] = CFunction(strings[0], strings[1], strings[3])
        else:
            table[number] = strings[1]
        return True

    def _load_definitions(self, chunk, payload):
        process = self._process(chunk.process)
        if process is None:
            return False
        at, end = 0, len(payload)
        while at < end:
            if end - at < _DEFINITION.size:
                return False
            size, kind, _, number, line, _, *lengths = _DEFINITION.unpack_from(payload, at)
            if size > end - at or size % 8 or _DEFINITION.size + sum(lengths) > size:
                return False
            strings, place = [], at + _DEFINITION.size
            for length in lengths:
                strings.append(_text(payload[place:place + length]))
                place += length
            if not self._define(process, kind, number, line, strings):
                return False
            at += size
        return True

    # --- CLOCK ---

    def _load_clocks(self, chunk, payload):
        if len(payload) % _CLOCK.size:
            return False
        self._clocks.extend(_CLOCK.iter_unpack(payload))
        return True

    def _set_line(self, process):
        kind, shift = _integer(process.meta.get("clock_kind")), _integer(process.meta.get("clock_shift"))
        process.line = Line(0, 0, 1 << (shift & 31), 0)
        if kind == 0:  # CLOCK_MONOTONIC: ticks are ns
            return
        pairs = [clock for clock in self._clocks if clock[:2] == (kind, shift)]
        first = min(pairs, key=lambda clock: clock[2], default=None)
        last = max(reversed(pairs), key=lambda clock: clock[2], default=None)
        if first and first[2] < last[2] and first[3] < min(last[3], _NS_FAR):
            process.line = Line.through(first, last)
        elif process.meta:
            self.damage.no_clock = True

    @property
    def realtime_offset_ns(self):
        """What is added to CLOCK_MONOTONIC to get the time since 1970."""
        if self._clocks:
            return self._clocks[0][4] - self._clocks[0][3]
        return self.file.created_ns - self.start_ns

    # --- all together ---

    def _load(self):
        loaders = {META: self._load_meta, DEFINITIONS: self._load_definitions,
                   CLOCK: self._load_clocks}
        for place in self.file.places:
            if place.type == EVENTS:
                thread = self._thread(place.thread, place.process)
                if thread is None:
                    self.file.note_damage(place)
                else:
                    thread.places.append(place)
                continue
            found = self.file.read(place)
            if found and not loaders[place.type](*found):
                self.file.note_damage(place)
        for (process, tid), name in self._pending.items():
            thread = self._latest.get((process, tid))
            if thread and not thread.name:
                thread.name = name
        for process in self._processes.values():
            self._set_line(process)
        for thread in self.threads:
            thread.process.threads.append(thread)
        self._find_span()

    def first_event_ticks(self, place):
        """The time of the first event of a chunk."""
        found = self.file.read(place)
        if not found or not found[0].events or len(found[1]) != 8 * (found[0].events + found[0].extras):
            return place.first_ticks
        chunk, payload = found
        if payload[0] & 31 in (KINDS.index("time"), KINDS.index("cpu")) and chunk.extras:
            return sum(payload[8 * chunk.events + plane * chunk.extras] << 8 * plane for plane in range(8))
        return place.first_ticks + sum(payload[(4 + plane) * chunk.events] << 8 * plane for plane in range(4))

    def _find_span(self):
        """Finds the earliest event. A chunk is read only if it begins before the earliest found."""
        starts = None
        for thread in self.threads:
            if not thread.places:
                continue
            line, first = thread.process.line, thread.places[0]
            end = line.at(thread.places[-1].last_ticks)
            self.end_ns = end if starts is None else max(end, self.end_ns)
            if starts is None or line.at(first.first_ticks) < starts:
                start = line.at(self.first_event_ticks(first))
                starts = start if starts is None else min(start, starts)
        self.start_ns = starts or 0
        self.end_ns = max(self.end_ns, self.start_ns)


def load(path):
    """Opens a trace and reads everything but the events. Raises TraceError if the file is not a trace, and OSError. Of a damaged
    or cut file the intact part is read: trace.damage describes the rest."""
    return Trace(str(path))
