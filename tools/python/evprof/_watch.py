"""What the middleware and the processors of spans share: a span with its number and clock, names that stay few, and snapshots of what
was slow or has failed.

Whoever asks for a snapshot goes on: its path is known at once, and a thread writes the file. One is written at a time, and the next
begins `every` seconds after it at the earliest, whichever middleware or processor of the process asks.
"""
import logging
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Optional, Set, Union

from . import recording

_log = logging.getLogger("evprof")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "WEBSOCKET"))
_ID_LETTERS = frozenset("0123456789abcdefABCDEF-")
_LONGEST_PART = 40  # of a path: longer ones are taken for data
_MOST_NAMES = 1000
_MOST_PATHS = 4096  # whose names are remembered
_MOST_OPEN = 65536


class Snapshot(NamedTuple):
    """A snapshot that was written. path: the trace; name: of the request or span; seconds: how long it took; failed: or only slow."""
    path: str
    name: str
    seconds: float
    failed: bool


class Options(NamedTuple):
    """When there is a snapshot, where, and who is called with it."""
    slow: Optional[float]
    on_error: bool
    every: float
    folder: "Optional[str]"
    on_snapshot: Optional[Callable[[Snapshot], object]]


_busy = threading.Lock()  # held while a snapshot is written
_next = 0.0  # the time of the monotonic clock before which none begins


def _reset() -> None:
    """In the child of a fork: the thread that writes is the parent's."""
    global _busy
    _busy = threading.Lock()


os.register_at_fork(after_in_child=_reset)


def _path(options: Options) -> Optional[str]:
    trace = recording.trace_path()
    if trace is None:
        return None
    if options.folder is not None:
        trace = os.path.join(os.path.abspath(options.folder), os.path.basename(trace))
    return recording.snapshot_name(trace)


def _report(snapshot: Snapshot, options: Options) -> None:
    _log.warning("evprof: %s %s %.3f s: evprof report %s", snapshot.name, "failed after" if snapshot.failed else "took",
                 snapshot.seconds, snapshot.path)
    if options.on_snapshot is not None:
        options.on_snapshot(snapshot)


def _original(module: str, name: str) -> Any:
    """The function that gevent may have replaced by one for greenlets."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey.get_original(module, name) if monkey is not None else getattr(sys.modules[module], name)


def _write(snapshot: Snapshot, options: Options, busy: threading.Lock) -> None:
    try:
        if options.folder is not None:
            os.makedirs(options.folder, mode=0o700, exist_ok=True)
        if recording.snapshot_by(snapshot.path, _original("os", "posix_spawn"), _original("os", "waitpid")) is None:
            _log.warning("evprof: there is no snapshot of %s: %s cannot be written", snapshot.name, snapshot.path)
        else:
            _report(snapshot, options)
    except Exception:  # of the callback, or of the machine: it is no reason to end a thread of the service with a traceback
        _log.warning("evprof: the snapshot of %s", snapshot.name, exc_info=True)
    finally:
        busy.release()


def _start_thread(*arguments: Any) -> None:
    """A thread of the system's, also where gevent has put greenlets in their place, which would hold up all others."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        _original("_thread", "start_new_thread")(_write, arguments)
    else:
        threading.Thread(target=_write, args=arguments, name="evprof-snapshot", daemon=True).start()


def is_due(options: Options, seconds: float, failed: bool) -> bool:
    """Whether that is a reason for a snapshot."""
    return (failed and options.on_error) or (options.slow is not None and seconds >= options.slow)


def take(options: Options, name: str, seconds: float, failed: bool) -> Optional[str]:
    """Begins a snapshot if there is a reason, and time for one. Returns its path; the file is there some 50 ms later."""
    global _next
    if not is_due(options, seconds, failed) or time.monotonic() < _next or not recording.active():
        return None
    busy = _busy
    if not busy.acquire(False):
        return None
    try:
        path = _path(options)
        if path is not None:
            _start_thread(Snapshot(path, name, seconds, failed), options, busy)
            _next = time.monotonic() + options.every
            return path
    except (OSError, RuntimeError):  # no thread can be had, or the interpreter ends
        pass
    busy.release()
    return None


def wait(seconds: float) -> bool:
    """Waits until no snapshot is being written, for so long at most. Returns whether none is."""
    busy = _busy
    if not busy.acquire(True, seconds):
        return False
    busy.release()
    return True


class Names:
    """Names of requests: method and path, where parts that are numbers or hashes are "*". Their number is bounded."""

    def __init__(self) -> None:
        self._names: Set[str] = set()
        self._of_paths: Dict[str, str] = {}

    def bounded(self, name: str) -> str:
        """The name, or "(other)" when there are too many."""
        if name not in self._names:
            if len(self._names) >= _MOST_NAMES:
                return "(other)"
            self._names.add(name)
        return name

    def of(self, method: str, path: str) -> str:
        """The name of a request."""
        if method not in _METHODS:
            method = "(method)"
        key = method + " " + path
        name = self._of_paths.get(key)
        if name is None:
            name = self.bounded(method + " " + "/".join(_part(part) for part in path.split("/")))
            if len(self._of_paths) >= _MOST_PATHS:
                self._of_paths.clear()
            self._of_paths[key] = name
        return name


def _part(part: str) -> str:
    if len(part) > _LONGEST_PART or (_ID_LETTERS.issuperset(part) and any("0" <= one <= "9" for one in part)):
        return "*"
    return part


class OpenSpans:
    """Numbers of evprof's spans by the ids of others' spans. Those that nobody ends are forgotten, the oldest first."""

    def __init__(self) -> None:
        self._numbers: Dict[Any, int] = {}

    def begin(self, key: Any, name: str, arguments: Dict[str, Any]) -> bool:
        """False: nothing records."""
        number = recording.open_span(name, arguments)
        if not number:
            return False
        if len(self._numbers) >= _MOST_OPEN:
            self._numbers.pop(next(iter(self._numbers), None), None)
        self._numbers[key] = number
        return True

    def end(self, key: Any) -> None:
        """Nothing where none is open."""
        recording.close_span(self._numbers.pop(key, 0))


class Request:
    """The span of a request, and within it that of its response, which has the status. Both end once."""
    __slots__ = ("_options", "_name", "_begin", "_number", "_response", "_status")

    def __init__(self, options: Options, name: str, arguments: Dict[str, Any]) -> None:
        self._options = options
        self._name = name
        self._response = self._status = 0
        self._begin = time.monotonic()
        self._number = recording.open_span(name, arguments)

    def __bool__(self) -> bool:
        """Whether it is recorded and open."""
        return self._number != 0

    def respond(self, status: int, route: Optional[str]) -> None:
        """The response begins."""
        recording.close_span(self._response)
        self._status = status
        arguments: Dict[str, Any] = {"status": status}
        if route is not None:
            arguments["route"] = route
        self._response = recording.open_span("response", arguments)

    def end(self, error: Optional[BaseException] = None, slow: bool = True) -> None:
        """The response is complete, or an exception left the application. slow: whether its time counts."""
        number, self._number = self._number, 0
        if not number:
            return
        failed = self._status >= 500 or isinstance(error, Exception)
        if error is not None:
            recording.mark("request failed", error=type(error).__name__)
        recording.close_span(self._response)
        recording.close_span(number)
        seconds = time.monotonic() - self._begin
        if failed or slow:
            take(self._options if slow else self._options._replace(slow=None), self._name, seconds, failed)


class Middleware:
    """What the applications of evprof.wsgi and evprof.asgi share: the options, and the span of a request."""

    def __init__(self, app: Any, *, slow: Optional[float] = None, on_error: bool = True, every: float = 60.0,
                 folder: Optional[str] = None, on_snapshot: Optional[Callable[[Snapshot], object]] = None,
                 route: Optional[Callable[[Any], str]] = None, query: bool = False) -> None:
        self.app = app
        self._options = Options(slow, on_error, every, folder, on_snapshot)
        self._route = route
        self._query = query
        self._names = Names()

    def _request(self, scope: Any, method: str, path: str, query: Union[str, bytes]) -> Request:
        name = self._names.bounded(self._route(scope)) if self._route else self._names.of(method, path)
        arguments = {"method": method, "path": path}
        if self._query:
            arguments["query"] = query if isinstance(query, str) else query.decode("latin-1")
        return Request(self._options, name, arguments)
