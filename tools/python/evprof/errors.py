"""The exceptions of the package. All have one line of text, that of the command evprof."""
from typing import Dict, Tuple, Type


class EvprofError(ValueError):
    """A file that is not a trace, or arguments that do not fit the trace.

    >>> import evprof
    >>> try:
    ...     evprof.load(trace_path).to_numpy(threads=1)
    ... except evprof.EvprofError as error:
    ...     print(error)
    evprof: there is no thread 1 in the trace
    """


class EvprofFileError(OSError, EvprofError):
    """A file that cannot be read or written. errno and filename are set; it is also a FileNotFoundError or PermissionError
    where it is about that.

    >>> import evprof
    >>> try:
    ...     evprof.load("/nonexistent.evp")
    ... except FileNotFoundError as error:
    ...     print(error)
    evprof: /nonexistent.evp: No such file or directory
    """

    line = ""

    def __str__(self) -> str:
        return self.line

    def __reduce__(self) -> Tuple[object, ...]:
        return file_error, (self.errno, self.line, self.filename), self.__dict__  # pickle finds no class that file_error() made


_kinds: Dict[type, Type[EvprofFileError]] = {OSError: EvprofFileError}


def file_error(number: int, line: str, path: str) -> EvprofFileError:
    """The exception for that errno."""
    kind = type(OSError(number, line))
    if kind not in _kinds:
        _kinds[kind] = type("EvprofFileError", (EvprofFileError, kind), {"__module__": __name__})
    text = line.rpartition(": ")[2]
    error = _kinds[kind](number, text, path)
    error.line = line
    return error
