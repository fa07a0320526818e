"""The examples of cProfile's and EventProfiler's documentation with evprof.profile(), for test_spans.c. cProfile runs the same first:
its counts are the oracle.
"""
import cProfile
import importlib
import io
import json
import pstats
import re
import sys
import time

import evprof


def expected(function):
    """{(file, line, name): (calls, primitive calls)} by cProfile, which counts its own disable()."""
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        function()
    except ValueError:
        pass
    finally:
        profiler.disable()
    counts = {key: (row[1], row[0]) for key, row in pstats.Stats(profiler).stats.items()}
    counts.pop(next(key for key in counts if "disable" in key[2]))
    return counts


def found(profile, *options):
    """Functions that ran already when the block began have no call in it."""
    out = io.StringIO()
    profile.report("--format", "json", *options, file=out)
    rows = json.loads(out.getvalue())["functions"]
    return {(row["file"], row["line"], row["function"]): (row["ncalls"], row["primitive_calls"]) for row in rows if row["ncalls"]}


def compiles():
    re.compile("foo|bar")


def f1(t):
    time.sleep(t)


def f2():
    f1(0.01)
    f1(0.01)


def f3():
    f1(0.02)


def f4():
    f2()
    f3()


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def raises():
    fib(8)
    raise ValueError("in the body")


def same(one, other, what):
    for key in set(one) | set(other):
        assert one.get(key) == other.get(key), (what, key, one.get(key), other.get(key))
    assert one


def profiled(function):
    profile = evprof.profile()
    try:
        with profile:
            function()
    except ValueError as error:
        assert function is raises and str(error) == "in the body"
    return profile


def main():
    for function in (compiles, f4, raises):
        re.purge()
        counts = expected(function)
        re.purge()
        profile = profiled(function)
        same(found(profile), counts, function.__name__)
        text = io.StringIO()
        profile.report("--sort", "cumulative", file=text)
        assert "function calls" in text.getvalue() and "Ordered by: cumulative time" in text.getvalue()
        assert function.__name__ in text.getvalue()

    profile = evprof.profile()  # enable(), disable(), and again
    profile.start()
    fib(5)
    profile.stop()
    fib(6)
    profile.start()
    fib(5)
    profile.stop()
    (key, counts), = found(profile).items()
    assert key[2] == "fib" and counts == (30, 2), (key, counts)

    with evprof.profile() as outer:  # one within the other
        fib(3)
        with evprof.profile() as inner:
            fib(4)
    assert [counts for key, counts in found(inner).items() if key[2] == "fib"] == [(9, 1)]
    assert [counts for key, counts in found(outer).items() if key[2] == "fib"] == [(14, 2)]

    recorded = evprof.active()
    first, second = evprof.profile(), evprof.profile()  # they overlap
    first.start()
    fib(3)
    second.start()
    fib(4)
    first.stop()
    fib(5)
    second.stop()
    assert [counts for key, counts in found(first).items() if key[2] == "fib"] == [(14, 2)]
    assert [counts for key, counts in found(second).items() if key[2] == "fib"] == [(24, 2)]
    assert evprof.active() == recorded

    with evprof.profile() as profile:  # what the package does itself is not in the table
        with evprof.span("a span", n=1):
            evprof.mark("a mark")
            evprof.counter("a counter", 1)
            fib(3)
    (key, counts), = found(profile).items()
    assert key[2] == "fib" and counts == (5, 1), (key, counts)
    assert "(fib)" in profile.text() and repr(profile.text()) == str(profile.text())
    printed, sys.stdout = sys.stdout, io.StringIO()
    try:
        assert profile.report("--sort", "calls") is None
        assert sys.stdout.getvalue() == profile.text("--sort", "calls")
    finally:
        sys.stdout = printed

    assert profile.text(sort=["calls"], limit=3, strip_dirs=True, exclude=["a*", "b*"]) == profile.text(
        "--sort", "calls", "--limit", "3", "--strip-dirs", "--exclude", "a*", "--exclude", "b*")
    for wrong, line in (({"limit": True}, "the option --limit is not known or lacks its value"), ({"reverse": "x"}, "--reverse"),
                        ({"lmit": 3}, "did you mean --limit?"), ({"by": "line"}, "--by wants function"),
                        ({"sort": "colour"}, "colour"), ({"between": "one mark,another"}, 'no mark "one mark" was set')):
        try:
            profile.report(strip_dirs=True, **wrong)
        except evprof.EvprofError as error:
            assert line in str(error) and "\n" not in str(error), error
        else:
            raise AssertionError(wrong)

    try:
        evprof.profile().report()
    except RuntimeError as error:
        assert "not begun" in str(error)
    else:
        raise AssertionError
    try:
        numpy = importlib.import_module("numpy") and importlib.import_module("pandas")
    except ImportError:
        numpy = None
    if numpy and sys.version_info >= (3, 8):
        table = profiled(f4).to_dataframe()
        calls = table[table["event"] == "call"]
        assert list(calls["name"]) == ["f4", "f2", "f1", "f1", "f3", "f1"], list(calls["name"])
        in_turn = [profiled(f) for f in 4 * (lambda: fib(4), raises)]  # one right behind the other
        for number, one in enumerate(in_turn):
            expected_names = ["raises"] + ["fib"] * 67 if number % 2 else ["<lambda>"] + ["fib"] * 9
            for selection in ({}, {"kinds": "call"}, {"kinds": ["call"], "since_start": True}):
                table = one.to_dataframe(**selection)
                assert list(table[table["event"] == "call"]["name"]) == expected_names, (number, selection, table)
        again = evprof.profile()
        for part in (lambda: fib(2), lambda: fib(3)):
            again.start()
            part()
            again.stop()
            fib(5)
        assert (again.to_dataframe(kinds="call")["name"] == "fib").sum() == 8
    print("as cProfile", profile.path)


main()
