"""The trace file as bytes: header, end, index, chunks, and the search for chunks where the file is damaged.

Knows nothing of processes and threads. The layouts are those of include/evprof/trace.h; what is missing is counted as
evprof(1) counts it. Used by model.py.
"""
import collections
import fcntl
import mmap
import os
import struct
import zlib

from .unpacking import unpack

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
        self.version = version
        if version not in (1, 3) or incompatible:
            raise TraceError("%s: the trace was written by a later evprof (version %d, flags %#x)"
                             % (self.path, version, incompatible))

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
