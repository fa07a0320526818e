"""A trace as tables in a folder, for DuckDB, Spark, Polars, pandas, ClickHouse and other engines: Parquet, or Arrow's files.

Used by `evprof export --format parquet`, which runs this module, and by Trace.to_tables(). docs/queries.md has the columns.
Batches come from the C library in one thread and are written by another one; memory does not grow with the trace.
"""
import argparse
import atexit
import os
import queue
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import quote

from ._library import Options, StreamPointer, TracePointer
from ._needs import needs
from .errors import EvprofError, file_error
from .table import arrow_reader
from .trace import Trace, kept, load

#: The tables, in the order in which they are written.
TABLES = ("calls", "events", "allocations", "samples", "functions")
_FORMATS = ("parquet", "arrow")
_MEMORY_KINDS = ("malloc", "calloc", "realloc", "free", "realloc_free")
_OTHER_KINDS = ("call", "return", "c_call", "c_return", "exception", "c_exception", "span_begin", "span_end", "mark", "counter")
_BATCH_ROWS = 1 << 18
_WAITING = 2  # batches between the two threads
_DAY_NS = 86400 * 10**9
_WRITERS = 8  # open files of a table: the days that its rows are in


class _Batches:
    """The batches of a walk of the library, which runs in a thread of its own, as an iterator. close() ends the walk.

    So does the program's end, before Python ends its threads wherever they are: a join would then wait for ever, and the walk would call
    an interpreter that is gone.
    """

    def __init__(self, pointer: TracePointer, what: str, options: Options) -> None:
        self._queue: "queue.Queue[Any]" = queue.Queue(_WAITING)
        self._closed = False
        self._thread = threading.Thread(target=self._walk, args=(pointer, what, options), name="evprof-rows", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def _walk(self, pointer: TracePointer, what: str, options: Options) -> None:
        try:
            pointer.rows(what, options, self._take)
            self._put(None)
        except BaseException as error:  # the consumer raises it
            self._put(error)

    def _take(self, stream: StreamPointer) -> bool:
        for batch in arrow_reader(stream):
            self._put(batch)
        return not self._closed

    def _put(self, item: Any) -> None:
        while not self._closed:
            try:
                return self._queue.put(item, timeout=0.1)
            except queue.Full:
                pass

    def __iter__(self) -> Iterator[Any]:
        while not self._closed:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
        raise EvprofError("evprof: the program ends: there are no more batches")

    def _end(self) -> None:
        self._closed = True
        self._thread.join()

    def close(self) -> None:
        atexit.unregister(self._end)
        self._end()


def row_batches(pointer: TracePointer, what: str, options: Options) -> Iterator[Any]:
    """The batches of a walk of the library, as pyarrow RecordBatches. The walk ends with the iterator."""
    batches = _Batches(pointer, what, options)
    try:
        yield from batches
    finally:
        batches.close()


class _Rows(NamedTuple):
    """A table to be written. time: the column that says in which day a row is; plain: columns whose texts differ by batch."""
    batches: Any
    time: Optional[str]
    plain: Tuple[str, ...] = ()


def _events(trace: Trace, filters: Dict[str, Any], kinds: Sequence[str]) -> Iterator[Any]:
    wanted = trace._options({**filters, "kinds": kinds})
    return iter(arrow_reader(trace._pointer().stream(wanted + [("batch-rows", str(_BATCH_ROWS))])))


def _allocations(batches: Iterator[Any]) -> Iterator[Any]:
    names = {"value1": "address", "value2": "bytes"}
    for batch in batches:
        batch = batch.select([name for name in batch.schema.names if name != "value"])
        yield batch.rename_columns([names.get(name, name) for name in batch.schema.names])


def _rows_of(trace: Trace, table: str, filters: Dict[str, Any]) -> _Rows:
    if table == "events":
        return _Rows(_events(trace, filters, _OTHER_KINDS), "time")
    if table == "allocations":
        return _Rows(_allocations(_events(trace, filters, _MEMORY_KINDS)), "time")
    if table == "functions":
        return _Rows(iter(arrow_reader(trace.functions(**filters)._pointer.stream())), None)
    options = trace._options(filters) + [("batch-rows", str(_BATCH_ROWS))]
    plain = ("task",) if table == "calls" else ("stack", "thread")
    return _Rows(_Batches(trace._pointer(), table, options), "start", plain)


class _File:
    """A file that appears when it is complete."""

    def __init__(self, path: str, schema: Any, format: str) -> None:
        self.path = path
        folder, name = os.path.split(path)
        self._partial = os.path.join(folder, ".%s.%d.partial" % (name, os.getpid()))
        os.makedirs(folder, exist_ok=True)
        pyarrow = needs("pyarrow", "a folder of tables")
        if format == "arrow":
            options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pyarrow.ipc.new_file(self._partial, schema, options=options)
        else:
            numbers = [field.name for field in schema if pyarrow.types.is_integer(field.type)]
            texts = [name for name in schema.names if name not in numbers]
            # Numbers as differences without a dictionary, and statistics of few columns: twice as fast.
            self._writer = needs("pyarrow.parquet", "a Parquet file").ParquetWriter(
                self._partial, schema, compression="zstd", compression_level=1, use_dictionary=texts,
                column_encoding={name: "DELTA_BINARY_PACKED" for name in numbers},
                write_statistics=[name for name in numbers if name in ("start", "time", "duration", "pid")])
        self._write = self._writer.write_batch

    def write(self, batch: Any) -> None:
        self._write(batch)

    def close(self) -> None:
        self._writer.close()
        os.replace(self._partial, self.path)

    def abandon(self) -> None:
        try:
            self._writer.close()
        finally:
            if os.path.exists(self._partial):
                os.unlink(self._partial)


class _Folder:
    """One table of one trace: a file for each day that its rows are in, below day=, service= and host=."""

    def __init__(self, folder: str, format: str, trace_name: str, owner: Dict[str, str]) -> None:
        self._folder, self._format, self._owner = folder, format, owner
        self._name = trace_name
        self._files: Dict[Tuple[int, int], _File] = {}
        self._parts: Dict[int, int] = {}
        self._trace: Any = None
        self.written: List[str] = []

    def _path(self, day: int, part: int) -> str:
        date = time.strftime("%Y-%m-%d", time.gmtime(day * 86400))
        owner = ["%s=%s" % (key, quote(value, safe="") or "__HIVE_DEFAULT_PARTITION__") for key, value in self._owner.items()]
        name = quote(self._name, safe=" ") + ("-%d" % part if part else "")
        return os.path.join(self._folder, "day=" + date, *owner, "%s.%s" % (name, self._format))

    def _close_one(self) -> None:
        (day, part), file = next(iter(self._files.items()))
        self._close((day, part), file)
        self._parts[day] = part + 1

    def _close(self, key: Tuple[int, int], file: _File) -> None:
        del self._files[key]
        try:
            file.close()
        except BaseException:
            file.abandon()
            raise
        self.written.append(file.path)

    def _file(self, day: int, schema: Any) -> _File:
        key = (day, self._parts.get(day, 0))
        if key not in self._files:
            if len(self._files) == _WRITERS:
                self._close_one()
            self._files[key] = _File(self._path(*key), schema, self._format)
        return self._files[key]

    def _finished(self, batch: Any, plain: Tuple[str, ...]) -> Any:
        """The batch with the name of the trace. Arrow's files want one dictionary for all batches: other texts are written out."""
        pyarrow = needs("pyarrow", "a folder of tables")
        columns, names = list(batch.columns), list(batch.schema.names)
        for name in plain if self._format == "arrow" else ():
            at = names.index(name)
            columns[at] = columns[at].dictionary_decode()
        if self._trace is None or len(self._trace) < batch.num_rows:
            indices = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int8()), batch.num_rows)
            self._trace = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array([self._name]))
        return pyarrow.RecordBatch.from_arrays([self._trace.slice(0, batch.num_rows)] + columns, ["trace"] + names)

    def write(self, batch: Any, days: Sequence[int], time_column: Optional[str], plain: Tuple[str, ...]) -> None:
        batch = self._finished(batch, plain)
        if len(days) == 1:
            return self._file(days[0], batch.schema).write(batch)
        compute = needs("pyarrow.compute", "a folder of tables")
        day_of = compute.divide(batch.column(batch.schema.get_field_index(time_column)), _DAY_NS)
        for day in compute.unique(day_of).to_pylist():
            self._file(day, batch.schema).write(batch.filter(compute.equal(day_of, day)))

    def close(self) -> None:
        for key, file in list(self._files.items()):
            self._close(key, file)

    def abandon(self) -> None:
        for file in self._files.values():
            file.abandon()
        self._files.clear()


def _days(batch: Any, column: Optional[str], day: int) -> Sequence[int]:
    if column is None or not batch.num_rows:
        return [day]
    compute = needs("pyarrow.compute", "a folder of tables")
    ends = compute.min_max(batch.column(batch.schema.get_field_index(column))).as_py()
    return range(ends["min"] // _DAY_NS, ends["max"] // _DAY_NS + 1)


def _write(rows: _Rows, folder: _Folder, day: int) -> int:
    count = 0
    try:
        for batch in rows.batches:
            if batch.num_rows:
                folder.write(batch, _days(batch, rows.time, day), rows.time, rows.plain)
            count += batch.num_rows
        folder.close()
    except BaseException:
        folder.abandon()
        raise
    finally:
        if isinstance(rows.batches, _Batches):
            rows.batches.close()
    return count


def _names(given: Any, known: Sequence[str], what: str) -> List[str]:
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if name not in known:
            raise EvprofError('evprof: there is no %s "%s"; there are %s' % (what, name, ", ".join(known)))
    return names


def export_tables(trace: Any, folder: Any, format: str = "parquet", tables: Any = TABLES, service: Optional[str] = None,
                  host: Optional[str] = None, **filters: Any) -> Dict[str, int]:
    """Writes a trace as tables into a folder, FOLDER/TABLE/day=DAY/service=SERVICE/host=HOST/TRACE.parquet, and returns the number of
    rows of each table. A table without rows has no file; a file appears when it is complete.

    trace: of load(), or a path. format: parquet or arrow. tables: some of calls, events, allocations, samples and functions.
    service: the program's name, if it is not given; host: that of the recording. filters: those of Trace. Needs pyarrow.

    >>> import evprof, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     evprof.export_tables(trace_path, folder, tables=["calls"], include="leaf")
    {'calls': 1000}
    """
    needs("pyarrow.compute", "a folder of tables")
    _names(format, _FORMATS, "format")
    trace = trace if isinstance(trace, Trace) else load(trace)
    first = trace.processes[0] if trace.processes else None
    owner = {"service": service or (first.program if first else ""), "host": host or (first.host if first else "")}
    start_ns = trace.start_ns + trace.realtime_offset_ns
    stem = os.path.basename(trace.path)
    name = "%s-%d" % (stem[:-len(".evp")] if stem.endswith(".evp") else stem, start_ns)
    counts: Dict[str, int] = {}
    filters = kept(filters)
    try:
        for table in _names(tables, TABLES, "table"):
            to = _Folder(os.path.join(os.fspath(folder), table), format, name, owner)
            counts[table] = _write(_rows_of(trace, table, filters), to, start_ns // _DAY_NS)
    except OSError as error:
        if isinstance(error, EvprofError):
            raise
        raise file_error(error.errno or 0, "evprof: cannot write below %s: %s" % (folder, error.strerror or error),
                         os.fspath(folder)) from error
    return counts


# --- evprof export ---

_FILTERS: Dict[str, Dict[str, Any]] = {
    "include": {"action": "append"}, "exclude": {"action": "append"}, "exclude-syspath": {"action": "store_true"},
    "process": {"action": "append", "type": int, "dest": "processes"}, "thread": {"action": "append", "type": int, "dest": "threads"},
    "from": {"dest": "start"}, "to": {"dest": "end"}, "min-duration": {}, "max-depth": {},
}


def main(arguments: List[str]) -> int:
    """What `evprof export` runs, with its options, which it has checked. The exit status is that of the verb."""
    parser = argparse.ArgumentParser(prog="evprof export", add_help=False)
    parser.add_argument("--format", "-f", default="parquet")
    parser.add_argument("--output", "-o", required=True)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--service")
    parser.add_argument("--host")
    parser.add_argument("--python")
    parser.add_argument("trace")
    for name, settings in _FILTERS.items():
        parser.add_argument("--" + name, **{"dest": name.replace("-", "_"), **settings})
    given = vars(parser.parse_args(arguments))
    del given["python"]
    own = {name: given.pop(name) for name in ("format", "output", "tables", "service", "host", "trace")}
    try:
        trace = load(own["trace"], **{name: value for name, value in given.items() if value})
        export_tables(trace, own["output"], own["format"], own["tables"].split(","), own["service"], own["host"])
        damage = trace.damage
    except (EvprofError, ImportError, MemoryError) as error:
        print(error, file=sys.stderr)
        return 2
    if damage:
        print("evprof export: %s: the trace is incomplete: %s" % (own["trace"], damage), file=sys.stderr)
    return 1 if damage else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
