"""drive_serve.py URL PID: what evprof serve answers to browsers, other sites, garbage and silence. Prints "right", or what is wrong."""
import json
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

url, pid = sys.argv[1], int(sys.argv[2])
host, token = url.split("/")[2], url.split("/")[3]
port = int(host.rsplit(":", 1)[1])


def expect(what, got, wanted):
    if got != wanted:
        print("%s: %s, not %s" % (what, got, wanted))
        sys.exit(1)


def status(path, method="GET", **headers):
    """Of a request with these headers and no others but Host."""
    headers = dict({"Host": host}, **{name.replace("_", "-"): value for name, value in headers.items()})
    with socket.create_connection(("127.0.0.1", port), 10) as stream:
        lines = ["%s %s HTTP/1.1" % (method, path)] + ["%s: %s" % pair for pair in headers.items() if pair[1] is not None]
        stream.sendall("\r\n".join(lines + ["Connection: close", "", ""]).encode())
        answer = b""
        while True:
            part = stream.recv(65536)
            if not part:
                break
            answer += part
    return int(answer.split()[1]), answer


def live(values=""):
    with urllib.request.urlopen(url + "live?" + values, timeout=10) as answer:
        return json.load(answer)


page = "/%s/" % token
wrong = "/%s/" % ("0" * 32)
for what, wanted, path, more in (
    ("the page", 200, page, {}),
    ("its script", 200, page + "serve.js", {}),
    ("another token", 404, wrong, {}),
    ("data with another token", 404, wrong + "live", {}),
    ("a part of the token", 404, page[:-2] + "/", {}),
    ("no token", 404, "/", {}),
    ("nothing behind the token", 404, page[:-1], {}),
    ("a place that is none", 404, page + "../live", {}),
    ("a file of the disk", 404, page + "report/../../etc/passwd", {}),
    ("a report that is none", 404, page + "report/9.html", {}),
    ("another host", 403, page, {"Host": "evil.example:%d" % port}),
    ("a host that begins as an address", 403, page, {"Host": "127.0.0.1.evil.example"}),
    ("a tunnel", 200, page, {"Host": "localhost:8000"}),
    ("a value that is none", 400, page + "live?pid=-1", {}),
    ("an order that is none", 400, page + "live?sort=name", {}),
    ("too many rows", 400, page + "live?rows=100000", {}),
    ("a long filter", 400, page + "live?filter=" + "x" * 600, {}),
    ("a snapshot by a link", 405, page + "snapshot?pid=%d" % pid, {}),
    ("another method", 405, page, {"method": "PUT"}),
    ("a snapshot from another site", 403, page + "snapshot?pid=%d" % pid, {"method": "POST", "Origin": "http://evil.example"}),
    ("a snapshot for another site", 403, page + "snapshot?pid=%d" % pid, {"method": "POST", "Sec_Fetch_Site": "cross-site"}),
    ("a snapshot of no process", 404, page + "snapshot?pid=1", {"method": "POST"}),
):
    expect(what, status(path, **more)[0], wanted)
expect("no host at all", status(page, Host=None)[0] in (400, 403), True)
head = status(page)[1].split(b"\r\n\r\n")[0].lower()
for wanted in (b"content-security-policy: default-src 'none'; script-src 'self'", b"referrer-policy: same-origin", b"cache-control: no-store"):
    expect("the header %s" % wanted.decode(), wanted in head, True)
expect("headers for other sites", b"access-control" in head, False)
expect("a filter", {row["function"] for row in live("filter=LEAF")["functions"]} <= {"leaf"}, True)

# Several pages that look at different functions do not mix them up.
ids = {row["function"]: row["id"] for row in live("rows=200")["functions"]}
for name, callers, callees in (("leaf", {"outer"}, set()), ("fib", {"outer", "fib"}, {"fib"}), ("outer", {"<module>"}, {"leaf", "fib"})) * 3:
    until = time.monotonic() + 10
    while True:
        answer = live("focus=%d" % ids[name])
        sides = [{row["function"] for row in answer["focus"][side]} for side in ("callers", "callees")]
        if answer["focus_counted"] and sides == [callers, callees]:
            break
        if time.monotonic() > until or (answer["focus_counted"] and not (sides[0] <= callers and sides[1] <= callees)):
            expect("callers and callees of %s" % name, sides, [callers, callees])
        time.sleep(0.1)
expect("the function", answer["focus"]["function"], "outer")

# Clients that are silent, that write garbage, and that never read do not keep the others waiting.
held = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(60)]
for i, stream in enumerate(held):
    if i % 3 == 1:
        stream.sendall(b"\0\xff garbage \r\n" * 50)
    elif i % 3 == 2:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            for _ in range(20):
                stream.sendall(("GET %slive?rows=1000&stacks=1&history=0 HTTP/1.1\r\nHost: %s\r\n\r\n" % (page, host)).encode())
        except OSError:
            pass
start = time.monotonic()
numbers = set()


def watch():
    """As a browser does."""
    for _ in range(10):
        numbers.add(live("history=0&rows=200")["number"])
        time.sleep(0.1)


watchers = [threading.Thread(target=watch) for _ in range(8)]
for watcher in watchers:
    watcher.start()
for watcher in watchers:
    watcher.join()
expect("refreshes go on", len(numbers) > 1, True)
expect("80 answers in less than 20 s", time.monotonic() - start < 20, True)
for stream in held:
    stream.close()
print("right")
