"""The events of a thread as numpy arrays, chunk by chunk: kinds, arguments, times, extra words. Used by table.py's other parts.

    Events        one chunk, unpacked
    nanoseconds   ticks as ns
    Stream        the chunks of a thread, and where some are missing: tools/trace/stream.c is the model
"""
import numpy as np

from . import reading
from .kinds import CPU, OF_VERSION_1, TIME, by_kind

_EXTENDED = 19  # the events with a sub-kind, the number of extra words and a value in the argument
_EXTRA_WORDS = by_kind({"malloc": 1, "calloc": 1, "free": 1, "time": 1, "cpu": 1, "gap": 1, "26": 1, "27": 1, "realloc": 2,
                        "switch": 2, "task": 1}, np.uint8)


class Events:
    """The events of a chunk, unpacked."""

    def __init__(self, number, chunk, payload, version):
        n, m = chunk.events, chunk.extras
        self.number = number  # of the chunk, among those of its thread
        self.count, self.first_ticks = n, chunk.first_ticks
        self.ok = n <= reading.CHUNK_EVENTS_MAX and len(payload) == 8 * n + 8 * m
        if not self.ok:
            return
        raw = np.frombuffer(payload, np.uint8)
        self.heads = raw[:4 * n].view("<u4")
        self.kinds = (self.heads & np.uint32(31)).astype(np.uint8)
        if version == 1:
            self.kinds = OF_VERSION_1[self.kinds]
            self.words = _EXTRA_WORDS[self.kinds]
        else:
            rare = np.flatnonzero(self.kinds == _EXTENDED)
            self.kinds[rare] = 32 + (self.heads[rare] >> np.uint32(5) & np.uint32(31))
            self.words = _EXTRA_WORDS[self.kinds]
            self.words[rare] = self.heads[rare] >> np.uint32(10) & np.uint32(15)
        self.ok = int(self.words.sum()) == m
        self.extras = _gather(raw[8 * n:], 8, m, np.uint64)
        self.ticks = self._absolute(_gather(raw[4 * n:8 * n], 4, n, np.uint32), chunk.first_ticks) if self.ok else None

    def _absolute(self, deltas, first_ticks):
        times = np.flatnonzero((self.kinds == TIME) | (self.kinds == CPU))
        ticks = deltas.astype(np.uint64)
        if not len(times):
            ticks[:1] += np.uint64(first_ticks)
            return np.cumsum(ticks, out=ticks)
        ticks[times] = 0
        np.cumsum(ticks, out=ticks)
        # Between two absolute times the distance to the last of them holds; before the first that to the chunk's.
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


def nanoseconds(line, ticks):
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
        ns[early], ns[~early] = nanoseconds(line, ticks[early]), nanoseconds(line, ticks[~early])
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


class Stream:
    """The chunks of one thread from one of its places on, as tools/trace/stream.c reads them. end: a place after the last."""

    def __init__(self, trace, thread, first, end=None):
        self._trace, self._places, self._first, self._end = trace, thread.places, first, end

    def __iter__(self):
        """Yields (events, hole): hole says that events are missing before. The last one may have no events: None."""
        places, first = self._places, self._first
        holes = places[first].holes if 0 < first < len(places) else 0
        last_ticks, hole, began = None, False, False
        for number, place in enumerate(places[first:self._end], first):
            hole |= place.holes & 0xffff != holes & 0xffff and (not began or place.first_ticks != last_ticks)
            events = self._read(number, place)
            began, holes, last_ticks = True, place.holes, place.last_ticks
            if events is None:
                hole = True
                continue
            yield events, hole
            hole = False
        if hole:
            yield None, True

    def _read(self, number, place):
        found = self._trace.file.read(place)
        if not found:
            return None
        events = Events(number, *found, self._trace.file.version)
        if not events.ok:
            self._trace.file.note_damage(place)
            return None
        return events
