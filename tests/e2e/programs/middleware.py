"""evprof's middleware around applications without a framework, for test_services.c: prints an object for each span and mark that must
be in the trace, as judge_spans.py takes it. What the applications do is what PEP 3333 and ASGI allow: parts that come late, a status that
comes with the first part, a body that is closed early, exceptions, tasks that take turns, websockets, trailers.
"""
import asyncio
import ctypes
import json
import os
import time

import evprof.asgi
import evprof.wsgi

ROWS = []
now = time.monotonic_ns


def tid():
    return ctypes.CDLL(None).syscall(186 if os.uname().machine == "x86_64" else 178)


def row(what, name, **arguments):
    ROWS.append(dict(what=what, name=name, arguments=[[key, value] for key, value in arguments.items()], pid=os.getpid(), tid=tid(),
                     begin=[now(), None], end=[None, None], end_tid=tid()))
    return ROWS[-1]


class request:
    """Rows of a request whose spans begin and end within the block; response: whether the application has one."""

    def __init__(self, name, method, path, status=200, response=True, error=None, **more):
        self.rows = [row("span", name, method=method, path=path, **more)]
        self.rows += [row("span", "response", status=status)] if response else []
        self.rows += [row("mark", "request failed", error=error)] if error else []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for one in self.rows:
            one["begin"][1] = now()
            one["end"] = one["begin"]
            if one["what"] == "mark":
                del one["begin"], one["end"], one["end_tid"]


def environ(path, method="GET", **more):
    return dict({"REQUEST_METHOD": method, "PATH_INFO": path, "SCRIPT_NAME": "", "QUERY_STRING": "a=secret"}, **more)


def ignore(status, headers, exc_info=None):
    return lambda data: None


def late(environ, start_response):
    """A generator, so the status comes with the first part."""
    start_response("201 Created", [])
    for number in range(3):
        time.sleep(0.001)
        yield b"part"


def fails(environ, start_response):
    raise KeyError("as asked")


def fails_late(environ, start_response):
    start_response("200 OK", [])
    yield b"part"
    raise KeyError("as asked")


def corrects(environ, start_response):
    """The status once more, as after an error."""
    start_response("200 OK", [])
    start_response("500 Error", [], (None, None, None))
    return [b"error"]


class Closed:
    closed = 0

    def __iter__(self):
        return iter([b"one", b"two"])

    def close(self):
        self.closed += 1


def wsgi():
    wrap = evprof.wsgi.Middleware
    with request("GET /late/*", "GET", "/late/17", 201):
        assert b"".join(wrap(late)(environ("/late/17"), ignore)) == b"part" * 3
    for raw, path in (("/caf\u00c3\u00a9", "/caf\u00e9"), ("/caf\u00e9", "/caf\ufffd"), ("/caf\u0115", "/caf\u0115")):
        with request("GET " + path, "GET", path, 201):  # PEP 3333: bytes as latin-1
            list(wrap(late)(environ(raw), ignore))
    with request("GET /", "GET", "/", response=False, error="KeyError"):
        try:
            wrap(fails)(environ("/"), ignore)
        except KeyError:
            pass
    with request("GET /x", "GET", "/x", error="KeyError"):
        try:
            list(wrap(fails_late)(environ("/x"), ignore))
        except KeyError:
            pass
    with request("(method) /y", "BREW", "/y"), request("(method) /y", "BREW", "/y", 500) as second:
        assert wrap(corrects)(environ("/y", "BREW"), ignore) == [b"error"]
        ROWS.remove(second.rows[0])  # one request with two responses
    body = Closed()
    with request("named", "POST", "/z", 204, query="a=secret"):
        parts = wrap(lambda environ, start: start("204 No Content", []) and body, route=lambda environ: "named",
                     query=True)(environ("/z", "POST"), ignore)
        assert next(parts) == b"one"
        parts.close()
        parts.close()
    assert body.closed == 2
    with request("GET /f", "GET", "/f"):
        sent = wrap(lambda environ, start: start("200 OK", []) and Closed())(environ("/f", **{"wsgi.file_wrapper": Closed}), ignore)
        assert type(sent) is Closed


async def asgi_app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await asyncio.sleep(0.01)
        return
    if scope["path"] == "/fails":
        raise KeyError("as asked")
    number = int(scope["path"].rpartition("/")[2])
    await asyncio.sleep(0.001 * (number % 7))
    await send({"type": "http.response.start", "status": 200 + number, "headers": [], "trailers": number == 3})
    for _ in range(number):
        await asyncio.sleep(0.0005)
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
    await send({"type": "http.response.body"})
    if number == 3:
        await asyncio.sleep(0.001)
        await send({"type": "http.response.trailers", "headers": []})
    for one in AFTER.pop(number, ()):
        one()
    await asyncio.sleep(0.01 * (number == 5))  # a task in the background, which is not in the span


AFTER = {}


async def asgi():
    sent = []

    async def send(message):
        sent.append(message["type"])

    async def ask(number):
        made = request("GET /items/*", "GET", "/items/%d" % number, 200 + number)
        AFTER[number] = [lambda: made.__exit__()]
        await app({"type": "http", "method": "GET", "path": "/items/%d" % number, "query_string": b"a=secret"}, None, send)

    app = evprof.asgi.Middleware(asgi_app)
    await asyncio.gather(*[ask(number) for number in range(30)])
    assert sent.count("http.response.start") == 30 and "http.response.trailers" in sent
    await app({"type": "lifespan"}, None, send)
    with request("WEBSOCKET /chat", "WEBSOCKET", "/chat", response=False):
        await app({"type": "websocket", "path": "/chat"}, None, send)
    with request("GET /fails", "GET", "/fails", response=False, error="KeyError"):
        try:
            await app({"type": "http", "method": "GET", "path": "/fails"}, None, send)
        except KeyError:
            pass
    with request("GET /items/*", "GET", "/items/6", response=False, error="CancelledError"):
        asking = asyncio.ensure_future(app({"type": "http", "method": "GET", "path": "/items/6"}, None, send))
        await asyncio.sleep(0)
        asking.cancel()
        try:
            await asking
        except asyncio.CancelledError:
            pass


wsgi()
asyncio.run(asgi())
for one in ROWS:
    print(json.dumps(one))
