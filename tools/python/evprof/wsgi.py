"""A span for each request of a WSGI application: flask, django, and all others. docs/services.md describes it.

    app.wsgi_app = evprof.wsgi.Middleware(app.wsgi_app, slow=1.0)              # flask
    application = evprof.wsgi.Middleware(get_wsgi_application(), slow=1.0)     # django, in wsgi.py
"""
from typing import Any, Callable, Iterable, Iterator, Optional

from . import _watch, recording

_Environ = Any  # a dict
_StartResponse = Callable[..., Any]


class _Body:
    """The parts of a response. The request ends when the server closes it, or at the last part."""

    def __init__(self, parts: Iterable[bytes], request: _watch.Request) -> None:
        self._parts = parts
        self._iterator: Optional[Iterator[bytes]] = None
        self._request = request

    def __iter__(self) -> "_Body":
        return self

    def __next__(self) -> bytes:
        try:
            if self._iterator is None:
                self._iterator = iter(self._parts)
            return next(self._iterator)
        except StopIteration:
            self._request.end()
            raise
        except BaseException as error:
            self._request.end(error)
            raise

    def close(self) -> None:
        """As PEP 3333 has it."""
        try:
            close = getattr(self._parts, "close", None)
            if close is not None:
                close()
        finally:
            self._request.end()


def _status(line: object) -> int:
    """The number in "200 OK"."""
    digits = str(line)[:3]
    return int(digits) if digits.isdigit() else 0


def _route(environ: _Environ) -> Optional[str]:
    """Flask's route, where flask has found it."""
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return None if rule is None else str(rule.rule)


def _is_complete(parts: Any, environ: _Environ) -> bool:
    """A list is all there. A file is sent by the server, which looks at its type for that."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(parts, (list, tuple)) or (isinstance(wrapper, type) and isinstance(parts, wrapper))


def _path(environ: _Environ) -> str:
    """The path of a request. A server hands over its bytes as latin-1 (PEP 3333)."""
    path: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    try:
        return path.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # the server has decoded them
        return path


class Middleware(_watch.Middleware):
    """A WSGI application that makes a span of each request of another one.

    The span is named by method and path ("GET /users/*": numbers and hashes are "*"; 1000 names at most) and has both as arguments.
    Within it, the span "response" has the status, and the route where flask has one. It ends when the response is complete: when the
    server closes it, or when the application returns, if it returns a list or a file (wsgi.file_wrapper). An exception that leaves
    the application is the mark "request failed". Where nothing records, the application is called and nothing else.

    slow: seconds after which a request is worth a snapshot, as evprof.snapshot() takes; None: no time is.
    on_error: so is one with the status 500 or above, and one that an exception leaves.
    every: seconds between two snapshots of a process. folder: where they go (default: next to the trace).
    on_snapshot: called in a thread with each one that was written (path, name, seconds, failed). The logger "evprof" has a line, too.
    route: a function of the environ that gives the span's name. query: whether the query is an argument; it may have secrets.

    >>> import evprof.wsgi
    >>> def application(environ, start_response):
    ...     start_response("200 OK", [])
    ...     return [environ["PATH_INFO"].encode()]
    >>> application = evprof.wsgi.Middleware(application, slow=1.0)
    >>> application({"REQUEST_METHOD": "GET", "PATH_INFO": "/users/17"}, lambda status, headers: None)
    [b'/users/17']
    """

    def __call__(self, environ: _Environ, start_response: _StartResponse) -> Any:
        if recording._begin is None:
            return self.app(environ, start_response)
        request = self._request(environ, environ.get("REQUEST_METHOD", ""), _path(environ), environ.get("QUERY_STRING", ""))
        if not request:
            return self.app(environ, start_response)

        def start(status: str, *arguments: Any, **keywords: Any) -> Any:
            request.respond(_status(status), _route(environ))
            return start_response(status, *arguments, **keywords)

        try:
            parts = self.app(environ, start)
        except BaseException as error:
            request.end(error)
            raise
        if not _is_complete(parts, environ):
            return _Body(parts, request)
        request.end()
        return parts
