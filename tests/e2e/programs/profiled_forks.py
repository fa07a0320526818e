"""A process among others, which profiles a block in two parts that forks: the block's results are those of the process and its children.
For test_spans.c.
"""
import importlib
import json
import os
import sys
import time

import evprof

HERE = "*/profiled_forks.py"
NAMES = ("sibling", "parent", "child", "grandchild")


def sibling():
    pass


def parent():
    pass


def child():
    pass


def grandchild():
    pass


def forked(function):
    pid = os.fork()
    if not pid:
        function()
        evprof.recording._flush()
        os._exit(0)
    return pid


def calls_meanwhile():
    while os.getppid() == MAIN:
        sibling()
        time.sleep(0.001)


def family():
    child()
    child()
    os.waitpid(forked(grandchild), 0)


def counts(profile):
    """The calls of NAMES by text(), and by to_dataframe() where it can be."""
    rows = json.loads(profile.text(format="json", include=HERE))["functions"]
    found = {row["function"]: row["ncalls"] for row in rows if row["function"] in NAMES and row["ncalls"]}
    if pandas and sys.version_info >= (3, 8):
        calls = profile.to_dataframe(kinds="call", include=HERE)["name"].value_counts().to_dict()
        in_frame = {name: calls[name] for name in NAMES if calls.get(name)}
        assert in_frame == found, (in_frame, found)
    return found


def work():
    profile = evprof.profile()
    for _ in range(2):
        profile.start()
        parent()
        os.waitpid(forked(family), 0)
        profile.stop()
        parent()
        os.waitpid(forked(family), 0)
    assert counts(profile) == {"parent": 2, "child": 4, "grandchild": 2}, counts(profile)

    profile = evprof.profile().start()
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        profile.stop()
        assert counts(profile) == {"child": 2, "grandchild": 1}, counts(profile)
        return
    child()
    profile.stop()  # the child's part; the parent is still in the block
    assert counts(profile) == {"child": 1}, counts(profile)
    child()
    profile.start()
    os.waitpid(forked(grandchild), 0)
    profile.stop()
    assert counts(profile) == {"child": 1, "grandchild": 1}, counts(profile)
    os._exit(0)


try:
    pandas = importlib.import_module("numpy") and importlib.import_module("pandas")
except ImportError:
    pandas = None
MAIN = os.getpid()
forked(calls_meanwhile)
worker = os.fork()
if not worker:
    work()
    print("as called", flush=True)
    os._exit(0)
sys.exit(os.waitpid(worker, 0)[1] >> 8)
