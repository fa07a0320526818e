"""Recording from inside the program: spans, counters, marks, and the profile of a block of code.

    with evprof.profile() as p:
        work()
    p.report()

    @evprof.span("query")
    def query(sql): ...

    with evprof.span("request", path="/users"):
        evprof.counter("queue", 12)
        evprof.mark("cache is cold")

Where nothing records, spans, counters and marks do nothing. profile() and start() load the library themselves where it was not
preloaded, in CPython 3.6 to 3.15.

The functions of this module are not recorded: the library knows it by its name. So that no C function of theirs is in the trace
either, what runs in a span, mark or counter calls types and functions of ctypes only, which are no C functions to a profiler.
"""
import _thread
import functools
import itertools
import os
import sys
import time
import types

from ._paths import find

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, Dict, List, Optional, TextIO, Tuple, Type, TypeVar, Union

    from ._tool import Option
    from .text import Text
    from .trace import Trace

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Path = Union[str, "os.PathLike[str]"]
    _Owner = Tuple[int, int]  # a frame and a thread

_LIBRARY_NAME = "libevprof.so"
_RTLD_NODELETE = 0x1000
_TEXT, _INT, _DOUBLE, _BOOL = 1, 2, 3, 4
_MOST_ARGUMENTS = 16
_LATE = "evprof: loaded into a running Python: programs that it starts are not recorded%s\n"

# The functions of the library; None: nothing records.
_begin: "Any" = None
_end: "Any" = None
_counter: "Any" = None
_mark: "Any" = None
_library: "Any" = None  # keeps the GIL: quicker
_patient: "Any" = None  # the same, for functions that wait
_types: "Any" = None  # the module ctypes, and the structure of an argument

# C functions that a span calls, as functools.partial: an object of a type, see above.
_caller = functools.partial(sys._getframe, 1)
_identity = functools.partial(id)
_thread_number = functools.partial(_thread.get_ident)


def _is_loaded() -> bool:
    """Whether the library is in this process. ctypes takes milliseconds to import, so it is asked only then."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"/libevprof.so" in maps.read()
    except OSError:
        return False


def _attach(path: "Optional[str]") -> bool:
    """Takes the functions of the library. path: None if it was preloaded."""
    global _begin, _end, _counter, _mark, _library, _patient, _types
    import ctypes

    class Value(ctypes.Union):
        _fields_ = [("text", ctypes.c_char_p), ("integer", ctypes.c_int64), ("number", ctypes.c_double)]

    class Argument(ctypes.Structure):
        _fields_ = [("key", ctypes.c_char_p), ("type", ctypes.c_uint64), ("value", Value)]

    library = ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL | _RTLD_NODELETE)
    try:
        begin, end, counter, mark = (library.evprof_span_begin, library.evprof_span_end, library.evprof_counter,
                                     library.evprof_mark_with)
    except AttributeError:  # another library of that name, or an older one
        return False
    begin.restype = ctypes.c_uint64
    begin.argtypes = mark.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    end.argtypes = [ctypes.c_uint64]
    end.restype = counter.restype = mark.restype = None
    counter.argtypes = [ctypes.c_char_p, ctypes.c_double]
    _types = ctypes, Argument
    _patient = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    _patient.evprof_trace_path.restype = ctypes.c_size_t
    _patient.evprof_trace_path.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    _library, _begin, _end, _counter, _mark = library, begin, end, counter, mark
    return True


def _text(value: str) -> bytes:
    """UTF-8 without NUL. Lone surrogates stay, as everywhere in a trace."""
    if "\0" in value:
        value = value.replace("\0", "?")
    return bytes(value, "utf-8", "surrogatepass")


def _shown(value: object) -> str:
    try:
        return value if type(value) is str else str(value)
    except Exception:  # an argument must not break the program that it describes
        return "(%s)" % type(value).__name__


def _arguments(values: "Dict[str, Any]") -> "Tuple[Any, int]":
    """An array of the library's struct evprof_argument, and its length."""
    if not values:
        return None, 0
    count = 0
    array = (_types[1] * _MOST_ARGUMENTS)()
    for key in values:
        if count == _MOST_ARGUMENTS:
            break
        argument, value = array[count], values[key]
        kind = type(value)
        argument.key = _text(key)
        if kind is bool:
            argument.type, argument.value.integer = _BOOL, value
        elif kind is int and -1 << 63 <= value < 1 << 63:
            argument.type, argument.value.integer = _INT, value
        elif kind is float:
            argument.type, argument.value.number = _DOUBLE, value
        else:
            argument.type, argument.value.text = _TEXT, _text(_shown(value))
        count += 1
    return array, count


def open_span(name: str, arguments: "Dict[str, Any]") -> int:
    """Begins a span for those who cannot use a with statement. Returns its number for close_span(); 0: nothing records."""
    return int(_begin(_text(name), *_arguments(arguments))) if _begin is not None else 0


def close_span(number: int) -> None:
    """Ends the span with that number, in any thread. 0 does nothing."""
    if number and _end is not None:
        _end(number)


def mark(_name: str, **arguments: object) -> None:
    """Records a named point in time in the calling thread, with arguments: texts, numbers, bools; anything else as str() shows it.
    Sixteen arguments count, and 1056 bytes of a text. Where nothing records, it does nothing.

    >>> import evprof
    >>> evprof.mark("cache is cold", size=0)
    """
    if _mark is not None:
        _mark(_text(_name), *_arguments(arguments))


def counter(_name: str, value: float) -> None:
    """Records the value that a named counter has from now on; of any unit, kept as a double. Where nothing records, it does nothing.

    Raises ctypes.ArgumentError for what is not a number, where something records.

    >>> import evprof
    >>> evprof.counter("queue", 12)
    """
    if _counter is not None:
        _counter(_text(_name), value)


class span:
    """A named stretch of time, with arguments as mark() has them.

        with evprof.span("request", path="/users"): ...

        @evprof.span("query")
        def query(sql): ...

    A decorated function has a span for each call: of a coroutine, from its first step to its end; of a generator, from its first
    item to its end. A span belongs to the thread, greenlet and task in which it begins, and ends by itself where an exception leaves
    it. One object can be used many times, also at the same time: by threads, tasks, generators, and within itself.

    >>> import evprof
    >>> @evprof.span("query")
    ... def query(n):
    ...     with evprof.span("rows", n=n):
    ...         return list(range(n))
    >>> query(3)
    [0, 1, 2]
    """
    __slots__ = ("name", "arguments", "_free", "_open", "_owner", "_others")

    def __init__(self, _name: str, **arguments: object) -> None:
        self.name = _name
        self.arguments = arguments
        self._free = True  # the attribute is missing while somebody has the place _open
        self._open: "Optional[int]" = None
        self._owner: "Optional[_Owner]" = None  # who has opened that
        self._others: "Optional[Dict[_Owner, List[int]]]" = None

    def __repr__(self) -> str:
        return "evprof.span(%r%s)" % (self.name, "".join(", %s=%r" % item for item in self.arguments.items()))

    def _start(self) -> int:
        return int(_begin(_text(self.name), *_arguments(self.arguments)))

    def _take_place(self) -> bool:
        """Whether the caller has the place _open now. Of threads that ask at once, one has: deleting is one step."""
        if self._open is not None:
            return False
        try:
            del self._free
        except AttributeError:
            return False
        return True

    def __enter__(self) -> "span":
        if _begin is not None:
            # A with statement begins and ends in one frame, whichever tasks, threads and generators run in between.
            owner = _identity(_caller()), _thread_number()
            if self._take_place():
                self._owner = owner
                self._open = self._start()
            else:
                if self._others is None:
                    self._others = {}
                self._others.setdefault(owner, []).append(self._start())
        return self

    def _owner_of(self, caller: "_Owner", moves: int) -> "Optional[_Owner]":
        """Whose span the caller's exit ends, of _others; None: that of the place _open. moves: the caller's frame may go on in another
        thread than it began in.
        """
        others = self._others or {}
        if caller in others or (self._open is not None and self._owner == caller):
            return caller if caller in others else None
        # It ends in another frame than it began in, as in an ExitStack: the newest one of this thread, else of all.
        found = [(numbers[-1], owner) for owner, numbers in list(others.items()) if numbers]
        if self._open is not None and self._owner is not None:
            found.append((self._open, self._owner))
        if not found:
            return None
        same = [entry for entry in found if moves and entry[1][0] == caller[0]]
        number, owner = max(same or [entry for entry in found if entry[1][1] == caller[1]] or found)
        return None if number == self._open else owner

    def __exit__(self, *error: object) -> None:
        if self._others:
            frame = _caller()
            # A generator, coroutine or asynchronous generator.
            owner = self._owner_of((_identity(frame), _thread_number()), frame.f_code.co_flags & 0x2a0)
            if owner is not None:
                number = self._others[owner].pop()
                if not self._others[owner]:
                    del self._others[owner]
                _end(number)
                return
        if self._open is not None:
            number, self._open = self._open, None
            self._free = True
            _end(number)

    def __call__(self, function: "_Function") -> "_Function":
        code = getattr(function, "__code__", None)
        flags = code.co_flags if code else 0
        wrapper: "Any"
        if flags & 0x200:
            wrapper = self._async_generator(function)
        elif flags & 0x80:
            wrapper = self._coroutine(function)
        elif flags & 0x20:
            wrapper = self._generator(function)
            if flags & 0x100:  # that of types.coroutine() may be awaited
                wrapper = types.coroutine(wrapper)
        else:
            wrapper = self._function(function)
        functools.update_wrapper(wrapper, function)
        decorated: "_Function" = wrapper
        return decorated

    def _function(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            if _begin is None:
                return function(*args, **kwargs)
            number = self._start()
            try:
                return function(*args, **kwargs)
            finally:
                _end(number)
        return wrapper

    def _coroutine(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        async def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            number = self._start() if _begin is not None else 0
            try:
                return await function(*args, **kwargs)
            finally:
                if number:
                    _end(number)
        return wrapper

    def _generator(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            number = self._start() if _begin is not None else 0
            try:
                return (yield from function(*args, **kwargs))
            finally:
                if number:
                    _end(number)
        return wrapper

    def _async_generator(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        async def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            number = self._start() if _begin is not None else 0
            items = function(*args, **kwargs)
            try:
                step = items.__anext__()
                while True:
                    try:
                        item = await step
                    except StopAsyncIteration:
                        return
                    try:
                        step = items.asend((yield item))
                    except GeneratorExit:
                        await items.aclose()
                        raise
                    except BaseException as error:  # thrown in by athrow()
                        step = items.athrow(error)
            finally:
                if number:
                    _end(number)
        return wrapper


def _report_late() -> None:
    old = ", nor may be threads that C code starts" if sys.version_info < (3, 12) else ""
    sys.stderr.write(_LATE % old)


def _load(output: "Optional[str]", events: "Optional[str]") -> None:
    """Loads the library into this process, which then records."""
    path = find(_LIBRARY_NAME)
    if sys.implementation.name != "cpython":
        raise RuntimeError("evprof records CPython only")
    settings = {"EVPROF_OUTPUT": output, "EVPROF_EVENTS": events}
    before = {name: os.environ.get(name) for name in settings}
    try:
        for name, value in settings.items():
            if value is not None:
                os.environ[name] = value
        if not _attach(path):
            raise RuntimeError("%s is of another version than the package" % path)
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)


def start(output: "Optional[str]" = None, events: "Optional[str]" = None) -> None:
    """Starts recording, or goes on after stop(). Where the library was not preloaded, loads it.

    output: path of the trace; events: as EVPROF_EVENTS. Both count only where this call loads the library; elsewhere, and where they
    are None, the environment's count (EVPROF_OUTPUT, EVPROF_EVENTS). With EVPROF=0 in the environment nothing is recorded.
    Raises ImportError if the library was not found, and RuntimeError if it is another version's, or this Python is not CPython.

    >>> import evprof
    >>> evprof.start(events="call,c_call")
    >>> evprof.stop()
    """
    if begin(output, events):
        _report_late()


def begin(output: "Optional[str]", events: "Optional[str]") -> bool:
    """start() without its line on stderr. Returns whether this call has loaded the library."""
    if os.environ.get("EVPROF") == "0":
        return False
    late = _library is None
    if late:
        _load(output, events)
    _library.evprof_start()
    return late


def stop() -> None:
    """Stops recording, in all threads, until start(). No hook is set meanwhile: the program runs as fast as without evprof.

    >>> import evprof
    >>> evprof.stop()
    """
    if _library is not None:
        _library.evprof_stop()


def active() -> bool:
    """Whether this process is recorded at the moment.

    >>> import evprof
    >>> evprof.active()
    False
    """
    return _library is not None and bool(_library.evprof_active())


def _flush() -> bool:
    return _patient is not None and bool(_patient.evprof_flush())


def trace_path() -> "Optional[str]":
    """The path of the trace that this process is recorded to; None: it is not recorded, or the path is not known yet.

    >>> import evprof
    >>> path = evprof.trace_path()
    """
    if _patient is None:
        return None
    buffer = _types[0].create_string_buffer(1024)
    return os.fsdecode(buffer.value) if _patient.evprof_trace_path(buffer, len(buffer)) else None


_snapshots = itertools.count(1)


def snapshot_name(trace: str) -> str:
    """A name next to the trace that no other snapshot gets: threads may ask at once, and the file comes later."""
    with profile._lock:  # without the GIL, two threads may get one number
        number = next(_snapshots)
    return "%s-%d-%s-%d.evp" % (os.path.splitext(trace)[0], os.getpid(), time.strftime("%Y%m%d-%H%M%S"), number)


def _run_quietly(words: "List[str]", spawn: "Callable[..., int]", wait: "Callable[..., Tuple[int, int]]") -> bool:
    """Whether a program of ours ends well. Nothing is printed, and a large process is not copied for it, as by fork()."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    null = os.open(os.devnull, os.O_RDWR)
    try:
        pid = spawn(words[0], words, environment, file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)])
    finally:
        os.close(null)
    try:
        return wait(pid, 0)[1] == 0
    except ChildProcessError:  # the program waits for all children, in a handler of SIGCHLD
        return True


def snapshot(path: "Optional[str]" = None) -> "Optional[str]":
    """Copies what is recorded of this process so far, as a trace: with EVPROF_KEEP its last stretch. Other threads run on; this one
    waits until it is written, some 50 ms and more for a long stretch. Returns the path; None where nothing records or it cannot be
    written. From Python 3.8 on.

    path: where it goes; by default next to the trace, with the pid, the time and a number in its name.

    >>> import evprof
    >>> path = evprof.snapshot()
    """
    return snapshot_by(path, os.posix_spawn, os.waitpid)


def snapshot_by(path: "Optional[str]", spawn: "Callable[..., int]", wait: "Callable[..., Tuple[int, int]]") -> "Optional[str]":
    """snapshot() by these functions of os: gevent's own are for threads with a loop only."""
    if not _flush():  # first: a child of a fork has its path from then on
        return None
    trace = trace_path()
    if trace is None:
        return None
    path = os.path.abspath(path or snapshot_name(trace))
    session = os.environ.get("EVPROF_SESSION", "").split(":", 3)
    words = [find("evprof"), "snapshot", "--output", path]
    words += ["--socket", session[3]] if len(session) == 4 else []
    done = _run_quietly(words + [str(os.getpid())], spawn, wait)
    return path if done and os.path.exists(path) else None


_scratch: "Optional[Tuple[str, int]]" = None  # the directory of a trace that nobody asked to keep, and whose it is


def _make_scratch() -> str:
    global _scratch
    import atexit
    import tempfile
    _scratch = tempfile.mkdtemp(prefix="evprof-"), os.getpid()
    atexit.register(_remove_scratch)
    return os.path.join(_scratch[0].replace("%", "%%"), "profile.evp")


def _remove_scratch() -> None:
    import shutil
    if _scratch and _scratch[1] == os.getpid():
        if _patient is not None:
            _patient.evprof_finish()
        shutil.rmtree(_scratch[0], ignore_errors=True)


class profile:
    """Records a block of code, in all threads, and shows what was recorded::

        with evprof.profile() as p:
            work()
        p.report()

    Without a with statement: p = evprof.profile(); p.start(); ...; p.stop(). output, events: as for start(). Without an output, here
    or in the environment, the trace is in a temporary directory and goes with the process. Where the process is recorded anyway, the
    profile is that of its block. Blocks may overlap: the last one that ends stops what the first one started.

    The results are those of the process and, by time, of all processes that it has started, until it ends the block. In the child of a
    fork that goes on with the block (from 3.7 on) they are the child's, from the fork on.

    >>> import evprof
    >>> with evprof.profile(events="call,c_call") as p:
    ...     smallest = min(3, 1, 2)
    >>> print(p.text(sort="calls"))
             1 function calls in ...
    """
    _count = 0
    _lock = _thread.RLock()
    _running: "Dict[profile, int]" = {}  # the thread that started it
    _records = False  # the first of them has started recording, and the last one stops it

    def __init__(self, output: "Optional[_Path]" = None, events: "Optional[str]" = None) -> None:
        self._output, self._events = output, events
        self._marks: "List[str]" = []
        self._pid = 0  # of the process that set them
        self._runs = False
        #: The path of the trace; None before stop().
        self.path: "Optional[str]" = None

    def start(self) -> "profile":
        """Begins the block. Raises what evprof.start() raises, and RuntimeError if the block has begun.

        >>> import evprof
        >>> evprof.profile().start().stop()
        """
        if self._runs:
            raise RuntimeError("this profile is running")
        if self._pid != os.getpid():
            self._name_marks()
        with profile._lock:
            if not active():
                self._start_recording()
                profile._records = True
            elif not profile._running:
                profile._records = False
            profile._running[self] = _thread.get_ident()
        self._runs = True
        mark(self._marks[0])
        return self

    def _name_marks(self) -> None:
        """A forked child, and what the process execs, set marks of other names."""
        self._pid = os.getpid()
        profile._count += 1
        name = "evprof.profile %d.%x.%d" % (self._pid, int(time.time() * 1e6), profile._count)
        self._marks = ["%s %s" % (name, what) for what in ("begins", "ends")]

    def _start_recording(self) -> None:
        output = self._output
        if _library is None and output is None and not any(
                os.environ.get(name) for name in ("EVPROF_OUTPUT", "EVPROF_SOCKET", "EVPROF_SESSION")):
            output = _make_scratch()
        start(os.fspath(output) if output is not None else None, self._events)

    def stop(self) -> None:
        """Ends the block. It may begin again; the results are those of all its parts.

        >>> import evprof
        >>> p = evprof.profile().start()
        >>> p.stop()
        """
        if not self._runs:
            return
        mark(self._marks[1])
        self._runs = False
        with profile._lock:
            profile._running.pop(self, None)
            if profile._records and not profile._running:
                profile._records = False
                stop()
        _flush()
        self.path = trace_path()

    def __enter__(self) -> "profile":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _file(self) -> str:
        self.stop()
        if self.path is None:
            raise RuntimeError("nothing was recorded" if self._marks else "the profile has not begun")
        return self.path

    def text(self, *options: str, **named: "Option") -> "Text":
        """The table of cProfile, of the block. Times are in seconds.

        The arguments are the options of `evprof report`, with names (limit=5, sort="bytes", by="module", strip_dirs=True, several
        values as a list) or as words ("--limit", "5").

        Raises EvprofError, with the tool's line, for an option that it does not have or take; RuntimeError if the profile has not
        begun or nothing was recorded.

        >>> import evprof
        >>> with evprof.profile() as p:
        ...     smallest = min(3, 1, 2)
        >>> "{built-in method builtins.min}" in p.text()
        True
        >>> print(p.text(sort=["calls", "name"], limit=1, strip_dirs=True))
                 1 function calls in ...
        >>> try:
        ...     p.text(colour=True)
        ... except evprof.EvprofError as error:
        ...     print(error)
        evprof report: the option --colour is not known or lacks its value...
        """
        from ._tool import option_words, report
        return report(self._file(), ["--between", ",".join(self._marks), *options, *option_words(named)])

    def report(self, *options: str, file: "Optional[TextIO]" = None, **named: "Option") -> None:
        """Prints text() to a file, or to sys.stdout, as cProfile's print_stats() does. Returns nothing, and raises what text() raises.

        >>> import evprof, io
        >>> with evprof.profile() as p:
        ...     smallest = min(3, 1, 2)
        >>> table = io.StringIO()
        >>> p.report(sort="calls", limit=5, file=table)
        """
        (file or sys.stdout).write(self.text(*options, **named))

    @property
    def trace(self) -> "Trace":
        """The trace, as evprof.load() returns it. It has all that the process has recorded, other blocks too.

        >>> import evprof
        >>> len(evprof.profile().start().trace.processes)
        1
        """
        from . import load
        return load(self._file())

    def to_dataframe(self, **selection: "Any") -> "Any":
        """The events of the block, as Trace.to_dataframe() has them: a pandas DataFrame of (rows, 13 columns); time is in ns since
        1970. The block begins and ends with the marks that start() and stop() set, so no event of a neighbouring one is in it, nor of
        a process that the block's has not started.

        selection: clean_file_name, and the filters of Trace. Needs numpy and pandas. Raises RuntimeError as text() does, and if a
        mark was lost.

        >>> import evprof
        >>> with evprof.profile() as p:
        ...     smallest = min(3, 1, 2)
        >>> int((p.to_dataframe()["name"] == "min").sum())
        2
        """
        from ._window import pids_of
        trace = self.trace
        edges, pids = self._edges(trace), pids_of(trace, self._pid)
        # The rest of what the process records may be a million times as long.
        window = {"start": min(begin for begin, _ in edges), "end": max(end for _, end in edges), "processes": pids}
        table = trace.to_dataframe(**{**window, **selection})
        times, keep = table["time"], table["time"] != table["time"]
        origin = 0 if selection.get("since_start") else trace.start_ns + trace.realtime_offset_ns
        for begin, end in edges:
            keep |= (times > origin + begin) & (times < origin + end)
        return table[keep & table["pid"].isin(pids)].reset_index(drop=True)

    def _edges(self, trace: "Trace") -> "List[Tuple[int, int]]":
        """Begin and end of each part: the times of its marks, in ns since the trace's start. Raises RuntimeError if one is not there."""
        from .table import Table
        found: "Dict[str, List[int]]" = {name: [] for name in self._marks}
        for row in Table(trace._events({"kinds": "mark", "since_start": True})):
            if row.name in found and row.pid == self._pid:
                found[row.name].append(row.time)
        begins, ends = found[self._marks[0]], found[self._marks[1]]
        pairs = [(max((begin for begin in begins if begin < end), default=None), end) for end in ends]
        if not pairs or any(begin is None for begin, _ in pairs):
            raise RuntimeError("evprof: the marks of this profile are not in its trace: events were lost")
        return [(begin, end) for begin, end in pairs if begin is not None]


def _in_child() -> None:
    """Of all threads, a child has the one that forked, and with it the profiles that it started; their blocks begin anew."""
    thread = _thread.get_ident()
    profile._lock = _thread.RLock()
    profile._running = {one: owner for one, owner in profile._running.items() if owner == thread}
    for one in profile._running:
        one._name_marks()
        mark(one._marks[0])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
if _is_loaded():
    _attach(None)
