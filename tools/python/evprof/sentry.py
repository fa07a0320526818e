"""Sentry's spans in evprof's timeline, and a snapshot for what Sentry reports. docs/services.md describes it.

    sentry_sdk.init(dsn=..., traces_sample_rate=0.1, integrations=[evprof.sentry.Integration(slow=1.0)])

For sentry-sdk 2: pip install evprof[sentry].
"""
import functools
import logging
from typing import Any, Callable, Dict, Optional

from . import _watch, recording
from ._needs import needs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sentry_sdk.integrations import Integration as _Base
else:
    _Base = needs("sentry_sdk.integrations", "evprof.sentry", "sentry-sdk").Integration
_sdk: Any = needs("sentry_sdk", "evprof.sentry", "sentry-sdk")
_tracing: Any = needs("sentry_sdk.tracing", "evprof.sentry", "sentry-sdk")

#: The tag of an event that has the path of its snapshot. Sentry cuts tags; the context "evprof" has the whole path.
TAG = "evprof.snapshot"
_FAILED = frozenset(("internal_error", "unknown_error", "data_loss", "unavailable", "deadline_exceeded"))
_MOST_TRACES = 4096  # whose snapshots are remembered until their transaction ends
_log = logging.getLogger("evprof")
_spans = _watch.OpenSpans()


class Integration(_Base):
    """Takes a snapshot for an error that Sentry gets, and for a slow transaction. The event has its path, as the tag "evprof.snapshot"
    and in the context "evprof".

    Transactions and spans of Sentry are spans of evprof's, named by the transaction's name and the span's op, with trace_id, span_id,
    parent_id, and the description of a span. Spans of the mode trace_lifecycle="stream" are not.

    slow, on_error, every, folder, on_snapshot: as for evprof.wsgi.Middleware. A transaction that Sentry does not sample gets no
    event, and so no snapshot for being slow.

    >>> import sentry_sdk, evprof.sentry
    >>> _ = sentry_sdk.init(integrations=[evprof.sentry.Integration(slow=1.0)])
    >>> with sentry_sdk.start_transaction(name="order"):
    ...     total = sum(range(10))
    """
    identifier = "evprof"

    def __init__(self, slow: Optional[float] = None, on_error: bool = True, every: float = 60.0, folder: Optional[str] = None,
                 on_snapshot: Optional[Callable[[_watch.Snapshot], object]] = None) -> None:
        self._options = _watch.Options(slow, on_error, every, folder, on_snapshot)
        self._paths: Dict[str, str] = {}

    @staticmethod
    def setup_once() -> None:
        """Called by Sentry."""
        _wrap_spans(_tracing.Span, _arguments_of_span)
        _wrap_spans(_tracing.Transaction, _arguments_of_transaction)
        needs("sentry_sdk.scope", "evprof.sentry", "sentry-sdk").add_global_event_processor(_process)

    def _path(self, event: Any) -> Optional[str]:
        trace = event.get("contexts", {}).get("trace", {}).get("trace_id", "")
        is_transaction = event.get("type") == "transaction"
        name = event.get("transaction") or "(no transaction)"
        seconds, failed = _time_of(event), _has_failed(event)
        path = None
        if _watch.is_due(self._options, seconds, failed):
            path = _watch.take(self._options, name, seconds, failed)
            if path is not None and trace and not is_transaction:
                if len(self._paths) >= _MOST_TRACES:
                    self._paths.pop(next(iter(self._paths), ""), None)
                self._paths[trace] = path
            path = path or self._paths.get(trace)
        if is_transaction:
            self._paths.pop(trace, None)
        return path

    def add_path(self, event: Any) -> None:
        """Adds the path of a snapshot to the event, if there is a reason for one."""
        path = self._path(event)
        if path is not None:
            event.setdefault("tags", {})[TAG] = path
            event.setdefault("contexts", {})["evprof"] = {"snapshot": path}


def _time_of(event: Any) -> float:
    """Seconds of a transaction; errors have none."""
    begin, end = event.get("start_timestamp"), event.get("timestamp")
    if event.get("type") != "transaction" or not hasattr(begin, "timestamp") or not hasattr(end, "timestamp"):
        return 0.0
    return float((end - begin).total_seconds())


def _has_failed(event: Any) -> bool:
    if event.get("type") == "transaction":
        return event.get("contexts", {}).get("trace", {}).get("status") in _FAILED
    return event.get("type") is None and (event.get("level") in ("error", "fatal") or "exception" in event)


def _process(event: Any, hint: Any) -> Any:
    integration = _sdk.get_client().get_integration(Integration)
    if integration is not None and recording._begin is not None:
        try:
            integration.add_path(event)
        except Exception:  # the event is sent all the same
            _log.warning("evprof: an event of Sentry", exc_info=True)
    return event


def _ids(span: Any) -> Dict[str, Any]:
    arguments = {"trace_id": span.trace_id, "span_id": span.span_id}
    if span.parent_span_id:
        arguments["parent_id"] = span.parent_span_id
    return arguments


def _arguments_of_span(span: Any) -> Any:
    arguments = _ids(span)
    if span.description:
        arguments["description"] = span.description
    return span.op or "span", arguments


def _arguments_of_transaction(span: Any) -> Any:
    return span.name or span.op or "transaction", _ids(span)


def _wrap_spans(kind: Any, describe: Callable[[Any], Any]) -> None:
    """Sentry has no hook for the begin and the end of a span. Subclasses that record nothing are left alone."""
    init, finish = kind.__init__, kind.finish

    @functools.wraps(init)
    def begin(self: Any, *arguments: Any, **keywords: Any) -> None:
        init(self, *arguments, **keywords)
        if type(self) is kind and recording._begin is not None and _sdk.get_client().get_integration(Integration):
            name, values = describe(self)
            _spans.begin(values["span_id"], name, values)

    @functools.wraps(finish)
    def end(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if recording._begin is not None:
            _spans.end(self.span_id)
        return finish(self, *arguments, **keywords)

    kind.__init__, kind.finish = begin, end
