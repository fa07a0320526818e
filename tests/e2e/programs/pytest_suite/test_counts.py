"""Tests that count what they call, with limits. Each appends a row to the file $SEEN, for judge_pytest.py: its name, the limit, its
calls by caller.
"""
import asyncio
import json
import os
import threading
import unittest

import pytest

import app


def seen(test, limit, calls):
    with open(os.environ["SEEN"], "a") as file:
        file.write(json.dumps({"test": test, "limit": limit, "calls": dict(calls)}) + "\n")


@pytest.fixture
def counted(request):
    """Calls of app.query by caller, in the test only. The fixture calls it, too."""
    app.query("fixture")
    app.calls.clear()
    yield
    seen(request.node.name, request.node.get_closest_marker("evprof").kwargs["max_calls"]["app:query"], app.calls)
    app.query("fixture")


@pytest.mark.evprof(max_calls={"app:query": 20})
@pytest.mark.parametrize("users", [1, 9, 10, 50])
def test_page(users, counted):
    app.page(users)


@pytest.mark.evprof(max_calls={"app:query": 12})
def test_under(counted):
    app.load_users(11)


@pytest.mark.evprof(max_calls={"app:query": 11})
def test_exact(counted):
    app.load_users(11)


@pytest.mark.evprof(max_calls={"app:query": 10})
def test_over(counted):
    app.load_users(11)


@pytest.mark.evprof(max_calls={"app:query": 0})
def test_none(counted):
    app.nothing()


@pytest.mark.evprof(max_calls={"app:query": 0})
def test_method(counted):
    app.Session().query("test_method")  # a function is matched by its name, too


@pytest.mark.evprof(max_calls={"app:query": 5})
class TestClass:
    def test_of_class(self, counted):
        app.load_users(6)

    @pytest.mark.evprof(max_calls={"app:query": 6})
    def test_of_both(self, counted):
        app.load_users(6)


@pytest.mark.evprof(max_calls={"app:query": 7})
def test_threads(counted):
    threads = [threading.Thread(target=app.load_users, args=(2,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.evprof(max_calls={"app:query": 2})
def test_generator(counted):
    for _ in app.rows(3):
        pass
    app.calls["<genexpr>"] = app.calls.pop("rows")


async def step():
    app.query("step")
    await asyncio.sleep(0)
    app.query("step")


@pytest.mark.evprof(max_calls={"app:query": 5})
def test_tasks(counted):
    async def main():
        await asyncio.gather(*[step() for _ in range(3)])
    asyncio.run(main())


@pytest.mark.evprof(max_calls={"app:query": 3})
def test_fork(counted):
    app.child(4)


@pytest.mark.evprof(max_calls={"app:query": 2})
def test_raises(counted):
    with pytest.raises(ZeroDivisionError):
        app.load_users(3)
        1 // 0


class TestOfUnittest(unittest.TestCase):
    def setUp(self):
        app.calls.clear()

    @pytest.mark.evprof(max_calls={"app:query": 2})
    def test_of_unittest(self):
        app.load_users(3)
        seen("test_of_unittest", 2, app.calls)


@pytest.mark.evprof(max_calls={"app:query": 0}, warmups=2)
def test_warmups(counted):
    app.calls.clear()
    app.load_users(1)


def test_without_limit():
    app.load_users(100)
