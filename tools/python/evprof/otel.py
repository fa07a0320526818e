"""OpenTelemetry's spans in evprof's timeline, and a snapshot for those that were slow or have failed. docs/services.md describes it.

    provider = TracerProvider()
    provider.add_span_processor(evprof.otel.SpanProcessor(slow=1.0))

For opentelemetry-sdk 1.33 and later: pip install evprof[otel].
"""
import logging
import time
import weakref
from typing import Any, Callable, Dict, Optional

from . import _watch, recording
from ._needs import needs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span
    from opentelemetry.sdk.trace import SpanProcessor as _Base
    from opentelemetry.trace import StatusCode
else:
    _Base = needs("opentelemetry.sdk.trace", "evprof.otel", "opentelemetry-sdk").SpanProcessor
    StatusCode = needs("opentelemetry.trace", "evprof.otel", "opentelemetry-sdk").StatusCode

#: The attribute of a span that has the path of its snapshot.
ATTRIBUTE = "evprof.snapshot"
_MOST_TRACES = 4096  # whose snapshots are remembered until their first span ends
_log = logging.getLogger("evprof")


class SpanProcessor(_Base):
    """Makes a span of evprof's of each OpenTelemetry span that is recorded, with trace_id, span_id and parent_id as arguments.

    It belongs to the thread, greenlet and task in which the OpenTelemetry span began, and ends wherever that one ends.

    slow, on_error, every, folder, on_snapshot: as for evprof.wsgi.Middleware; a span has failed if its status is ERROR. The path of the
    snapshot is the attribute "evprof.snapshot" of the span. Spans of the same trace that end later, and were slow or have failed,
    have the same path: a request has that of the query that made it slow. The attribute is set before the span ends, so it does not
    matter which processors come first; for that, the method end() of a span is wrapped where slow or on_error is set.

    >>> import evprof.otel
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> provider = TracerProvider()
    >>> provider.add_span_processor(evprof.otel.SpanProcessor(slow=1.0))
    >>> with provider.get_tracer("shop").start_as_current_span("order"):
    ...     total = sum(range(10))
    """

    def __init__(self, slow: Optional[float] = None, on_error: bool = True, every: float = 60.0, folder: Optional[str] = None,
                 on_snapshot: Optional[Callable[[_watch.Snapshot], object]] = None) -> None:
        self._options = _watch.Options(slow, on_error, every, folder, on_snapshot)
        self._spans = _watch.OpenSpans()
        self._paths: Dict[int, str] = {}

    def on_start(self, span: "Span", parent_context: "Optional[Context]" = None) -> None:
        """A span begins."""
        if recording._begin is None:
            return
        context = span.get_span_context()
        arguments = {"trace_id": "%032x" % context.trace_id, "span_id": "%016x" % context.span_id}
        if span.parent is not None:
            arguments["parent_id"] = "%016x" % span.parent.span_id
        begun = self._spans.begin((context.trace_id, context.span_id), span.name, arguments)
        if begun and (self._options.on_error or self._options.slow is not None):
            setattr(span, "end", self._end_of(span))

    def on_end(self, span: "ReadableSpan") -> None:
        """A span has ended."""
        context = span.get_span_context()
        if context is not None:
            self._spans.end((context.trace_id, context.span_id))

    def shutdown(self) -> None:
        """Waits up to ten seconds for a snapshot that is being written."""
        _watch.wait(10)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Waits for a snapshot that is being written. Returns whether it is."""
        return _watch.wait(timeout_millis / 1000)

    def _end_of(self, span: "Span") -> Callable[..., None]:
        """The method end() of a span, which cannot get attributes any more when on_end() is called."""
        reference, end = weakref.ref(span), type(span).end

        def wrapper(end_time: Optional[int] = None) -> None:
            live = reference()
            if live is None:
                return
            if live.is_recording():
                try:
                    self._end(live, end_time)
                except Exception:  # of an SDK that is unknown to us; the span ends all the same
                    _log.warning("evprof: the end of an OpenTelemetry span", exc_info=True)
            end(live, end_time)
        return wrapper

    def _end(self, span: "Span", end_time: Optional[int]) -> None:
        context = span.get_span_context()
        self._spans.end((context.trace_id, context.span_id))
        seconds = ((end_time or time.time_ns()) - (span.start_time or 0)) / 1e9
        path = self._path(context.trace_id, span.name, seconds, span.status.status_code is StatusCode.ERROR)
        if path is not None:
            span.set_attribute(ATTRIBUTE, path)
        if span.parent is None or span.parent.is_remote:
            self._paths.pop(context.trace_id, None)

    def _path(self, trace: int, name: str, seconds: float, failed: bool) -> Optional[str]:
        if not _watch.is_due(self._options, seconds, failed):
            return None
        path = _watch.take(self._options, name, seconds, failed)
        if path is None:
            return self._paths.get(trace)
        if len(self._paths) >= _MOST_TRACES:
            self._paths.pop(next(iter(self._paths), 0), None)
        self._paths[trace] = path
        return path
