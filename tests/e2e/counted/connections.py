"""Sockets, selectors, a request over a socket pair, queues, urls, addresses, cookies and calendars."""
import calendar
import collections
import datetime
import http.client
import http.cookies
import io
import ipaddress
import queue
import sched
import selectors
import socket
import socketserver
import string
import urllib.parse
import uuid


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))


class Zone(datetime.tzinfo):
    def utcoffset(self, when):
        return datetime.timedelta(hours=2)

    def dst(self, when):
        return datetime.timedelta(0)

    def tzname(self, when):
        return "TWO"


class Shouting(string.Formatter):
    def format_field(self, value, spec):
        return value.upper() if spec == "up" else super().format_field(value, spec)


def requested():
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        far.shutdown(socket.SHUT_WR)
        Answers(near, ("", 0), None)
        near.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(far)
        response.begin()
        return response.status, response.read()


def polled():
    with selectors.DefaultSelector() as selector:
        near, far = socket.socketpair()
        with near, far:
            selector.register(near, selectors.EVENT_READ, "data")
            far.send(b"x")
            found = [(key.data, mask) for key, mask in selector.select(1)]
            selector.unregister(near)
        return found


def queued():
    waiting = queue.PriorityQueue()
    for n in (3, 1, 2):
        waiting.put_nowait((n, str(n)))
    done = []
    clock = iter(range(100))
    plan = sched.scheduler(lambda: next(clock), lambda seconds: None)
    for n in range(3):
        plan.enter(n, n, done.append, (n,))
    plan.run()
    return [waiting.get_nowait() for _ in range(3)], done


def addressed():
    parts = urllib.parse.urlsplit("https://user@example.org:8080/a%20b/;p?x=1&y=%C3%A9#f")
    network = ipaddress.ip_network("192.0.2.0/29")
    return (parts.port, urllib.parse.parse_qs(parts.query), urllib.parse.urljoin("http://a/b/c", "../d"),
            urllib.parse.quote("a b/é"), [str(host) for host in network.hosts()], ipaddress.ip_address("::1") in
            ipaddress.ip_network("::/64"), uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), str(uuid.UUID(int=5)))


def dated():
    when = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=Zone())
    cookie = http.cookies.SimpleCookie("a=b; c=\"d e\"")
    return (when.isoformat(), when.astimezone(datetime.timezone.utc).strftime("%Y %j"), calendar.TextCalendar().formatmonth(2024, 2),
            datetime.datetime.strptime("2024-01-02", "%Y-%m-%d"), sorted(cookie.output().splitlines()),
            Shouting().format("{0:up} {name!r:>8}", "x", name="y"), collections.ChainMap({"a": 1}, {"b": 2})["b"],
            io.TextIOWrapper(io.BytesIO(b"a\nb\n"), encoding="utf-8").readlines())


def main():
    return [(requested(), polled(), queued(), addressed(), dated()) for _ in range(3)]
