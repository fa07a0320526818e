"""ask_metrics.py PORT SOCKET LIBRARY GATE: what a daemon answers at /metrics, of a process that is recorded meanwhile. Prints "right", or what is wrong.
"""
import os
import socket
import subprocess
import sys
import time

port, daemon, library, gate = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
GET = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port


def ask(request=GET):
    with socket.create_connection(("127.0.0.1", port), 10) as stream:
        stream.sendall(request)
        answer = b""
        while True:
            part = stream.recv(65536)
            if not part:
                return answer.decode()
            answer += part


def expect(what, got, wanted):
    if got != wanted:
        print("%s: %r, not %r" % (what, got, wanted))
        sys.exit(1)


def await_metric(line):
    until = time.monotonic() + 30
    while True:
        text = ask()
        if line in text.split("\r\n\r\n", 1)[1].split("\n"):
            return text
        if time.monotonic() > until:
            print("no %s in %s" % (line, text))
            sys.exit(1)
        time.sleep(0.1)


head, text = await_metric("evprof_processes 0").split("\r\n\r\n", 1)
expect("status", head.split("\r\n")[0], "HTTP/1.1 200 OK")
expect("length", "Content-Length: %d" % len(text) in head, True)
expect("another place", ask(GET.replace(b"/metrics", b"/")).split()[1], "404")
expect("another host", ask(GET.replace(b"127.0.0.1", b"evil.example")).split()[1], "403")
expect("another method", ask(GET.replace(b"GET", b"POST")).split()[1], "405")
expect("garbage", ask(b"\xff\xfe garbage\r\n\r\n").split()[1], "400")
expect("a zero", ask(b"\0" + GET), "")
try:
    expect("an endless request", ask(b"x" * 4096), "")
except ConnectionResetError:
    pass

os.mkfifo(gate)
program = subprocess.Popen(
    [sys.executable, "-c", "import sys\ndef leaf(): pass\nfor i in range(1000): leaf()\nopen(sys.argv[1]).read()", gate],
    env=dict(os.environ, EVPROF_SOCKET=daemon, EVPROF_EVENTS="call", LD_PRELOAD=library))
silent = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(40)]
text = await_metric("evprof_processes 1")
prefix = 'evprof_process_lost_events_total{pid="%d",program="' % program.pid
expect("the process", sum(line.startswith(prefix) and line.endswith(" 0") for line in text.split("\n")), 1)
with open(gate, "w"):
    pass
expect("the program", program.wait(), 0)
await_metric("evprof_processes 0")
time.sleep(6)
until = time.monotonic() + 20
while silent and time.monotonic() < until:
    silent[-1].settimeout(max(0.1, until - time.monotonic()))
    try:
        expect("a silent connection", silent.pop().recv(1), b"")
    except ConnectionResetError:
        pass
expect("silent connections that are still open", len(silent), 0)
print("right")
