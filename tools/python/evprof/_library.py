"""libevprof-reader.so by ctypes: its functions (tools/api/api.h), errors as exceptions, and what it owns as objects.

ctypes releases the interpreter lock in each call. An object below frees what it holds when nobody has it any more, so a
call in another thread never sees it freed.
"""
import ctypes
import errno
import os
import threading
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Tuple

from ._paths import find
from .errors import EvprofError, file_error

_VERSION = 2
_ERROR_BYTES = 1024
_ABOUT_THE_TRACE = (errno.EINVAL, errno.EBADMSG, errno.ENOTSUP, errno.ECHILD, errno.EOVERFLOW)
_TAKE_ROWS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_CAPSULE_NAME = b"arrow_array_stream"

#: Names and values of options, as api.h describes them.
Options = List[Tuple[str, str]]


class _Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("format", ctypes.c_char_p), ("data", ctypes.c_void_p),
                ("text_bytes", ctypes.c_void_p), ("text_offsets", ctypes.c_void_p), ("text_count", ctypes.c_uint64)]


class ColumnInfo(NamedTuple):
    """A column as the library describes it. format: a letter of Arrow's; data: an address."""
    name: str
    format: str
    data: int
    text_bytes: int
    text_offsets: int
    text_count: int


def _load() -> Any:
    path = os.environ.get("EVPROF_READER_LIBRARY") or find("libevprof-reader.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError("evprof: %s cannot be loaded: %s" % (path, error)) from error
    void, text, out = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)
    options = ctypes.POINTER(ctypes.c_char_p)
    for name, result, arguments in (
            ("evprof_reader_version", ctypes.c_uint32, []),
            ("evprof_reader_release", text, []),
            ("evprof_trace_open", ctypes.c_int, [text, out, text, ctypes.c_size_t]),
            ("evprof_trace_close", None, [void]),
            ("evprof_trace_table", ctypes.c_int, [void, text, options, out, text, ctypes.c_size_t]),
            ("evprof_trace_diff", ctypes.c_int, [void, options, void, options, out, text, ctypes.c_size_t]),
            ("evprof_trace_text", ctypes.c_int,
             [void, text, options, out, ctypes.POINTER(ctypes.c_size_t), text, ctypes.c_size_t]),
            ("evprof_text_free", None, [void]),
            ("evprof_trace_stream", ctypes.c_int, [void, options, void, text, ctypes.c_size_t]),
            ("evprof_trace_rows", ctypes.c_int, [void, text, options, _TAKE_ROWS, void, text, ctypes.c_size_t]),
            ("evprof_table_rows", ctypes.c_uint64, [void]),
            ("evprof_table_columns", ctypes.c_uint32, [void]),
            ("evprof_table_column", None, [void, ctypes.c_uint32, ctypes.POINTER(_Column)]),
            ("evprof_table_free", None, [void]),
            ("evprof_table_stream", ctypes.c_int, [void, void]),
            ("evprof_stream_new", void, []),
            ("evprof_stream_free", None, [void]),
            ("evprof_capsule_setup", None, [void])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.evprof_reader_version() != _VERSION:
        raise ImportError("evprof: %s is of another version of evprof than this package" % path)
    library.evprof_capsule_setup(ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, void))
    return library


_lock = threading.Lock()
_library: Any = None


def library() -> Any:
    """The library, loaded at the first call."""
    global _library
    with _lock:
        if _library is None:
            _library = _load()
        return _library


def release() -> str:
    """The release of evprof, such as "1.0"."""
    return str(library().evprof_reader_release().decode())


def encoded(text: str) -> bytes:
    """A text for the library. A NUL would end it there."""
    if "\0" in text:
        raise EvprofError("evprof: a text has a NUL: %r" % text)
    return text.encode("utf-8", "surrogateescape")


def _pairs(options: Iterable[Tuple[str, str]]) -> Any:
    words = [encoded(word) for pair in options for word in pair]
    return (ctypes.c_char_p * (len(words) + 1))(*words)


def _check(result: int, error: Any, path: str) -> None:
    if result == 0:
        return
    line = error.value.decode("utf-8", "replace")
    if -result == errno.ENOMEM:
        raise MemoryError(line)
    if -result in _ABOUT_THE_TRACE:
        raise EvprofError(line)
    raise file_error(-result, line, path)


class TablePointer:
    """A table of the library. rows: their number."""

    def __init__(self, pointer: int) -> None:
        self._pointer: Optional[int] = pointer
        self.rows = int(library().evprof_table_rows(pointer))

    def __del__(self) -> None:
        pointer, self._pointer = self._pointer, None
        if pointer and _library is not None:
            _library.evprof_table_free(pointer)

    def columns(self) -> List[ColumnInfo]:
        """What the library says of the columns."""
        found = []
        for number in range(library().evprof_table_columns(self._pointer)):
            column = _Column()
            library().evprof_table_column(self._pointer, number, ctypes.byref(column))
            found.append(ColumnInfo(column.name.decode(), column.format.decode(), column.data or 0, column.text_bytes or 0,
                                    column.text_offsets or 0, column.text_count))
        return found

    def stream(self) -> "StreamPointer":
        """An Arrow stream of the table."""
        stream = StreamPointer()
        if library().evprof_table_stream(self._pointer, stream.address):
            raise MemoryError("evprof: out of memory")
        return stream


class StreamPointer:
    """Memory with a struct ArrowArrayStream at address."""

    def __init__(self) -> None:
        self.address: int = library().evprof_stream_new() or 0
        if not self.address:
            raise MemoryError("evprof: out of memory")

    def __del__(self) -> None:
        address, self.address = getattr(self, "address", 0), 0
        if address and _library is not None:
            _library.evprof_stream_free(address)

    def capsule(self) -> object:
        """A PyCapsule "arrow_array_stream", which owns the stream from now on."""
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        made: object = new(self.address, _CAPSULE_NAME, ctypes.cast(library().evprof_capsule_done, ctypes.c_void_p))
        self.address = 0
        return made


class TracePointer:
    """A trace of the library."""

    def __init__(self, path: str) -> None:
        self._pointer: Optional[int] = None
        self._path = path
        error, pointer = ctypes.create_string_buffer(_ERROR_BYTES), ctypes.c_void_p()
        _check(library().evprof_trace_open(encoded(path), ctypes.byref(pointer), error, _ERROR_BYTES), error, path)
        self._pointer = pointer.value

    def __del__(self) -> None:
        pointer, self._pointer = getattr(self, "_pointer", None), None
        if pointer and _library is not None:
            _library.evprof_trace_close(pointer)

    def table(self, what: str, options: Options) -> TablePointer:
        """The table with that name."""
        error, pointer = ctypes.create_string_buffer(_ERROR_BYTES), ctypes.c_void_p()
        _check(library().evprof_trace_table(self._pointer, what.encode(), _pairs(options), ctypes.byref(pointer), error,
                                            _ERROR_BYTES), error, self._path)
        return TablePointer(pointer.value or 0)

    def diff(self, options: Options, other: "TracePointer", others: Options) -> TablePointer:
        """The table of what changed from this trace to the other one."""
        error, pointer = ctypes.create_string_buffer(_ERROR_BYTES), ctypes.c_void_p()
        _check(library().evprof_trace_diff(self._pointer, _pairs(options), other._pointer, _pairs(others),
                                           ctypes.byref(pointer), error, _ERROR_BYTES), error, self._path)
        return TablePointer(pointer.value or 0)

    def text(self, what: str, options: Options) -> bytes:
        """The text with that name."""
        error, pointer = ctypes.create_string_buffer(_ERROR_BYTES), ctypes.c_void_p()
        length = ctypes.c_size_t()
        written = [value.partition("=")[2] if name == "span-path" else value for name, value in options
                   if name in ("output", "span-path")]  # of a cut
        path = written[0] if len(written) == 1 else self._path
        _check(library().evprof_trace_text(self._pointer, what.encode(), _pairs(options), ctypes.byref(pointer),
                                           ctypes.byref(length), error, _ERROR_BYTES), error, path)
        try:
            return ctypes.string_at(pointer.value or 0, length.value)
        finally:
            library().evprof_text_free(pointer)

    def stream(self, options: Options) -> StreamPointer:
        """An Arrow stream of the events."""
        error, stream = ctypes.create_string_buffer(_ERROR_BYTES), StreamPointer()
        _check(library().evprof_trace_stream(self._pointer, _pairs(options), stream.address, error, _ERROR_BYTES), error,
               self._path)
        return stream

    def rows(self, what: str, options: Options, take: Callable[[StreamPointer], bool]) -> None:
        """A table in batches: calls take() with a stream of each, until it returns false or raises."""
        failed: List[BaseException] = []

        def take_rows(_owner: Optional[int], table: Optional[int]) -> int:
            try:
                stream = StreamPointer()
                if library().evprof_table_stream(table, stream.address):
                    raise MemoryError("evprof: out of memory")
                return 0 if take(stream) else 1
            except BaseException as exception:  # it cannot go through C
                failed.append(exception)
                return 1

        error = ctypes.create_string_buffer(_ERROR_BYTES)
        result = library().evprof_trace_rows(self._pointer, what.encode(), _pairs(options), _TAKE_ROWS(take_rows), None, error,
                                             _ERROR_BYTES)
        if failed:
            raise failed[0]
        if result != -errno.ECANCELED:
            _check(result, error, self._path)
