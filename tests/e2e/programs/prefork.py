"""prefork.py BUILD SERVER...: a prefork server under a daemon of evprof that keeps the last ten minutes, for test_services.c.

BUILD: the folder of evprof; of the words of SERVER, ADDRESS is where it listens. The server gets 40 requests (with CELERY in the
environment: tasks, which the file "ask.py" sends), so its workers are replaced; SIGHUP and ten more, where it takes that; more until
evprof status has a worker; a snapshot of all of it; SIGTERM. Prints an object: requests that were answered, pids of workers, statuses of the server and of the snapshot, and what
evprof status had of losses. The traces are in the folder traces.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

SECONDS = 100
# A server takes a message as soon as it has its name, written or not.
ASK = """
import os, sys
os.environ["CELERY"] = "1"
import preforked
os.makedirs("queue/sent", exist_ok=True)
preforked.app.conf.broker_transport_options["data_folder_out"] = os.path.abspath("queue/sent")
results = [preforked.app.send_task("work") for _ in range(int(sys.argv[1]))]
for name in os.listdir("queue/sent"):
    os.rename("queue/sent/" + name, "queue/messages/" + name)
print(*[result.get(timeout=%d) for result in results])
""" % SECONDS


def ask(address):
    ends = time.monotonic() + SECONDS
    while True:
        try:
            return int(urlopen("http://%s/" % address, timeout=SECONDS).read())
        except (URLError, ConnectionError):
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)


def await_bound(path):
    """Until the server has bound its queue: who binds it meanwhile may read half of the file."""
    ends = time.monotonic() + SECONDS
    while not (os.path.exists(path) and os.path.getsize(path)) and time.monotonic() < ends:
        time.sleep(0.05)


def answers(address, count, python):
    if "CELERY" not in os.environ:
        return [ask(address) for _ in range(count)]
    await_bound("queue/control/celery.exchange")
    bare = {name: value for name, value in os.environ.items() if not name.startswith("EVPROF_")}
    return [int(pid) for pid in subprocess.check_output([python, "-c", ASK, str(count)], env=bare, timeout=SECONDS).split()]


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % one.getsockname()[1]


def start_collector(build, path):
    os.mkdir("traces")
    collector = subprocess.Popen([build + "/evprof-collector", "--socket", path, "--output-dir", "traces", "--keep-last", "600s"],
                                 stdout=sys.stderr)
    ends = time.monotonic() + SECONDS
    while not os.path.exists(path) and time.monotonic() < ends:
        time.sleep(0.01)
    return collector


def recorded(build, path):
    return json.loads(subprocess.check_output([build + "/evprof", "status", "--json", "--socket", path], timeout=SECONDS))


def main(build, *words):
    path, address = os.path.abspath("evprof.sock"), free_address()
    collector = start_collector(build, path)
    environment = dict(os.environ, EVPROF_SOCKET=path, LD_PRELOAD=build + "/libevprof.so")
    server = subprocess.Popen([word.replace("ADDRESS", address) for word in words], env=environment, stdin=subprocess.DEVNULL,
                              stdout=sys.stderr)
    try:
        pids = answers(address, 40, words[0])
        if "CELERY" not in os.environ:
            server.send_signal(signal.SIGHUP)
            time.sleep(2)  # the old workers answer what they have; then new ones do
            pids += answers(address, 10, words[0])
        status = recorded(build, path)
        while len(status["processes"]) < 2 and len(pids) < 60:  # a worker is recorded from its first request on
            pids += answers(address, 1, words[0])
            status = recorded(build, path)
        program = next(process["program"] for process in status["processes"] if process["pid"] == server.pid)
        snapshot = subprocess.call([build + "/evprof", "snapshot", "--socket", path, "-o", "snapshot.evp", program], timeout=SECONDS)
    finally:
        server.terminate()
        ended = server.wait(SECONDS)
        collector.terminate()
        collector.wait(SECONDS)
    print(json.dumps({"answers": len(pids), "workers": sorted(set(pids)), "server": ended, "snapshot": snapshot,
                      "recorded": len(status["processes"]), "lost": sum(process["lost"] for process in status["processes"])}))


main(*sys.argv[1:])
