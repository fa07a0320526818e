"""Sentry's spans by evprof.sentry.Integration, for test_services.c: prints an object for each span that Sentry's transport gets, as
judge_spans.py takes it, and "snapshot PATH" for the path that the events of the slow transaction and of the error have.
"""
import ctypes
import json
import os
import time

import sentry_sdk
from sentry_sdk.transport import Transport

import evprof.sentry

EVENTS, TIMES, SNAPSHOTS = [], {}, []
now = time.monotonic_ns


class Kept(Transport):
    """Keeps what Sentry would send."""

    def capture_envelope(self, envelope):
        EVENTS.extend(item.payload.json for item in envelope.items)


class timed:
    """A span between looks at the clock."""

    def __init__(self, make, **arguments):
        self.times = {"begin": [now()]}
        self.span = make(**arguments)
        self.times["begin"].append(now())
        TIMES[self.span.span_id] = self.times

    def __enter__(self):
        return self.span.__enter__()

    def __exit__(self, *error):
        self.times["end"] = [now()]
        self.span.__exit__(*error)
        self.times["end"].append(now())


def tid():
    return ctypes.CDLL(None).syscall(186 if os.uname().machine == "x86_64" else 178)


def row_of(name, ids, description=None):
    arguments = [["trace_id", ids["trace_id"]], ["span_id", ids["span_id"]]]
    arguments += [["parent_id", ids["parent_span_id"]]] if ids.get("parent_span_id") else []
    arguments += [["description", description]] if description else []
    return dict(TIMES[ids["span_id"]], what="span", name=name, arguments=arguments, pid=os.getpid(), tid=tid(), end_tid=tid())


def rows_of(event):
    yield row_of(event["transaction"], event["contexts"]["trace"])
    for span in event["spans"]:
        yield row_of(span.get("op") or "span", span, span.get("description"))


def slow_query():
    time.sleep(0.3)


def failing_query():
    raise ValueError("as asked")


def wait(count):
    ends = time.monotonic() + 30
    while len(SNAPSHOTS) < count and time.monotonic() < ends:
        time.sleep(0.01)
    time.sleep(0.1)


def tagged(event):
    path = event["contexts"].get("evprof", {}).get("snapshot")
    assert (event.get("tags") or {}).get("evprof.snapshot") == path
    return path


sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=Kept, traces_sample_rate=1.0, default_integrations=False,
                auto_enabling_integrations=False,
                integrations=[evprof.sentry.Integration(slow=0.3, every=0, on_snapshot=SNAPSHOTS.append)])
with timed(sentry_sdk.start_transaction, name="order", op="task"):
    with timed(sentry_sdk.start_span, op="db", name="select 1"):
        slow_query()
    with timed(sentry_sdk.start_span, name="no op"):
        pass
wait(1)
with timed(sentry_sdk.start_transaction, name="broken"):
    try:
        failing_query()
    except ValueError:
        sentry_sdk.capture_exception()
wait(2)
sentry_sdk.flush()

transactions = [event for event in EVENTS if event.get("type") == "transaction"]
errors = [event for event in EVENTS if event.get("type") is None]
assert [event["transaction"] for event in transactions] == ["order", "broken"] and len(errors) == 1, EVENTS
assert [(one.path, one.failed) for one in SNAPSHOTS[:2]] == [(tagged(transactions[0]), False), (tagged(errors[0]), True)]
for event in transactions:
    for row in rows_of(event):
        print(json.dumps(row))
for snapshot in SNAPSHOTS[:2]:
    print("snapshot", snapshot.path)
