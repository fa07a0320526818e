"""A web service for test_services.c: FRAMEWORK is flask, django, fastapi or plain (WSGI); OPTIONS are those of evprof's middleware (JSON).

It appends to the file SEEN an object for each request: its path, and when its handler began and ended, by CLOCK_MONOTONIC; and one for
each snapshot that it was called with.
"""
import contextlib
import json
import os
import time

import evprof.asgi
import evprof.wsgi


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def note(**row):
    fd = os.open(os.environ["SEEN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (json.dumps(dict(row, pid=os.getpid())) + "\n").encode())
    os.close(fd)


class noted:
    """Notes when a block ran."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.begin = now()

    def __exit__(self, *error):
        note(path=self.path, begin=self.begin, end=now())


def options():
    return dict(json.loads(os.environ.get("OPTIONS", "{}")),
                on_snapshot=lambda snapshot: note(snapshot=snapshot.path, name=snapshot.name, failed=snapshot.failed))


def work():
    return sum(range(2000))


def slow_query():
    time.sleep(0.4)


def parts(path):
    with noted(path):
        for number in range(3):
            work()
            time.sleep(0.002)
            yield b"part %d\n" % number


def make_flask():
    from flask import Flask, Response
    app = Flask("service")

    @app.route("/items/<int:number>")
    def item(number):
        with noted("/items/%d" % number):
            work()
            time.sleep(0.001 * (number % 5))
        return "item"

    @app.route("/stream/<int:number>")
    def stream(number):
        return Response(parts("/stream/%d" % number))

    @app.route("/slow/<int:number>")
    def slow(number):
        with noted("/slow/%d" % number):
            slow_query()
        return "slow"

    @app.route("/fails/<int:number>")
    def fails(number):
        with noted("/fails/%d" % number):
            raise ValueError("as asked")

    app.wsgi_app = evprof.wsgi.Middleware(app.wsgi_app, **options())
    return app


def make_django():
    import django
    from django.conf import settings
    settings.configure(DEBUG=False, ALLOWED_HOSTS=["*"], ROOT_URLCONF="service_urls", SECRET_KEY="for a test", MIDDLEWARE=[],
                       LOGGING_CONFIG=None)
    django.setup()
    from django.core.handlers.wsgi import WSGIHandler
    return evprof.wsgi.Middleware(WSGIHandler(), **options())


def make_fastapi():
    import asyncio
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse

    @contextlib.asynccontextmanager
    async def lifespan(app):
        note(lifespan="startup")
        yield
        note(lifespan="shutdown")

    app = FastAPI(lifespan=lifespan)

    @app.get("/items/{number}")
    async def item(number: int):
        with noted("/items/%d" % number):
            work()
            await asyncio.sleep(0.001 * (number % 5))
        return "item"

    @app.get("/threads/{number}")
    def in_thread(number: int):
        with noted("/threads/%d" % number):
            work()
        return "in a thread"

    @app.get("/stream/{number}")
    async def stream(number: int):
        async def pieces():
            with noted("/stream/%d" % number):
                for part in range(3):
                    await asyncio.sleep(0.002)
                    yield b"part"
        return StreamingResponse(pieces())

    @app.get("/slow/{number}")
    async def slow(number: int):
        with noted("/slow/%d" % number):
            await asyncio.sleep(0.3)
            slow_query()
        return "slow"

    @app.get("/fails/{number}")
    async def fails(number: int):
        with noted("/fails/%d" % number):
            raise ValueError("as asked")

    app.add_middleware(evprof.asgi.Middleware, **options())
    return app


def application():
    """The factory that the servers call."""
    return {"flask": make_flask, "django": make_django, "fastapi": make_fastapi}[os.environ["FRAMEWORK"]]()
