"""drive_snapshot.py URL PID FILE: has evprof serve take a snapshot of the process, all of it, and saves its trace. Prints the address of the
report, or what is wrong."""
import sys
import time
import urllib.error
import urllib.request

url, pid, to = sys.argv[1:]


def get(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.geturl(), answer.headers, answer.read()


with urllib.request.urlopen(urllib.request.Request(url + "snapshot?pid=%s&last=0" % pid, method="POST"), timeout=30) as answer:
    report = answer.geturl()
until = time.monotonic() + 60
while True:
    _, headers, body = get(report)
    if b'http-equiv="refresh"' not in body:
        break
    if time.monotonic() > until:
        print("it takes more than a minute")
        sys.exit(1)
    time.sleep(0.2)
if "sandbox" not in headers["Content-Security-Policy"]:
    print("the report may ask for the data of the page: %s" % headers["Content-Security-Policy"])
    sys.exit(1)
_, headers, body = get(report.replace(".html", ".evp"))
with open(to, "wb") as file:
    file.write(body)
print(report)
