"""OpenTelemetry spans by evprof.otel.SpanProcessor, for test_services.c: prints an object for each span that the SDK has, as judge_spans.py
takes it, and "snapshot PATH" for the path that the exported spans of the slow trace and of the failed one have.
"""
import asyncio
import ctypes
import json
import os
import sys
import threading
import time

import evprof.otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ROWS, SNAPSHOTS = [], []
now = time.monotonic_ns


def tid():
    return ctypes.CDLL(None).syscall(186 if os.uname().machine == "x86_64" else 178)


def ids(span):
    context = span.get_span_context()
    found = [["trace_id", "%032x" % context.trace_id], ["span_id", "%016x" % context.span_id]]
    return found + ([["parent_id", "%016x" % span.parent.span_id]] if span.parent else [])


class watched:
    """A span that is current, between looks at the clock."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        begin = now()
        self.manager = tracer.start_as_current_span(self.name)
        span = self.manager.__enter__()
        self.row = dict(what="span", name=self.name, pid=os.getpid(), tid=tid(), arguments=ids(span), begin=[begin, now()])
        ROWS.append(self.row)
        return span

    def __exit__(self, *error):
        self.row["end"] = [now()]
        self.manager.__exit__(*error)
        self.row["end"].append(now())
        self.row["end_tid"] = tid()


def slow_query():
    time.sleep(0.3)


def failing_query():
    raise ValueError("as asked")


def ends_elsewhere():
    """What begins here and ends in another thread; ending it once more does nothing."""
    begin = now()
    span = tracer.start_span("elsewhere")
    row = dict(what="span", name="elsewhere", pid=os.getpid(), tid=tid(), arguments=ids(span), begin=[begin, now()])

    def end():
        row["end"] = [now()]
        span.end()
        row["end"].append(now())
        row["end_tid"] = tid()

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    ROWS.append(row)


async def task(number):
    with watched("task"):
        for _ in range(number):
            with watched("step"):
                await asyncio.sleep(0.001 * number)


async def tasks():
    await asyncio.gather(*[task(number) for number in range(1, 5)])


exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))  # before evprof's: the order does not matter
provider.add_span_processor(evprof.otel.SpanProcessor(slow=0.3, every=0, on_snapshot=SNAPSHOTS.append))
tracer = provider.get_tracer("test")

asyncio.run(tasks())
ends_elsewhere()
with watched("quick"):
    pass
with watched("order"):
    with watched("customer"):
        pass
    with watched("query"):
        slow_query()
assert provider.force_flush()
try:
    with watched("broken"):
        failing_query()
except ValueError:
    pass
assert provider.force_flush()

exported = exporter.get_finished_spans()
assert sorted(span.name for span in exported) == sorted(row["name"] for row in ROWS)
paths = {span.name: span.attributes["evprof.snapshot"] for span in exported if "evprof.snapshot" in span.attributes}
slow = {"order", "query"}
assert slow | {"broken"} <= set(paths), paths
if len(SNAPSHOTS) == 2:  # nothing else was slow on this machine
    assert set(paths) == slow | {"broken"} and paths["order"] == paths["query"], paths
    assert [(one.path, one.name, one.failed) for one in SNAPSHOTS] == [(paths["query"], "query", False), (paths["broken"], "broken", True)]
assert all(one.path in paths.values() and os.path.exists(one.path) for one in SNAPSHOTS)
for row in ROWS:
    print(json.dumps(row))
print("snapshot", paths["query"])
print("snapshot", paths["broken"])
sys.stdout.flush()
