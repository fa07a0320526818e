"""A table that the library made: columns without copies, and the ways to other packages."""
import collections
import ctypes
import functools
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ._library import ColumnInfo, StreamPointer, TablePointer
from ._needs import needs

_CTYPES = {"c": ctypes.c_int8, "s": ctypes.c_int16, "i": ctypes.c_int32, "l": ctypes.c_int64, "g": ctypes.c_double}
_NUMPY = {"c": "<i1", "s": "<i2", "i": "<i4", "l": "<i8", "g": "<f8"}


class _Memory:
    """The values of a column as numpy takes them: numpy keeps this object, and it keeps the table."""

    def __init__(self, owner: TablePointer, info: ColumnInfo) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "shape": (owner.rows,), "typestr": _NUMPY[info.format],
                                    "data": (info.data, True)}


def _decoded(info: ColumnInfo) -> List[str]:
    """The texts of a column."""
    if not info.text_count:
        return []
    offsets = (ctypes.c_int32 * (info.text_count + 1)).from_address(info.text_offsets)[:]
    content = ctypes.string_at(info.text_bytes, offsets[-1])
    return [content[first:last].decode("utf-8") for first, last in zip(offsets, offsets[1:])]


class Column:
    """One column of a Table: a sequence of numbers or texts, one a row.

    name: str. is_text: whether the values are stored as indices of texts. It can be indexed, iterated and given to
    numpy.asarray(), without a copy; numpy gets an array of shape (rows,), of texts their indices.

    >>> import evprof
    >>> column = evprof.load(trace_path).functions()["name"]
    >>> column.is_text, "leaf" in column
    (True, True)
    """

    def __init__(self, owner: TablePointer, info: ColumnInfo) -> None:
        self._owner, self._info = owner, info
        self.name = info.name
        self.is_text = bool(info.text_offsets)
        self._texts: Optional[List[str]] = None
        kind: Any = _CTYPES[info.format]
        self._values: Any = (kind * owner.rows).from_address(info.data) if owner.rows else (kind * 0)()
        self._values.owner = owner  # iterators and views keep the array, and it keeps the table

    @property
    def texts(self) -> List[str]:
        """What the indices of a column of texts stand for; an empty list for numbers."""
        if self._texts is None:
            self._texts = _decoded(self._info) if self.is_text else []
        return self._texts

    def __len__(self) -> int:
        return self._owner.rows

    def __getitem__(self, row: int) -> Union[int, float, str]:
        value: Union[int, float] = self._values[row]
        return self.texts[int(value)] if self.is_text else value

    def __iter__(self) -> Iterator[Union[int, float, str]]:
        if not self.is_text:
            return iter(self._values)
        return map(self.texts.__getitem__, self._values)

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        return _Memory(self._owner, self._info).__array_interface__

    def __repr__(self) -> str:
        return "<evprof column %s of %d rows>" % (self.name, len(self))

    def memory(self) -> Any:
        """For numpy.asarray(): the values, kept alive by the array."""
        return _Memory(self._owner, self._info)


def cleaned(texts: Sequence[str], clean: Callable[[str], str]) -> Tuple[List[int], List[str]]:
    """The texts after clean() of each; two may become one. Returns the new number of each, and the new texts."""
    fresh: Dict[str, int] = {}
    return [fresh.setdefault(clean(text), len(fresh)) for text in texts], list(fresh)


@functools.lru_cache(maxsize=None)
def _row_class(columns: Tuple[str, ...]) -> Any:
    """The class of the rows with these columns. Names that are Python's words, such as "from", are not among them."""
    row = collections.namedtuple("Row", columns)  # type: ignore[misc]
    setattr(row, "__reduce__", _reduced_row)  # pickle finds no class that is made here
    return row


def _reduced_row(row: Any) -> Tuple[object, ...]:
    return _row, (row._fields, tuple(row))


def _row(columns: Tuple[str, ...], values: Sequence[Any]) -> Any:
    return _row_class(columns)._make(values)


class Table:
    """Rows and columns, made by the methods of Trace. It never changes, and any thread may read it.

    len() is the number of rows; iterating gives a named tuple for each; table["name"] is a Column. Other packages take it
    by Arrow's C stream interface: pyarrow.table(table), polars.DataFrame(table), DuckDB.

    >>> import evprof
    >>> functions = evprof.load(trace_path).functions()
    >>> [row.calls for row in functions if row.name == "leaf"]
    [1000]
    """

    def __init__(self, pointer: TablePointer) -> None:
        self._pointer = pointer
        self._columns = {info.name: Column(pointer, info) for info in pointer.columns()}

    @property
    def columns(self) -> List[str]:
        """The names of the columns, in their order.

        >>> import evprof
        >>> evprof.load(trace_path).functions().columns[:4]
        ['file', 'line', 'name', 'calls']
        """
        return list(self._columns)

    def __len__(self) -> int:
        return self._pointer.rows

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[Any]:
        return map(_row_class(tuple(self.columns))._make, zip(*self._columns.values()))

    def __repr__(self) -> str:
        return "<evprof table of %d rows: %s>" % (len(self), ", ".join(self._columns))

    def to_numpy(self) -> Dict[str, Any]:
        """A dict of arrays of shape (rows,), read-only, without a copy. Columns of texts are indices of
        table[name].texts. Needs numpy.

        >>> import evprof
        >>> arrays = evprof.load(trace_path).functions().to_numpy()
        >>> arrays["own"].dtype.name, arrays["own"].shape == arrays["name"].shape
        ('int64', True)
        """
        numpy = needs("numpy", "a table as arrays")
        return {name: numpy.asarray(column.memory()) for name, column in self._columns.items()}

    def to_dataframe(self) -> Any:
        """A pandas DataFrame of (rows, columns); texts are categoricals. Needs numpy and pandas.

        >>> import evprof
        >>> frame = evprof.load(trace_path).functions().to_dataframe()
        >>> int(frame[frame["name"] == "leaf"]["calls"].sum())
        1000
        """
        pandas = needs("pandas", "a data frame")
        arrays = self.to_numpy()
        return pandas.DataFrame({
            name: pandas.Categorical.from_codes(arrays[name], categories=column.texts) if column.is_text else arrays[name]
            for name, column in self._columns.items()}, copy=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._pointer.stream().capsule()

    def to_arrow(self) -> Any:
        """A pyarrow Table of (rows, columns) that shares the memory; texts are dictionaries. Needs pyarrow.

        >>> import evprof
        >>> table = evprof.load(trace_path).functions()
        >>> table.to_arrow().num_rows == len(table)
        True
        """
        return arrow_reader(self._pointer.stream()).read_all()

    def to_polars(self) -> Any:
        """A polars DataFrame of (rows, columns); texts are categoricals. Needs polars.

        >>> import evprof
        >>> table = evprof.load(trace_path).functions()
        >>> table.to_polars().height == len(table)
        True
        """
        return polars_frame(self)


def arrow_reader(stream: StreamPointer) -> Any:
    """A pyarrow RecordBatchReader of the stream."""
    pyarrow = needs("pyarrow", "an Arrow table")
    return pyarrow.RecordBatchReader._import_from_c(stream.address)


def polars_frame(source: Any) -> Any:
    """A polars DataFrame of what has __arrow_c_stream__()."""
    polars = needs("polars", "a polars data frame")
    return polars.DataFrame(source)
