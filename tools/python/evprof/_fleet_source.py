"""The data source of evprof.fleet: Spark reads *.evp where they are, by the C library. Needs pyspark 4 and pyarrow.

The driver lists files and looks at their sizes only. A task opens traces on its worker, so evprof and the folder have to be there,
at the same paths, or the store's keys.
"""
import os
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from ._fleet_place import place_of
from ._needs import needs
from .errors import EvprofError
from .trace import Trace, load

_Source: Any = needs("pyspark.sql.datasource", "a fleet", "pyspark").DataSource
_Reader: Any = needs("pyspark.sql.datasource", "a fleet", "pyspark").DataSourceReader
_Partition: Any = needs("pyspark.sql.datasource", "a fleet", "pyspark").InputPartition

# Of each row: whose it is. day is that of the trace's first event, in UTC; trace is the path below the folder.
_OWNER = "day string, service string, version string, host string, trace string"
_FUNCTION = "pid int, file string, line int, name string"
_NS = "start bigint, duration bigint"
_TABLES = {
    "traces": _NS + ", processes int, complete boolean, damage string",
    "calls": "id bigint, parent bigint, " + _NS + ", own bigint, name string, mod string, lineno int, kind string, end string, "
             "depth int, task string, thread string, pid int, tid int",
    "functions": _FUNCTION + ", calls bigint, primitive_calls bigint, own bigint, cumulative bigint",
    "memory": _FUNCTION + ", allocations bigint, bytes bigint, peak_bytes bigint, end_bytes bigint",
    "stacks": "pid int, stack string, value bigint",
}
_FILTERS = ("include", "exclude", "exclude_syspath", "min_duration", "max_depth", "start", "end")
_OPTIONS = ("path", "table", "weight", "service", "part_bytes", "skip_unreadable") + _FILTERS
_PART_BYTES = 16 << 20
_PARTS_MAX = 64  # of a trace: parts of one thread replay what is before them
_END_BYTES = 40  # docs/trace.md


class Piece(NamedTuple):
    """A trace for a task, or one of its parts. path: below the folder; part: from 1 to parts; state: of the listing."""
    path: str
    part: int
    parts: int
    state: str


def divided(folder: str, table: str, part_bytes: int) -> List[List[Piece]]:
    """The pieces of each task. Calls of a large trace are read in parts; traces that are small share a task."""
    tasks: List[List[Piece]] = []
    place, filled = place_of(folder), part_bytes
    found = sorted(place.found())
    if not found:
        raise EvprofError("evprof: %s: it has no files *.evp" % folder)
    for path, size, state in found:
        parts = 1
        # A trace without its end may grow between two readings, so it is not divided.
        if table == "calls" and size > part_bytes and place.end(path, _END_BYTES)[:4] == b"EEND":
            parts = min(-(-size // part_bytes), _PARTS_MAX)
        for part in range(1, parts + 1):
            if parts > 1 or filled + size > part_bytes:
                tasks.append([])
                filled = 0
            tasks[-1].append(Piece(path, part, parts, state))
            filled += size if parts == 1 else part_bytes
    return tasks


def owner_of(path: str, trace: Trace, service: str) -> Dict[str, str]:
    """Whose trace it is: what folders named service=, version=, host= and day= say, or what was recorded."""
    named = dict(part.split("=", 1) for part in path.split(os.sep)[:-1] if "=" in part)
    first = trace.processes[0] if trace.processes else None
    start = (trace.start_ns + trace.realtime_offset_ns) // 10**9
    return {"day": named.get("day") or time.strftime("%Y-%m-%d", time.gmtime(start)),
            "service": service or named.get("service") or (first.program if first else ""),
            "version": named.get("version", ""),
            "host": named.get("host") or (first.host if first else ""),
            "trace": path}


# --- the tables: each yields columns by name; an int or a text stands for all rows ---

Columns = Dict[str, Any]


def _pids(trace: Trace) -> List[int]:
    return sorted({process.pid for process in trace.processes})


def _of_traces(trace: Trace, piece: Piece, options: Dict[str, str]) -> Iterator[Columns]:
    trace._counted()  # reads it whole: damage is known of what was read
    yield {"start": [trace.start_ns + trace.realtime_offset_ns], "duration": trace.duration_ns,
           "processes": len(trace.processes), "complete": trace.complete, "damage": str(trace.damage)}


def _of_calls(trace: Trace, piece: Piece, options: Dict[str, str]) -> Iterator[Columns]:
    for batch in trace.call_batches(piece.part, piece.parts):
        yield dict(zip(batch.schema.names, batch.columns))


def _of_functions(trace: Trace, piece: Piece, options: Dict[str, str]) -> Iterator[Columns]:
    for pid in _pids(trace):
        yield {"pid": pid, **_columns(trace.functions(processes=pid))}


def _of_memory(trace: Trace, piece: Piece, options: Dict[str, str]) -> Iterator[Columns]:
    for pid in _pids(trace):
        yield {"pid": pid, **_columns(trace.memory(processes=pid))}


def _of_stacks(trace: Trace, piece: Piece, options: Dict[str, str]) -> Iterator[Columns]:
    for pid in _pids(trace):
        lines = trace.flame("folded", options.get("weight", "time"), processes=pid).splitlines()
        rows = [line.rpartition(" ") for line in lines]
        yield {"pid": pid, "stack": [without_ids(row[0]) for row in rows], "value": [int(row[2]) for row in rows]}


_MAKERS: Dict[str, Callable[[Trace, Piece, Dict[str, str]], Iterator[Columns]]] = {
    "traces": _of_traces, "calls": _of_calls, "functions": _of_functions, "memory": _of_memory, "stacks": _of_stacks}


def without_ids(stack: str) -> str:
    """A folded stack without the pid and tid that its first two frames end with."""
    frames = stack.split(";", 2)
    frames[:2] = [frame.rpartition(" (")[0] or frame for frame in frames[:2]]
    return ";".join(frames)


def _columns(table: Any) -> Columns:
    arrow = table.to_arrow()
    return {name: arrow.column(name).combine_chunks() for name in arrow.column_names}


def _batch(pyarrow: Any, schema: Any, columns: Columns) -> Any:
    """A RecordBatch of the schema. Columns that are no list or array are the same in each row."""
    rows = max(len(column) for column in columns.values() if not isinstance(column, (int, str)))
    arrays = []
    for field in schema:
        column = columns[field.name]
        if isinstance(column, (int, str)):
            column = pyarrow.repeat(pyarrow.scalar(column, field.type), rows)
        elif isinstance(column, list):
            column = pyarrow.array(column, field.type)
        elif column.type != field.type:
            column = column.cast(field.type)
        arrays.append(column)
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


# --- for Spark ---

class EvprofPartition(_Partition):  # type: ignore[misc]
    """What one task reads."""

    def __init__(self, pieces: List[Piece]) -> None:
        super().__init__(None)
        self.pieces = pieces


class EvprofReader(_Reader):  # type: ignore[misc]
    """Divides a folder of traces into tasks on the driver, and reads pieces of it on the workers."""

    def __init__(self, schema: Any, options: Dict[str, str]) -> None:
        self._schema, self._options = schema, options

    def partitions(self) -> List[EvprofPartition]:
        part_bytes = max(1, int(self._options.get("part_bytes", _PART_BYTES)))
        return [EvprofPartition(pieces) for pieces in divided(self._options["path"], self._options["table"], part_bytes)]

    def read(self, partition: EvprofPartition) -> Iterator[Any]:
        pyarrow = needs("pyarrow", "a fleet")
        schema = needs("pyspark.sql.pandas.types", "a fleet", "pyspark").to_arrow_schema(self._schema)
        make = _MAKERS[self._options["table"]]
        place = place_of(self._options["path"])
        for piece in partition.pieces:
            there = None  # before the next one is fetched: there may be room for one
            there = place.opened(piece.path, piece.state)  # kept until the trace is closed
            opened = self._open(there.path, place.name(piece.path))
            if opened is None:
                continue
            with opened as trace:
                owner = owner_of(piece.path, trace, self._options.get("service", ""))
                for columns in make(trace, piece, self._options):
                    yield _batch(pyarrow, schema, {**owner, **columns})

    def _open(self, path: str, name: str) -> Any:
        filters: Dict[str, Any] = {name: self._options[name] for name in _FILTERS if name in self._options}
        if "exclude_syspath" in filters:
            filters["exclude_syspath"] = filters["exclude_syspath"] == "true"
        if "max_depth" in filters:
            filters["max_depth"] = int(filters["max_depth"])
        try:
            return load(path, **filters)
        except EvprofError as error:
            if self._options.get("skip_unreadable") == "true":
                return None
            if path == name:
                raise
            raise EvprofError(str(error).replace(path, name)) from error


class EvprofDataSource(_Source):  # type: ignore[misc]
    """spark.read.format("evprof"); see evprof.fleet.read() for its options."""

    @classmethod
    def name(cls) -> str:
        return "evprof"

    def _checked(self) -> Dict[str, str]:
        given = {name.lower(): value for name, value in self.options.items()}
        for name in given:
            if name not in _OPTIONS:
                raise EvprofError("evprof: there is no option %s; options are %s" % (name, ", ".join(_OPTIONS)))
        if "path" not in given or given.setdefault("table", "calls") not in _TABLES:
            raise EvprofError("evprof: path is a folder, and table one of %s" % ", ".join(_TABLES))
        return given

    def schema(self) -> str:
        return "%s, %s" % (_OWNER, _TABLES[self._checked()["table"]])

    def reader(self, schema: Any) -> EvprofReader:
        return EvprofReader(schema, self._checked())


def tables() -> Tuple[str, ...]:
    """The names of the tables."""
    return tuple(_TABLES)
