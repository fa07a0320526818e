"""serve_load.py LIBRARY ROUTES SERVER...: starts a server, with LIBRARY preloaded ("-": none), and sends it requests, for test_services.c.

ROUTES: a JSON object, of each route the number of requests ({"items": 200}); they are sent by four threads in an order that mixes
them, as /items/0, /items/1, ... Of the words of SERVER, FD is the number of a listening socket. The server is ended by SIGTERM when all
answers are there and, where SNAPSHOT_OF is a route ("slow"), the service has noted a snapshot of such a request. Prints an object for
each request: its path, status, and when it was sent and answered, by CLOCK_MONOTONIC. Status: that of the server.
"""
import http.client
import json
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time

SECONDS = 150


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    begin = now()
    try:
        connection.request("GET", path + "?secret=%d" % begin)
        answer = connection.getresponse()
        answer.read()
        return {"asked": path, "status": answer.status, "begin": begin, "end": now()}
    finally:
        connection.close()


def run(port, paths, rows):
    while True:
        try:
            path = paths.get_nowait()
        except queue.Empty:
            return
        rows.append(ask(port, path))


def load(port, routes):
    paths, rows, threads = queue.Queue(), [], []
    every = ["/%s/%d" % (route, number) for route in routes for number in range(routes[route])]
    random.Random(18).shuffle(every)
    for path in every:
        paths.put(path)
    for _ in range(4):
        threads.append(threading.Thread(target=run, args=(port, paths, rows)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if len(rows) != len(every):
        sys.exit("%d answers to %d requests" % (len(rows), len(every)))
    return rows


def wait_for_snapshot(route):
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        with open(os.environ["SEEN"]) as file:
            if '"GET /%s/' % route in file.read():
                return
        time.sleep(0.05)
    sys.exit("the service took no snapshot of /%s/" % route)


def main(library, routes, *words):
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    environment = dict(os.environ, **({"LD_PRELOAD": library} if library != "-" else {}))
    command = [word.replace("FD", str(listening.fileno())) for word in words]
    server = subprocess.Popen(command, env=environment, pass_fds=[listening.fileno()], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        rows = load(listening.getsockname()[1], json.loads(routes))
        if os.environ.get("SNAPSHOT_OF"):
            wait_for_snapshot(os.environ["SNAPSHOT_OF"])
        for row in rows:
            print(json.dumps(row))
    finally:
        server.send_signal(signal.SIGTERM)
        status = server.wait(SECONDS)
    sys.stdout.flush()
    sys.exit(0 if status == -signal.SIGTERM else status)  # uvicorn ends by the signal that it got


main(*sys.argv[1:])
