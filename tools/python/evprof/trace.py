"""Reading traces: load(), and what a trace holds. docs/table.md describes the table of events."""
import json
import os
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from ._library import Options, TablePointer, TracePointer
from ._needs import needs
from ._tool import Option, option_words, report
from .errors import EvprofError
from .table import Table, arrow_reader, cleaned, polars_frame
from .text import Text

Several = Union[None, int, str, Iterable[Union[int, str]]]
Texts = Union[None, str, Iterable[str]]
Time = Union[None, int, float, str]

_BATCH_ROWS = 1 << 20  # of a table that is kept whole
_CUT_OPTIONS = {"from", "to", "process", "thread", "output", "mark-begin", "mark-end", "span", "span-path", "number", "each"}


class Code(NamedTuple):
    """A Python function. name is co_name, module its __name__.

    >>> import evprof
    >>> codes = evprof.load(trace_path).processes[0].codes
    >>> [code.line > 0 for code in codes.values() if code.name == "leaf"]
    [True]
    """
    file: str
    name: str
    qualname: str
    module: str
    line: int


class CFunction(NamedTuple):
    """A C function. cls is the type it is a method of, as tp_name, or "".

    >>> import evprof
    >>> c_functions = evprof.load(trace_path).processes[0].c_functions
    >>> all(isinstance(function, evprof.CFunction) for function in c_functions.values())
    True
    """
    cls: str
    name: str
    module: str


class Budget(NamedTuple):
    """What recording might add to a process (EVPROF_BUDGET), and what it did add: percent of the CPU time without it.

    recording_cpu_ms: until Python's end, the collector's share included. longest_left_out_us: the longest mean of a
    function whose calls were left out; 0: none. exceptions_left_out_ms: CPU time in which exceptions were. All but
    percent are None where the process has not said so: it was killed, or goes on.

    >>> import evprof
    >>> process = evprof.load(trace_path).processes[0]
    >>> process.budget is None  # all was recorded
    True
    """
    percent: float
    recording_percent: Optional[float] = None
    recording_cpu_ms: Optional[float] = None
    longest_left_out_us: Optional[float] = None
    exceptions_left_out_ms: Optional[float] = None


class Damage(str):
    """The damage of a trace, as far as it was read until now: a line of text, empty and so false without damage.

    >>> import evprof
    >>> evprof.load(trace_path).damage
    ''
    """
    __slots__ = ()


class Thread:
    """A thread. number: in the trace; tid; name or None; process; ended: its end is in the trace.

    events and lost count events by kind, as its end in the trace says; None where that is missing.

    >>> import evprof
    >>> thread = evprof.load(trace_path).threads[0]
    >>> thread.ended, thread.tid == thread.process.pid
    (True, True)
    """

    def __init__(self, process: "Process", found: Dict[str, Any]) -> None:
        self.process = process
        self.number: int = found["number"]
        self.tid: int = found["tid"]
        self.name: Optional[str] = found["name"]
        self.ended: bool = found["ended"]
        self.events: Optional[Dict[str, int]] = found["events"] if found["ended"] else None
        self.lost: Optional[Dict[str, int]] = found["lost"] if found["ended"] else None

    def __repr__(self) -> str:
        return "<evprof thread %d of process %d: %s>" % (self.tid, self.process.pid, self.name or "without a name")


class Process:
    """One process image. number: in the trace; pid, ppid; threads; meta and end: what the trace says at its start and
    end, end is None where that is missing; codes and c_functions: its functions by id, from 1.

    argv, python, program, title, exe, cwd and host are as recorded, and empty where that is missing.

    >>> import evprof
    >>> process = evprof.load(trace_path).processes[0]
    >>> len(process.threads), process.end["how"]
    (1, 'exit')
    """

    def __init__(self, trace: "Trace", found: Dict[str, Any]) -> None:
        self._trace = trace
        self.number: int = found["number"]
        self.pid: int = found["pid"]
        self.ppid: int = found["ppid"]
        self.title: str = found["title"]
        self.meta: Dict[str, Any] = found["meta"]
        self.end: Optional[Dict[str, Any]] = found["end"]
        self._account: Dict[str, float] = found["account"] or {}
        self.threads = [Thread(self, thread) for thread in found["threads"]]

    @property
    def argv(self) -> List[str]:
        """The words of its command line."""
        return list(self.meta.get("argv") or [])

    def _text(self, name: str) -> str:
        return str(self.meta.get(name) or "")

    @property
    def python(self) -> str:
        """The version of Python."""
        return self._text("python")

    @property
    def program(self) -> str:
        """The name of the program."""
        return self._text("program")

    @property
    def exe(self) -> str:
        """The path of the interpreter."""
        return self._text("exe")

    @property
    def cwd(self) -> str:
        """The folder in which it started."""
        return self._text("cwd")

    @property
    def host(self) -> str:
        """The name of the machine."""
        return self._text("host")

    @property
    def budget(self) -> Optional[Budget]:
        """What recording might cost, and did; None: there was no budget."""
        return Budget(self.meta["budget"], **self._account) if self.meta.get("budget") else None

    @property
    def codes(self) -> Dict[int, Code]:
        """Its Python functions by id."""
        return self._trace._functions()[self.number][0]

    @property
    def c_functions(self) -> Dict[int, CFunction]:
        """Its C functions by id."""
        return self._trace._functions()[self.number][1]

    def __repr__(self) -> str:
        return "<evprof process %d: %s, %d threads>" % (self.pid, " ".join(self.argv), len(self.threads))


def _several(values: Any) -> List[Any]:
    if values is None:
        return []
    return [values] if isinstance(values, (int, str)) or not hasattr(values, "__iter__") else list(values)


def kept(filters: Dict[str, Any]) -> Dict[str, Any]:
    """Filters that can be read more than once: an iterator, as map() and a generator make it, is a list from here on."""
    return {name: list(value) if hasattr(value, "__next__") else value for name, value in filters.items()}


def _time(value: Time) -> str:
    return value if isinstance(value, str) else str(int(value or 0))


def _flag(name: str) -> Callable[[Any], Options]:
    return lambda value: [(name, "")] if value else []


def _list(name: str, convert: Callable[[Any], Any] = str) -> Callable[[Any], Options]:
    return lambda values: [(name, str(convert(value))) for value in _several(values)]


def _selected(filter_name: str, name: str, convert: Callable[[Any], Any] = str) -> Callable[[Any], Options]:
    """As _list(). No option would select everything, so an empty list is refused."""
    def options(values: Any) -> Options:
        several = _several(values)
        if values is not None and not several:
            raise EvprofError("evprof: %s is an empty list" % filter_name)
        return _list(name, convert)(several)
    return options


def _one(name: str, convert: Callable[[Any], str] = str) -> Callable[[Any], Options]:
    return lambda value: [] if value is None else [(name, convert(value))]


_OPTIONS: Dict[str, Callable[[Any], Options]] = {
    "kinds": _selected("kinds", "kind"),
    "processes": _selected("processes", "process", int), "threads": _selected("threads", "thread", int),
    "start": _one("from", _time), "end": _one("to", _time), "min_duration": _one("min-duration", _time),
    "include": _selected("include", "include"), "exclude": _list("exclude"), "exclude_syspath": _flag("exclude-syspath"),
    "max_depth": _one("max-depth"), "since_start": _flag("since-start"), "clock": _one("clock"),
}

# Filters that the tool names otherwise.
_TOOL_NAMES = {"processes": "process", "threads": "thread", "start": "from", "end": "to"}


def tool_words(filters: Mapping[str, Any]) -> List[str]:
    """Filters of Trace, and other options of the tool with names, as its words."""
    given = {_TOOL_NAMES.get(name, name): value for name, value in filters.items()}
    return option_words({name: value for name, value in given.items() if name not in ("kinds", "since_start")})


class Trace:
    """A trace file, opened by load(). It can be used in a with statement, and by several threads at once.

    start_ns, end_ns: CLOCK_MONOTONIC of the first and last event. realtime_offset_ns: what is added to that to get ns
    since 1970. complete: whether the trace has its end.

    The methods that read events take filters, with the meaning of the options of `evprof export`:

    kinds                only these events of the table, by name (evprof.EVENTS)
    processes, threads   only these pids, tids: a number, or several
    start, end           only this time range, since the start of the trace
    include, exclude     patterns of functions, one or several: globs, or "re:" and a POSIX extended regular expression
    exclude_syspath      true: without functions of the standard library and of installed packages
    min_duration         only calls of at least this duration
    max_depth            only this many outermost calls of the stack
    since_start          true: times in ns since the start of the trace; else since 1970
    clock                "cpu": the time that threads ran, "off-cpu": that they waited; of functions(), lines(), calls(), callers(),
                         diff(), report() and flame() by time, bytes or allocations. Without start and end, and where the event cpu
                         was recorded

    start, end and min_duration are in ns, or texts such as "20us", "3ms", "1.5s". Filters of load() apply to all methods; those of a
    method come on top and replace filters of the same name.

    Arguments that do not fit raise EvprofError; so does an empty list of kinds, processes, threads or include.

    >>> import evprof
    >>> trace = evprof.load(trace_path)
    >>> trace.complete, trace.start_ns < trace.end_ns
    (True, True)
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], **filters: Any) -> None:
        self.path = os.fsdecode(path)
        self._filters = kept(filters)
        self._options({})
        self._open: Optional[TracePointer] = TracePointer(self.path)
        self._lock = threading.Lock()
        self._definitions: Optional[Dict[int, Tuple[Dict[int, Code], Dict[int, CFunction]]]] = None
        self._texts: Optional[Dict[str, List[str]]] = None
        info = json.loads(self._pointer().text("info", []).decode("utf-8"))
        self.start_ns: int = info["start_ns"]
        self.end_ns: int = info["end_ns"]
        self.realtime_offset_ns: int = info["realtime_offset_ns"]
        self.complete: bool = info["complete"]
        self.processes = [Process(self, process) for process in info["processes"]]
        self.threads = sorted((thread for process in self.processes for thread in process.threads),
                              key=lambda thread: thread.number)

    # --- opening and closing ---

    def _pointer(self) -> TracePointer:
        pointer = self._open
        if pointer is None:
            raise EvprofError("evprof: %s: the trace is closed" % self.path)
        return pointer

    def close(self) -> None:
        """Frees what the trace holds. Tables and arrays that were made of it stay valid. Another close() does nothing.

        >>> import evprof
        >>> trace = evprof.load(trace_path)
        >>> trace.close()
        >>> trace.to_numpy()
        Traceback (most recent call last):
            ...
        evprof.errors.EvprofError: evprof: ...: the trace is closed
        """
        self._open = None

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<evprof trace %s: %d processes, %d threads%s>" % (
            self.path, len(self.processes), len(self.threads), "" if self.complete else ", incomplete")

    @property
    def duration_ns(self) -> int:
        """From the first event to the last, in ns.

        >>> import evprof
        >>> evprof.load(trace_path).duration_ns > 0
        True
        """
        return self.end_ns - self.start_ns

    @property
    def damage(self) -> Damage:
        """The damage of the file, as far as it was read. Chunks of events are checked when they are read.

        >>> import evprof
        >>> bool(evprof.load(trace_path).damage)
        False
        """
        return Damage(self._pointer().text("damage", []).decode("utf-8", "replace"))

    def _counted(self) -> List[Dict[str, Any]]:
        """The processes, with events counted where their number is missing. The whole file is read: damage is all of it then."""
        found: List[Dict[str, Any]] = json.loads(self._pointer().text("counted-info", []).decode("utf-8"))["processes"]
        return found

    # --- filters ---

    def _options(self, filters: Dict[str, Any]) -> Options:
        options: Options = []
        for name, value in {**self._filters, **filters}.items():
            if name not in _OPTIONS:
                raise TypeError("evprof: there is no filter %s; filters are %s" % (name, ", ".join(_OPTIONS)))
            try:
                options += _OPTIONS[name](value)
            except (TypeError, ValueError, OverflowError) as error:
                if isinstance(error, EvprofError):
                    raise
                raise EvprofError("evprof: %s cannot be %r" % (name, value)) from error
        return options

    # --- functions ---

    def _functions(self) -> Dict[int, Tuple[Dict[int, Code], Dict[int, CFunction]]]:
        """By number of the process: its codes and its C functions, by id."""
        with self._lock:
            if self._definitions is None:
                made: Dict[int, Tuple[Dict[int, Code], Dict[int, CFunction]]] = {
                    process.number: ({}, {}) for process in self.processes}
                for row in Table(self._pointer().table("definitions", [])):
                    codes, c_functions = made[row.process]
                    if row.c_function:
                        c_functions[row.id] = CFunction(row.file, row.name, row.module)
                    else:
                        codes[row.id] = Code(row.file, row.name, row.qualname or row.name, row.module, row.line)
                self._definitions = made
            return self._definitions

    def _names(self, column: str) -> List[str]:
        """The texts of a column of the table of events, which are the same with any filters."""
        if self._texts is None:
            empty = Table(self._pointer().table("events", [("from", "0"), ("to", "1")]))
            self._texts = {"name": empty["name"].texts, "mod": empty["mod"].texts}
        return self._texts[column]

    @property
    def names(self) -> List[str]:
        """What the numbers in name and from_name of to_numpy() stand for.

        >>> import evprof
        >>> "leaf" in evprof.load(trace_path).names
        True
        """
        return self._names("name")

    @property
    def mods(self) -> List[str]:
        """What the numbers in mod and from_mod of to_numpy() stand for.

        >>> import evprof
        >>> any(mod.endswith(".py") for mod in evprof.load(trace_path).mods)
        True
        """
        return self._names("mod")

    # --- the table of events ---

    def _events(self, filters: Dict[str, Any], *options: Any) -> TablePointer:
        return self._pointer().table("events", self._options(filters) + list(options))

    def to_numpy(self, **filters: Any) -> Dict[str, Any]:
        """The table of events as a dict of numpy arrays, each of shape (rows,), in order of time.

        time, value1 and value2 are int64: ns, addresses and bytes. event is int16 with the numbers of evprof.EVENTS. name and
        from_name are int32, indices of trace.names; mod and from_mod of trace.mods. lineno, from_line, pid and tid are
        int32. value is float64: the value of a counter, else 0. The arrays are read where the library made them, without a
        copy; 58 bytes a row, and 8 more where there are counters. Needs numpy.

        >>> import evprof
        >>> trace = evprof.load(trace_path)
        >>> rows = trace.to_numpy(kinds="call", include="leaf")
        >>> len(rows["time"]), str(rows["name"].dtype), trace.names[rows["name"][0]]
        (1000, 'int32', 'leaf')
        """
        numpy = needs("numpy", "the table of events")
        table = Table(self._events(filters, ("event-numbers", "")))
        return {name: numpy.asarray(table[name].memory()) for name in table.columns}

    def to_dataframe(self, clean_file_name: Optional[Callable[[str], str]] = None, **filters: Any) -> Any:
        """The table of events as a pandas DataFrame; texts are categoricals, so group with observed=True.

        clean_file_name: a function that shortens file names. Needs numpy and pandas.

        >>> import evprof, os.path
        >>> frame = evprof.load(trace_path).to_dataframe(clean_file_name=os.path.basename, kinds="call")
        >>> int((frame["name"] == "leaf").sum())
        1000
        """
        pandas, numpy = needs("pandas", "a data frame"), needs("numpy", "a data frame")
        table = Table(self._events(filters))
        frame: Dict[str, Any] = {}
        for name in table.columns:
            column, values = table[name], numpy.asarray(table[name].memory())
            texts: List[str] = column.texts
            # Modules of C functions are among the files, and a file name never is the name of a module.
            if clean_file_name and name in ("mod", "from_mod"):
                numbers, texts = cleaned(texts, clean_file_name)
                values = numpy.array(numbers, numpy.int32)[values]
            frame[name] = pandas.Categorical.from_codes(values, categories=texts) if column.is_text else values
        return pandas.DataFrame(frame, copy=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._pointer().stream(self._options({})).capsule()

    def batches(self, batch_rows: int = 1 << 17, clean_file_name: Optional[Callable[[str], str]] = None,
                **filters: Any) -> Iterator[Any]:
        """The table of events as pyarrow RecordBatches of about batch_rows rows, read as they are asked for: the memory
        needed is that of two batches. Texts are dictionaries. Needs pyarrow.

        >>> import evprof
        >>> trace = evprof.load(trace_path)
        >>> sum(batch.num_rows for batch in trace.batches(kinds="call", include="leaf"))
        1000
        """
        pyarrow = needs("pyarrow", "the table of events in batches")
        options = self._options(filters) + [("batch-rows", str(int(batch_rows)))]
        reader = arrow_reader(self._pointer().stream(options))
        return self._cleaned_batches(pyarrow, reader, clean_file_name)

    @staticmethod
    def _cleaned_batches(pyarrow: Any, reader: Any, clean: Optional[Callable[[str], str]]) -> Iterator[Any]:
        numbers: Any = None
        for batch in reader:
            if clean is None:
                yield batch
                continue
            if numbers is None:
                found, texts = cleaned(batch.column(batch.schema.get_field_index("mod")).dictionary.to_pylist(), clean)
                numbers, names = pyarrow.array(found, pyarrow.int32()), pyarrow.array(texts, pyarrow.string())
            columns = list(batch.columns)
            for name in ("mod", "from_mod"):
                at = batch.schema.get_field_index(name)
                columns[at] = pyarrow.DictionaryArray.from_arrays(numbers.take(columns[at].indices), names)
            yield pyarrow.RecordBatch.from_arrays(columns, schema=batch.schema)

    def to_arrow(self, clean_file_name: Optional[Callable[[str], str]] = None, **filters: Any) -> Any:
        """The table of events as a pyarrow Table; texts are dictionaries. Needs pyarrow.

        >>> import evprof
        >>> evprof.load(trace_path).to_arrow(kinds="call", include="leaf").num_rows
        1000
        """
        pyarrow = needs("pyarrow", "an Arrow table")
        options = self._options(filters) + [("batch-rows", str(_BATCH_ROWS))]
        reader = arrow_reader(self._pointer().stream(options))
        return pyarrow.Table.from_batches(self._cleaned_batches(pyarrow, reader, clean_file_name), schema=reader.schema)

    def to_polars(self, clean_file_name: Optional[Callable[[str], str]] = None, **filters: Any) -> Any:
        """The table of events as a polars DataFrame; texts are categoricals. Needs polars, and pyarrow for
        clean_file_name.

        >>> import evprof
        >>> evprof.load(trace_path).to_polars(kinds="call", include="leaf").height
        1000
        """
        if clean_file_name:
            return needs("polars", "a polars data frame").from_arrow(self.to_arrow(clean_file_name, **filters))
        return polars_frame(_Streamed(self, filters))

    def to_parquet(self, path: Union[str, "os.PathLike[str]"],
                   clean_file_name: Optional[Callable[[str], str]] = None, **filters: Any) -> None:
        """Writes the table of events as a Parquet file; texts are dictionaries. The memory needed is that of a million
        rows. Needs pyarrow.

        >>> import evprof, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     evprof.load(trace_path).to_parquet(os.path.join(folder, "app.parquet"), kinds="call")
        """
        needs("pyarrow", "a Parquet file")
        writing = needs("pyarrow.parquet", "a Parquet file")
        options = self._options(filters) + [("batch-rows", str(_BATCH_ROWS))]
        reader = arrow_reader(self._pointer().stream(options))
        with writing.ParquetWriter(os.fspath(path), reader.schema) as writer:
            for batch in self._cleaned_batches(needs("pyarrow", "a Parquet file"), reader, clean_file_name):
                writer.write_batch(batch)

    def to_tables(self, folder: Union[str, "os.PathLike[str]"], **named: Any) -> Dict[str, int]:
        """Writes calls, events, allocations, samples and functions as Parquet files below a folder; the number of rows of each. The
        arguments are those of evprof.export_tables(). Needs pyarrow.

        >>> import evprof, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     evprof.load(trace_path).to_tables(folder, tables="calls", include="leaf")
        {'calls': 1000}
        """
        from .tables import export_tables
        return export_tables(self, folder, **named)

    # --- outputs and analyses ---

    def _table(self, what: str, filters: Dict[str, Any]) -> Table:
        return Table(self._pointer().table(what, self._options(filters)))

    def report(self, *options: str, **named: Option) -> Text:
        """The text of `evprof report`: cProfile's table, times in seconds, as a str that an interactive Python and
        a notebook show as the table that it is. For a block of code, evprof.profile().report() prints the same.

        The arguments are the filters of Trace, and the options of `evprof report`, with names (limit=5, sort="bytes", by="span",
        strip_dirs=True, several values as a list) or as words ("--limit", "5"). kinds and since_start have no meaning here.

        Raises EvprofError, with the tool's line, for an option that it does not have or take.

        >>> import evprof
        >>> trace = evprof.load(trace_path)
        >>> print(trace.report(sort="calls", include="leaf"))
                 1000 function calls in ...
        >>> len(trace.report(limit=3, format="csv").splitlines())
        4
        """
        self._pointer()
        return report(self.path, [*options, *tool_words({**self._filters, **named})])

    def functions(self, **filters: Any) -> Table:
        """A Table with a row for each function, counted as cProfile counts: file, line, name, calls, primitive_calls; own
        and cumulative in ns.

        >>> import evprof
        >>> [row.calls for row in evprof.load(trace_path).functions() if row.name == "leaf"]
        [1000]
        """
        return self._table("functions", filters)

    def calls(self, **filters: Any) -> Table:
        """A Table with a row for each call, thread after thread, in the order of their starts.

        start: ns since the start of the trace (with the filter clock, on a clock of the thread's own). duration, own: ns, own
        without the calls in it. parent: the row of the caller, or -1. name, mod, lineno: as in the table of events, but
        lineno of a C function is -1. kind: call, resume, throw, c_call, or frame for a call that began before what is
        shown. end: return, yield, unwind, c_return, c_exception or none. depth: calls below it. task: the task that it is
        a step of, or "". thread, pid, tid.

        >>> import evprof
        >>> len([row for row in evprof.load(trace_path).calls(include="leaf") if row.end == "return"])
        1000
        """
        return self._table("calls", filters)

    def call_batches(self, part: int = 0, parts: int = 0, batch_rows: int = 1 << 18, **filters: Any) -> Iterator[Any]:
        """The calls as pyarrow RecordBatches of batch_rows rows, in the order of their ends, read as they are asked for: memory does
        not grow with the trace. Texts are dictionaries. Needs pyarrow.

        The columns are those of calls() and id, the number of the call; parent is the id of the caller, and start is ns since 1970.

        part, parts: only one of so many parts of the trace, from 1 on, which may be read at once. The calls of all parts are those
        of the trace, each once, the same but for the ids, which are of all parts together in the order of the starts. Parts have
        equal numbers of events; one that begins within a thread replays that thread from its beginning.

        >>> import evprof
        >>> trace = evprof.load(trace_path)
        >>> sum(batch.num_rows for part in (1, 2) for batch in trace.call_batches(part, 2, include="leaf"))
        1000
        """
        needs("pyarrow", "calls in batches")
        from .tables import row_batches
        options = self._options(filters) + [("batch-rows", str(int(batch_rows)))]
        if part or parts:
            options += [("part", str(int(part))), ("parts", str(int(parts)))]
        return row_batches(self._pointer(), "calls", options)

    def callers(self, function: str, **filters: Any) -> Table:
        """A Table with a row for each Python function that calls a function: file, line (its first one), name, calls. C functions
        between the two are skipped; a call without a caller has the file "" and line 0. The sum of calls is what `evprof check`
        counts.

        function: "MODULE:FUNCTION" as in `evprof check --max-calls`; the functions that match are taken together. EvprofError: it
        has no colon.

        >>> import evprof
        >>> sum(row.calls for row in evprof.load(trace_path).callers("*:leaf"))
        1000
        """
        options = self._options(filters) + [("function", function)]
        return Table(self._pointer().table("callers", options))

    def lines(self, **filters: Any) -> Table:
        """A Table with a row for each line of each function: file, line, name; hits, own (ns), calls of the function at
        its first line. Without line events (EVPROF_EVENTS=line) the time of a function is at its first line.

        >>> import evprof
        >>> sum(row.calls for row in evprof.load(trace_path).lines() if row.name == "leaf")
        1000
        """
        return self._table("lines", filters)

    def memory(self, by: str = "function", **filters: Any) -> Table:
        """A Table with a row for each function: file, line, name (qualified); calls, allocations, and bytes allocated by
        the function itself, freed or not; peak_blocks, peak_bytes: those of them that were live at the peak of their
        process, as flame(weight="peak") has them; end_blocks, end_bytes: at the program's end; temporary: allocations
        that were freed before the thread's next one. Not with min_duration. -1 is what cannot be known: the peak where
        only what is alive was kept (EVPROF_KEEP=alive), temporary where memory was sampled (EVPROF_MEMORY_INTERVAL);
        there the other numbers are estimates.

        by="line" has the rows of `evprof memory`: the line is that of the allocation, 0 where lines were not recorded, C
        functions count for their callers, each process has rows of its own (pid), and there are no calls.

        >>> import evprof
        >>> evprof.load(trace_path).memory().columns[5:]
        ['bytes', 'peak_blocks', 'peak_bytes', 'end_blocks', 'end_bytes', 'temporary']
        >>> evprof.load(trace_path).memory(by="line").columns[:4]
        ['file', 'line', 'name', 'allocations']
        """
        if by not in ("function", "line"):
            raise EvprofError('evprof: memory() is by function or line, not "%s"' % by)
        return self._table("memory" if by == "function" else "memory_lines", filters)

    def tasks(self, **filters: Any) -> Table:
        """A Table with a row for each asyncio task: start of its first step and end of its last, ns since the start of the
        trace; ran: ns in its steps; steps; finished: 1 or 0; name; thread, pid, tid.

        >>> import evprof
        >>> evprof.load(trace_path).tasks().columns[:5]
        ['start', 'end', 'ran', 'steps', 'finished']
        """
        return self._table("tasks", filters)

    def diff(self, other: "Trace", memory: bool = False, by: str = "line", **filters: Any) -> Table:
        """A Table with a row for each function of this trace (a) or the other one (b), matched as by `evprof diff`, the
        largest change of own time first: file, line, name; change: both, added or removed; calls_a, calls_b, own_a, own_b,
        cumulative_a, cumulative_b (ns), allocations_a, allocations_b, bytes_a, bytes_b. Not with min_duration.

        memory=True has the rows of `evprof diff --memory` instead, by line, function, module, thread, task or library, the
        largest change at the peak first. After change: peak_bytes_a, peak_bytes_b, end_bytes_a, end_bytes_b, allocations_a,
        allocations_b, bytes_a, bytes_b, temporary_a, temporary_b; -1 where a trace does not have it, as in memory().

        >>> import evprof
        >>> trace = evprof.load(trace_path)
        >>> {row.calls_a - row.calls_b for row in trace.diff(trace)}
        {0}
        >>> trace.diff(trace, memory=True).columns[4:6]
        ['peak_bytes_a', 'peak_bytes_b']
        """
        sites, filters = [("by", by)] if memory else [], kept(filters)
        return Table(self._pointer().diff(self._options(filters) + sites, other._pointer(), other._options(filters) + sites))

    def flame(self, format: str = "folded", weight: str = "time", **filters: Any) -> str:
        """A flame graph: "folded" stacks, a line each, for flamegraph.pl and speedscope, or the "html" page of
        `evprof export`, with timeline and table.

        weight, of folded: time (ns), bytes, allocations, live (bytes at the program's end), peak or temporary. Where memory was
        sampled (EVPROF_MEMORY_INTERVAL), those of memory are estimates, and temporary raises EvprofError; so does peak where only
        what is alive was kept (EVPROF_KEEP=alive).

        >>> import evprof
        >>> evprof.load(trace_path).flame(include="leaf").splitlines()[0].rpartition(";")[2].split(" ")[0]
        'leaf'
        """
        if format not in ("folded", "html"):
            raise EvprofError('evprof: format is folded or html, not "%s"' % format)
        options = self._options(filters) + ([("weight", weight)] if format == "folded" else [])
        return self._pointer().text(format, options).decode("utf-8", "replace")

    # --- cuts ---

    def _cut(self, filters: Dict[str, Any], options: Options) -> List[str]:
        options = self._options(filters) + options
        wrong = {name for name, _ in options} - _CUT_OPTIONS
        if wrong:
            raise EvprofError("evprof: a cut has all that its stretch has; it takes start, end, processes and threads, not %s"
                              % ", ".join(sorted(wrong)))
        written = self._pointer().text("cut", options)
        return [path.decode("utf-8", "surrogateescape") for path in written.split(b"\0")[:-1]]

    def cut(self, path: Union[str, "os.PathLike[str]"], *, between: Optional[Tuple[str, str]] = None, span: Optional[str] = None,
            number: Optional[int] = None, each: bool = False, **filters: Any) -> List[str]:
        """Writes a stretch of the trace as a trace of its own, as `evprof cut` does, and returns the paths of the files.

        The stretch is from start to end, or between two marks (both with it), or a span by its name; of several, that with the
        number, from 1 on, or each, into FILE.evp, FILE-2.evp, FILE-3.evp and so on. Other filters are processes and threads. A file
        appears when it is complete, and only its owner may read it. EvprofError: there is no such stretch, or several and neither
        number nor each; EvprofFileError: a file cannot be written.

        >>> import evprof, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path] = evprof.load(trace_path).cut(os.path.join(folder, "first.evp"), end="1s")
        ...     evprof.load(path).complete
        True
        """
        options: Options = [("output", os.fsdecode(path))]
        if between is not None:
            begin, end = between
            options += [("mark-begin", begin), ("mark-end", end)]
        options += [("span", span)] if span is not None else []
        options += [("number", str(int(number)))] if number is not None else []
        return self._cut(filters, options + ([("each", "")] if each else []))

    def _cut_spans(self, pid: int, paths: Dict[int, str]) -> List[str]:
        """Cuts spans of a process by their numbers, in one reading, each to its path. Returns the paths of those that were found."""
        return self._cut({}, [("span-path", "%d:%d=%s" % (pid, number, path)) for number, path in paths.items()]) if paths else []

    # --- plots ---

    def plot_events(self, bins: int = 100, ax: Any = None, **filters: Any) -> Any:
        """Events over time, a line for each kind: their number in each of so many stretches. Returns the matplotlib axes;
        ax: those to draw in. Needs numpy and matplotlib.

        >>> import evprof
        >>> evprof.load(trace_path).plot_events(kinds=["call"]).get_xlabel()
        'time (s)'
        """
        from .plots import plot_events
        return plot_events(self, bins, ax, filters)

    def plot_memory(self, ax: Any = None, **filters: Any) -> Any:
        """Bytes that were allocated and not freed over time, in MiB, a line for each process. Returns the matplotlib
        axes. Needs numpy and matplotlib.

        >>> import evprof
        >>> evprof.load(trace_path).plot_memory().get_ylabel()
        'allocated (MiB)'
        """
        from .plots import plot_memory
        return plot_memory(self, ax, filters)

    def plot_functions(self, limit: int = 20, ax: Any = None, **filters: Any) -> Any:
        """Calls by function, the most called at the top. Returns the matplotlib axes. Needs matplotlib.

        >>> import evprof
        >>> evprof.load(trace_path).plot_functions(include="leaf").get_xlabel()
        'calls'
        """
        from .plots import plot_functions
        return plot_functions(self, limit, ax, filters)


class _Streamed:
    """The events of a trace with filters, for consumers of Arrow streams."""

    def __init__(self, trace: Trace, filters: Dict[str, Any]) -> None:
        self._trace, self._filters = trace, kept(filters)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        options = self._trace._options(self._filters) + [("batch-rows", str(_BATCH_ROWS))]
        return self._trace._pointer().stream(options).capsule()


def load(path: Union[str, "os.PathLike[str]"], **filters: Any) -> Trace:
    """Opens a trace, whole or damaged. filters: see Trace; they apply to everything that is read of it.

    Raises EvprofError for a file that is not a trace, and EvprofFileError, an OSError, for one that cannot be read.

    >>> import evprof
    >>> with evprof.load(trace_path, exclude_syspath=True) as trace:
    ...     len(trace.processes)
    1
    """
    return Trace(path, **filters)
