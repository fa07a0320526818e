"""What the chunks of a trace say: processes, threads, names and the clock. Reads everything but the events.

table.py, which needs numpy, makes the table of the events; it is imported when it is asked for.
"""
import codecs
import collections
import importlib
import json
import struct

from . import filtering, reading

KINDS = ("none", "call", "resume", "throw", "return", "yield", "unwind", "c_call", "c_return", "c_exception",
         "exception", "malloc", "calloc", "realloc", "free", "time", "gap", "stack", "frame", "extended", "cpu",
         "native_stack", "at_line", "other_call", "24", "25", "26", "27", "line", "switch", "task", "open", "thread_start",
         "thread_end", "process_start", "fork", "exec", "exec_failed", "exit", "mark", "pause") + tuple(map(str, range(41, 64)))

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


def _needs(package, what):
    """Raises ImportError saying what to install."""
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise ImportError("evprof: %s needs the package %s, which this Python cannot import (%s): python -m pip install %s"
                          % (what, package, error, package), name=package) from error


def _table():
    """table.py, which needs numpy."""
    _needs("numpy", "the table of events")
    from . import table
    return table


class Trace:
    """A trace file. Made by load()."""

    def __init__(self, path):
        self.path = path
        self.file = reading.File(path)
        self.damage = self.file.damage
        self.start_ns = 0  # of the earliest event, CLOCK_MONOTONIC; times count from here
        self.end_ns = 0    # of the latest
        self._processes, self._threads, self._clocks = {}, {}, []
        self._latest, self._pending = {}, {}
        self._names = None
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
        return "<evprof trace %s: %d processes, %d threads%s>" % (
            self.path, len(self._processes), len(self._threads), ", incomplete" if self.damage else "")

    # --- the table ---

    @property
    def names(self):
        """What the codes in name and from_name of to_numpy() stand for."""
        return self._functions().names

    @property
    def mods(self):
        """What the codes in mod and from_mod of to_numpy() stand for."""
        return self._functions().mods

    def _functions(self):
        if self._names is None:
            self._names = _table().Functions(self)
        return self._names

    def to_numpy(self, kinds=None, processes=None, threads=None, start=None, end=None, since_start=False, include=None,
                 exclude=None, exclude_syspath=False, min_duration=None, max_depth=None):
        """The table of events as a dict of numpy arrays, in order of time.

        event has the numbers of evprof.EVENTS; name and from_name are indices of trace.names, mod and from_mod of
        trace.mods. since_start: time in ns since the start of the trace, not since 1970. kinds: only these events, by
        name. The other filters have the meaning of the options of `evprof export`:

        processes, threads   only these pids, tids: numbers, or lists of them
        start, end           only this time range, since the start of the trace (--from, --to); later events are not read, and
                             earlier ones only for the initial stacks
        include, exclude     patterns of functions, a text or a list of texts: globs, or "re:" and an expression
        exclude_syspath      true: without functions of the standard library and of installed packages
        min_duration         only calls of at least this duration; the chunks are read twice
        max_depth            only this many outermost calls of the stack

        start, end and min_duration are in ns, or texts such as "20us", "3ms", "1.5s".
        """
        filters = filtering.Filter(self, processes, threads, start, end, include, exclude, exclude_syspath, min_duration,
                                   max_depth)
        return _table().make(self, filters, kinds, since_start)

    def to_dataframe(self, clean_file_name=None, **selection):
        """The table as a pandas DataFrame; texts are categoricals. clean_file_name: a function that shortens file
        names, as that of EventProfiler. Selection as to_numpy()."""
        _needs("pandas", "a data frame")
        return _table().dataframe(self, self.to_numpy(**selection), clean_file_name)

    def to_parquet(self, path, clean_file_name=None, **selection):
        """Writes the table with pyarrow; texts are dictionaries. Selection as to_numpy()."""
        _needs("pyarrow", "a Parquet file")
        _table().parquet(self, self.to_numpy(**selection), clean_file_name, path)

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
        loaders = {reading.META: self._load_meta, reading.DEFINITIONS: self._load_definitions,
                   reading.CLOCK: self._load_clocks}
        for place in self.file.places:
            if place.type == reading.EVENTS:
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
