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
import functools
import os
import sys
import time

from ._paths import find

_LIBRARY_NAME = "libevprof.so"
_RTLD_NODELETE = 0x1000
_TEXT, _INT, _DOUBLE, _BOOL = 1, 2, 3, 4
_MOST_ARGUMENTS = 16
_LATE = "evprof: loaded into a running Python: programs that it starts are not recorded%s\n"

# The functions of the library; None: nothing records.
_begin = _end = _counter = _mark = None
_library = None  # keeps the GIL: quicker
_patient = None  # the same, for functions that wait
_types = None


def _is_loaded():
    """Whether the library is in this process. ctypes takes milliseconds to import, so it is asked only then."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"/libevprof.so" in maps.read()
    except OSError:
        return False


def _attach(path):
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


def _text(value):
    """UTF-8 without NUL. Lone surrogates stay, as everywhere in a trace."""
    if "\0" in value:
        value = value.replace("\0", "?")
    return bytes(value, "utf-8", "surrogatepass")


def _shown(value):
    try:
        return value if type(value) is str else str(value)
    except Exception:  # an argument must not break the program that it describes
        return "(%s)" % type(value).__name__


def _arguments(values):
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


def mark(_name, **arguments):
    """Records a named point in time in the calling thread, with arguments: texts, numbers, bools; anything else as str() shows it.
    Sixteen arguments count, and 1056 bytes of a text."""
    if _mark is not None:
        _mark(_text(_name), *_arguments(arguments))


def counter(_name, value):
    """Records the value, a number, that a named counter has from now on."""
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
    """
    __slots__ = ("name", "arguments", "_open", "_others")

    def __init__(self, _name, **arguments):
        self.name = _name
        self.arguments = arguments
        self._open = self._others = None

    def __repr__(self):
        return "evprof.span(%r%s)" % (self.name, "".join(", %s=%r" % item for item in self.arguments.items()))

    def _start(self):
        return _begin(_text(self.name), *_arguments(self.arguments))

    def __enter__(self):
        if _begin is not None:
            if self._open:
                # A with statement begins and ends in one frame, whichever tasks, threads and generators run in between.
                if self._others is None:
                    self._others = {}
                self._others.setdefault(id(sys._getframe(1)), []).append(self._start())
            else:
                self._open = self._start()
        return self

    def __exit__(self, *error):
        if self._others:
            key = id(sys._getframe(1))
            if key not in self._others and not self._open:  # another frame than it began in, as of an ExitStack
                key = next(reversed(list(self._others)))
            if key in self._others:
                number = self._others[key].pop()
                if not self._others[key]:
                    del self._others[key]
                _end(number)
                return
        if self._open:
            number, self._open = self._open, 0
            _end(number)

    def __call__(self, function):
        code = getattr(function, "__code__", None)
        flags = code.co_flags if code else 0
        if flags & 0x200:
            wrapper = self._async_generator(function)
        elif flags & 0x80:
            wrapper = self._coroutine(function)
        elif flags & 0x20:
            wrapper = self._generator(function)
        else:
            wrapper = self._function(function)
        return functools.wraps(function)(wrapper)

    def _function(self, function):
        def wrapper(*args, **kwargs):
            if _begin is None:
                return function(*args, **kwargs)
            number = self._start()
            try:
                return function(*args, **kwargs)
            finally:
                _end(number)
        return wrapper

    def _coroutine(self, function):
        async def wrapper(*args, **kwargs):
            number = self._start() if _begin is not None else 0
            try:
                return await function(*args, **kwargs)
            finally:
                if number:
                    _end(number)
        return wrapper

    def _generator(self, function):
        def wrapper(*args, **kwargs):
            number = self._start() if _begin is not None else 0
            try:
                return (yield from function(*args, **kwargs))
            finally:
                if number:
                    _end(number)
        return wrapper

    def _async_generator(self, function):
        async def wrapper(*args, **kwargs):
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


def _report_late():
    old = ", nor may be threads that C code starts" if sys.version_info < (3, 12) else ""
    sys.stderr.write(_LATE % old)


def _load(output, events):
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


def start(output=None, events=None):
    """Starts recording, or goes on after stop(). Where the library was not preloaded, loads it.

    output: path of the trace; events: as EVPROF_EVENTS. Both count only where this call loads the library; elsewhere, and where they
    are None, the environment's count (EVPROF_OUTPUT, EVPROF_EVENTS). With EVPROF=0 in the environment nothing is recorded.
    ImportError: the library was not found. RuntimeError: it is another version's, or this Python is not CPython.
    """
    if begin(output, events):
        _report_late()


def begin(output, events):
    """start() without its line on stderr. Returns whether this call has loaded the library."""
    if os.environ.get("EVPROF") == "0":
        return False
    late = _library is None
    if late:
        _load(output, events)
    _library.evprof_start()
    return late


def stop():
    """Stops recording, in all threads, until start()."""
    if _library is not None:
        _library.evprof_stop()


def active():
    """Whether this process is recorded at the moment."""
    return _library is not None and bool(_library.evprof_active())


def _flush():
    return _patient is not None and bool(_patient.evprof_flush())


def trace_path():
    """The path of the trace that this process is recorded to; None: it is not recorded, or the path is not known yet."""
    if _patient is None:
        return None
    buffer = _types[0].create_string_buffer(1024)
    return os.fsdecode(buffer.value) if _patient.evprof_trace_path(buffer, len(buffer)) else None


_scratch = None  # the directory of a trace that nobody asked to keep


def _make_scratch():
    global _scratch
    import atexit
    import tempfile
    _scratch = tempfile.mkdtemp(prefix="evprof-"), os.getpid()
    atexit.register(_remove_scratch)
    return os.path.join(_scratch[0].replace("%", "%%"), "profile.evp")


def _remove_scratch():
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
    profile is that of its block.
    """
    _count = 0

    def __init__(self, output=None, events=None):
        self._output, self._events = output, events
        self._marks, self._runs, self._alone, self._times = None, False, False, []
        #: The path of the trace; None before stop().
        self.path = None

    def start(self):
        """Begins the block."""
        if self._runs:
            raise RuntimeError("this profile is running")
        if self._marks is None:
            profile._count += 1
            self._marks = ["evprof.profile %d %s" % (profile._count, what) for what in ("begins", "ends")]
        self._alone = not active()
        self._times.append(time.time())
        if self._alone:
            output = self._output
            if _library is None and output is None and not any(
                    os.environ.get(name) for name in ("EVPROF_OUTPUT", "EVPROF_SOCKET", "EVPROF_SESSION")):
                output = _make_scratch()
            start(os.fspath(output) if output is not None else None, self._events)
        self._runs = True
        mark(self._marks[0])
        return self

    def stop(self):
        """Ends the block. It may begin again; the results are those of all its parts."""
        if not self._runs:
            return
        mark(self._marks[1])
        self._runs = False
        if self._alone:
            stop()
        self._times.append(time.time())
        _flush()
        self.path = trace_path()

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        self.stop()

    def _file(self):
        self.stop()
        if self.path is None:
            raise RuntimeError("nothing was recorded" if self._times else "the profile has not begun")
        return self.path

    def report(self, *options, **where):
        """Prints the table of cProfile, to sys.stdout or to file. options: those of `evprof report`, such as "--sort", "cumulative"."""
        import subprocess
        file = where.pop("file", None)
        if where:
            raise TypeError("report() has no argument %r" % sorted(where)[0])
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        tool = subprocess.Popen([find("evprof"), "report", "--between", ",".join(self._marks_of()), *options, "--", self._file()],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        table, errors = tool.communicate()
        if tool.returncode not in (0, 1, 3):  # 1, 3: something is missing; it is still written
            raise RuntimeError(errors.decode("utf-8", "replace").strip() or "evprof report failed")
        (file or sys.stdout).write(table.decode("utf-8", "replace"))

    def _marks_of(self):
        self._file()
        return self._marks

    @property
    def trace(self):
        """The trace, as evprof.load() returns it. It has all that the process has recorded, other blocks too."""
        from . import load
        return load(self._file())

    def to_dataframe(self, **selection):
        """The events of the block, as Trace.to_dataframe() has them. Needs numpy and pandas."""
        table = self.trace.to_dataframe(**selection)
        keep = None
        for begin, end in zip(self._times[::2], self._times[1::2]):
            part = (table["time"] >= int(begin * 1e9)) & (table["time"] <= int(end * 1e9))
            keep = part if keep is None else keep | part
        return table[keep].reset_index(drop=True)


if _is_loaded():
    _attach(None)
