"""judge_services.py SEEN ASKED READ: compares the spans that were read from a trace (READ) with what the service saw (SEEN) and what its
clients saw (ASKED), an object a line, for test_services.c.

Each request has one span: of its path, in the process that handled it. It begins after the request was sent and before the handler
did, and ends after the handler and before the next second is over. Its response has the client's status.
"""
import collections
import json
import sys

FAR_NS = 1000000  # how exact the trace's line through its clock records is
LATE_NS = 2000000000  # a server may answer before it says that it has
ROUTES = {"flask": "/%s/<int:number>", "fastapi": "/%s/{number}"}


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def wrong(text, *values):
    sys.exit(text % values)


def check(span, asked, handled):
    route = asked["asked"].split("/")[1]
    if span["name"] != "GET /%s/*" % route or dict(span["arguments"]) != {"method": "GET", "path": asked["asked"]}:
        wrong("the span of %s is %s", asked, span)
    if span["pid"] != handled["pid"] or "end" not in span:
        wrong("%s was handled as %s", span, handled)
    if not asked["begin"] - FAR_NS <= span["begin"] <= handled["begin"] + FAR_NS:
        wrong("the begin of %s: asked %s, handled %s", span, asked, handled)
    if not handled["end"] - FAR_NS <= span["end"] <= asked["end"] + LATE_NS:
        wrong("the end of %s: asked %s, handled %s", span, asked, handled)


def response_of(span, responses):
    """The response within a span that belongs to its thread: that of its task, if tasks take turns, is not to be known from times alone."""
    return [row for row in responses if row["pid"] == span["pid"] and row["tid"] == span["tid"] and
            span["begin"] <= row["begin"] <= row["end"] <= span["end"]]


def check_failed(span, read):
    """fastapi answers outside of its middleware, which sees the exception only."""
    if not [row for row in read if row["what"] == "mark" and row["name"] == "request failed" and row["pid"] == span["pid"] and
            span["begin"] <= row["begin"] <= span["end"] and dict(row["arguments"]) == {"error": "ValueError"}]:
        wrong("%s is not marked as failed", span)


def main(framework, seen, asked, read):
    handled = {row["path"]: row for row in rows(seen) if "path" in row}
    if framework == "fastapi" and [row["lifespan"] for row in rows(seen) if "lifespan" in row] != ["startup", "shutdown"]:
        wrong("the service did not begin and end as it does without evprof")
    asked = {row["asked"]: row for row in rows(asked)}
    spans = [row for row in rows(read) if row["what"] == "span"]
    requests = {dict(row["arguments"]).get("path"): row for row in spans if row["name"] != "response"}
    responses = [row for row in spans if row["name"] == "response"]
    if len(requests) + len(responses) != len(spans) or set(requests) != set(asked) or set(handled) != set(asked):
        wrong("%d spans of %d paths, %d responses; %d requests, %d handled", len(spans), len(requests), len(responses), len(asked),
              len(handled))
    for path, row in asked.items():
        check(requests[path], row, handled[path])
        if framework == "fastapi" and row["status"] == 500:
            check_failed(requests[path], rows(read))
            continue
        status = [dict(one["arguments"]) for one in response_of(requests[path], responses)]
        if row["status"] not in [one["status"] for one in status]:
            wrong("%s was answered by %s", row, status)
        if framework in ROUTES and ROUTES[framework] % path.split("/")[1] not in [one.get("route") for one in status]:
            wrong("the route of %s: %s", path, status)
    counted = collections.Counter(dict(row["arguments"])["status"] for row in responses)
    if counted != collections.Counter(row["status"] for row in asked.values() if framework != "fastapi" or row["status"] != 500):
        wrong("the responses are %s", counted)
    if "secret" in json.dumps(spans):
        wrong("a query is in the trace")
    total = sum(row["end"] - row["begin"] for row in requests.values()) / 1e6
    inner = sum(row["end"] - row["begin"] for row in handled.values()) / 1e6
    outer = sum(row["end"] - row["begin"] for row in asked.values()) / 1e6
    print("%d requests agree: %.0f ms in handlers, %.0f ms in spans, %.0f ms to the clients" % (len(asked), inner, total, outer))


main(*sys.argv[1:])
