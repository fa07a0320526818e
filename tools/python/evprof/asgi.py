"""A span for each request of an ASGI application: fastapi, starlette, django, quart. docs/services.md describes it.

    app.add_middleware(evprof.asgi.Middleware, slow=1.0)              # fastapi, starlette
    application = evprof.asgi.Middleware(get_asgi_application())      # django, in asgi.py
"""
from typing import Any, Awaitable, Callable, MutableMapping, Optional

from . import _watch, recording

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


def _route(scope: _Message) -> Optional[str]:
    """Where fastapi or starlette has found a route."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else None


class _Exchange:
    """What the application sends for one request."""

    def __init__(self, request: _watch.Request, scope: _Message, send: _Send) -> None:
        self._request = request
        self._scope = scope
        self._send = send
        self._trailers = False

    def _is_last(self, message: _Message) -> bool:
        kind = message["type"]
        if kind == "http.response.body":
            return not message.get("more_body") and not self._trailers
        if kind == "http.response.trailers":
            return not message.get("more_trailers")
        return bool(kind == "http.response.pathsend")

    async def send(self, message: _Message) -> None:
        """As the server's, and the span ends with the response."""
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            self._trailers = bool(message.get("trailers"))
            self._request.respond(message["status"], _route(self._scope))
        await self._send(message)
        if self._is_last(message):
            self._request.end()


class Middleware(_watch.Middleware):
    """An ASGI application that makes a span of each request, and of each websocket, of another one.

    Spans, names and options are those of evprof.wsgi.Middleware; route takes the scope. A span belongs to the task of its request, so
    requests that take turns do not mix. It ends when the last part of the response was sent; tasks that the application runs
    afterwards are not in it. That of a websocket ("WEBSOCKET /chat") ends when the application returns, and is never slow.

    >>> import asyncio, evprof.asgi
    >>> async def app(scope, receive, send):
    ...     await send({"type": "http.response.start", "status": 200, "headers": []})
    ...     await send({"type": "http.response.body", "body": b"hello"})
    >>> app = evprof.asgi.Middleware(app, slow=1.0)
    >>> async def send(message):
    ...     print(message["type"])
    >>> asyncio.run(app({"type": "http", "method": "GET", "path": "/"}, None, send))
    http.response.start
    http.response.body
    """

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        is_http = scope["type"] == "http"
        if recording._begin is None or not (is_http or scope["type"] == "websocket"):
            await self.app(scope, receive, send)
            return
        request = self._request(scope, scope.get("method", "") if is_http else "WEBSOCKET", scope.get("path", ""),
                                scope.get("query_string", b""))
        if not request:
            await self.app(scope, receive, send)
            return
        error: Optional[BaseException] = None
        try:
            await self.app(scope, receive, _Exchange(request, scope, send).send)
        except BaseException as one:
            error = one
            raise
        finally:
            request.end(error, slow=is_http)
            error = None
