"""drive_store.py BUILD: evprof ship to a store. First to a server that signs each request again by botocore, then to moto's S3, which is
killed and started again. Needs moto and boto3. For test_ship.c. Prints "stored", or "libcurl: ..." where libcurl cannot do it.
"""
import hashlib
import http.server
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import moto_server

build = sys.argv[1]
tool = os.path.join(build, "evprof")
ID, SECRET, TOKEN, REGION = "AKIDNOTSHOWN", "secret/not+shown", "token/not+shown==", "eu-test-1"
NAMES = ["plain.evp", "a b+c~d(1).evp", "übung.evp", "%41=&?#.evp"]
SIGNED = {"host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"}
started = []


def fail(what):
    sys.exit(what)


def wait_for(what, holds):
    end = time.monotonic() + 120
    while not holds():
        if time.monotonic() > end:
            fail("it does not happen: " + what)
        time.sleep(0.05)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def set_environment(endpoint):
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ.update(AWS_ACCESS_KEY_ID=ID, AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN=TOKEN, AWS_REGION=REGION,
                      AWS_ENDPOINT_URL=endpoint)


def start_ship(folder, store, *options):
    process = subprocess.Popen([tool, "ship", "--retry", "0.1", *options, folder, store], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    started.append(process)
    return process


def ended(process, status, last=None):
    """What it wrote. No key is in it, nor in its command line, which is the driver's."""
    text = process.communicate(timeout=120)[1].decode()
    if "libcurl" in text and process.returncode == 2:
        print("libcurl:", text)
        sys.exit(0)
    if process.returncode != status or (last and text.splitlines()[-1] != "evprof ship: " + last):
        fail("evprof ship ends with %d: %s" % (process.returncode, text))
    for key in (ID, SECRET, TOKEN):
        if key in text:
            fail("a key is shown: " + text)
    return text


# --- a server that knows the keys ---

def signature_of(handler):
    """The signature that botocore gives the request, and which headers are in it."""
    said = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, ?"
                        r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", handler.headers["Authorization"])
    if not said or said.groups()[:3] != (ID, REGION, "s3"):
        fail("the authorization is " + handler.headers["Authorization"])
    names = said[4].split(";")
    request = botocore.awsrequest.AWSRequest("PUT", "http://%s%s" % (handler.headers["Host"], handler.path),
                                             {name: handler.headers[name] for name in names})
    request.context["timestamp"] = handler.headers["x-amz-date"]
    auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(ID, SECRET, TOKEN), "s3", REGION)
    return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request), said[5], set(names)


class Checking(http.server.BaseHTTPRequestHandler):
    """Takes what is signed right. The first request of each key is answered otherwise: by the answers in turn."""
    protocol_version = "HTTP/1.1"
    answers, objects, tried, wrong, slow = [], {}, [], [], False

    def do_PUT(self):
        right, said, names = signature_of(self)
        path = urllib.parse.urlsplit(self.path).path
        length = int(self.headers["Content-Length"])
        if right != said or not SIGNED <= names or self.headers["x-amz-content-sha256"] != "UNSIGNED-PAYLOAD":
            self.wrong.append("%s: %s, not %s, over %s" % (self.path, said, right, names))
        if self.slow:
            self.rfile.read(1)
            self.tried.append(path)
            time.sleep(60)
        body = self.rfile.read(length)
        first = path not in self.tried
        self.tried.append(path)
        status = self.answers.pop(0) if first and self.answers else 200
        if status == 200:
            self.objects.setdefault(path, []).append(body)
        self.send_response(status)
        if status == 307:
            self.send_header("Location", "/stolen")
        answer = b"" if status == 200 else ("<Error><Code>%s</Code><Message>%s %s</Message></Error>" % (
            "SignatureDoesNotMatch" if status == 403 else "SlowDown", ID, SECRET)).encode()
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *ignored):
        pass


def judge_signatures(server):
    """Names of all kinds arrive under keys that botocore would give them; answers are failures with their code, and show no key."""
    os.mkdir("names")
    for name in NAMES:
        shutil.copy("trace.evp", os.path.join("names", name))
    with open("names/large.evp", "wb") as file:
        file.write(os.urandom(3 << 20))
    Checking.answers = [307, 403, 503]
    text = ended(start_ship("names", "s3://bucket/{host}/x {name}", "--once"), 0,
                 "%d shipped, 3 tries failed, 0 removed before, 0 left" % (len(NAMES) + 1))
    for line in ("HTTP 307, SlowDown (AWS_REGION?)", "HTTP 403, SignatureDoesNotMatch", "HTTP 503, SlowDown"):
        if line not in text:
            fail("%s is not in %s" % (line, text))
    if Checking.wrong:
        fail("signed otherwise by botocore: %s" % Checking.wrong)
    keys = {"/bucket/%s/%s" % (socket.gethostname(), urllib.parse.quote("x " + name, safe="-._~")): [content("names/" + name)]
            for name in NAMES + ["large.evp"]}
    if Checking.objects != keys:
        fail("arrived is %s" % {key: len(bodies) for key, bodies in Checking.objects.items()})
    ended(start_ship("names", "s3://bucket/{host}/x {name}", "--once"), 0, "0 shipped, 0 tries failed, 0 removed before, 0 left")


def judge_bounds():
    """What takes too long, what is too large, and SIGTERM amid a PUT; then it arrives under the plain prefix, redacted."""
    os.mkdir("slow")
    shutil.copy("names/large.evp", "slow")
    Checking.slow, Checking.tried[:] = True, []
    shipper = start_ship("slow", "s3://bucket")
    wait_for("a PUT", lambda: Checking.tried)
    shown = content("/proc/%d/cmdline" % shipper.pid).decode()
    begin = time.monotonic()
    shipper.terminate()
    ended(shipper, 1)
    if time.monotonic() - begin > 10 or ID in shown or SECRET in shown:
        fail("SIGTERM took %.1f s; the command line is %s" % (time.monotonic() - begin, shown))
    shipper = start_ship("slow", "s3://bucket", "--timeout", "0.5")
    line = shipper.stderr.readline().decode()
    shipper.terminate()
    ended(shipper, 1)
    if "evprof ship: s3://bucket/large.evp: " not in line or "timed out" not in line:
        fail("after the timeout: " + line)
    Checking.slow = False
    with open("slow/huge.evp", "wb") as file:
        file.truncate((5 << 30) + 1)
    shipper = start_ship("slow", "s3://bucket/pre/")
    line = ""
    while "at most 5 GiB; a command sends more: evprof ship FOLDER aws s3 cp" not in line:
        line = shipper.stderr.readline().decode() or fail("a huge trace is not reported")
    wait_for("the other arrives", lambda: "/bucket/pre/large.evp" in Checking.objects)
    shipper.terminate()
    if " 1 left" not in ended(shipper, 1):
        fail("the huge trace is not left")
    os.mkdir("secret")
    shutil.copy("trace.evp", "secret/shop7.evp")
    ended(start_ship("secret", "s3://bucket/{host}", "--once", "-e", "shop7"), 0)
    [key] = [key for key in Checking.objects
             if re.match("/bucket/%s/(%%2A){5}-[0-9a-f]{16}[.]evp\\Z" % re.escape(socket.gethostname()), key)]
    body = Checking.objects[key][0]
    if b"shop7" in body or body == content("trace.evp"):
        fail("the copy is not redacted")


def judge_certificates():
    """A server is believed with the certificate of an authority only."""
    if not shutil.which("openssl"):
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj",
                    "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Checking)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *ignored: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    set_environment("https://127.0.0.1:%d" % server.server_address[1])
    os.mkdir("safe")
    shutil.copy("trace.evp", "safe/safe.evp")
    shipper = start_ship("safe", "s3://bucket")
    line = shipper.stderr.readline().decode()
    shipper.terminate()
    ended(shipper, 1)
    if "certificate" not in line or "(AWS_CA_BUNDLE?)" not in line or "/bucket/safe.evp" in Checking.tried:
        fail("a certificate that nobody signed: " + line)
    os.environ["AWS_CA_BUNDLE"] = "cert.pem"
    ended(start_ship("safe", "s3://bucket", "--once"), 0, "1 shipped, 0 tries failed, 0 removed before, 0 left")
    if Checking.objects["/bucket/safe.evp"] != [content("trace.evp")] or Checking.wrong:
        fail("with its certificate: %s" % Checking.wrong)


# --- moto ---

def start_moto(port=0):
    """What it has goes with it. Returns it, its port, and a client."""
    server, port, client = moto_server.start("moto.log", port)
    started.append(server)
    return server, port, client


def stored(client):
    """The hash of each object."""
    keys = [one["Key"] for one in client.list_objects_v2(Bucket="traces").get("Contents", [])]
    return {key: hashlib.sha256(client.get_object(Bucket="traces", Key=key)["Body"].read()).hexdigest() for key in keys}


def of_folder(names):
    return {"host=%s/%s" % (socket.gethostname(), name): hashlib.sha256(content("traces/" + name)).hexdigest() for name in names}


def program():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.update(EVPROF_SOCKET=os.path.abspath("socket"), LD_PRELOAD=os.path.join(build, "libevprof.so"))
    subprocess.run([sys.executable, "-c", "pass"], env=environment, stderr=subprocess.DEVNULL, check=True)


def judge_moto():
    """A daemon ships its traces. Its store is killed and comes again: what arrived is not sent again, and all the rest arrives."""
    server, port, client = start_moto()
    set_environment("http://127.0.0.1:%d" % port)
    os.mkdir("traces")
    daemon = subprocess.Popen([os.path.join(build, "evprof-collector"), "--socket", "socket", "--output-dir", "traces", "--ship",
                               "s3://traces/host={host}"], stderr=open("daemon.log", "w"))
    started.append(daemon)
    wait_for("the socket", lambda: os.path.exists("socket"))
    for _ in range(3):
        program()
    wait_for("three traces", lambda: len(stored(client)) == 3)
    before = [name for name in os.listdir("traces") if name.endswith(".evp")]
    if stored(client) != of_folder(before):
        fail("arrived is %s" % stored(client))
    server.kill()
    server.wait()
    program()
    wait_for("a failure", lambda: "was not shipped (try 1)" in content("daemon.log").decode())
    server, port, client = start_moto(port)
    program()
    wait_for("two traces", lambda: len(stored(client)) == 2)
    daemon.terminate()
    if daemon.wait():
        fail("the daemon ends with %d" % daemon.returncode)
    after = [name for name in os.listdir("traces") if name.endswith(".evp") and name not in before]
    if stored(client) != of_folder(after):
        fail("after the restart arrived is %s" % stored(client))
    puts = re.findall(r'"PUT /traces/host=(\S+) HTTP/1.1" 200', content("moto.log").decode())
    if len(puts) != 5 or len(set(puts)) != 5 or "5 shipped" not in content("daemon.log").decode():
        fail("twice: %s; %s" % (puts, content("daemon.log").decode()))
    text = ended(start_ship("names", "s3://nothing", "--once"), 0)  # all of it has arrived elsewhere
    os.unlink("names/.evprof-shipped")
    shipper = start_ship("names", "s3://nothing")
    for _ in range(len(NAMES) + 1):
        text = shipper.stderr.readline().decode()
        if "HTTP 404, NoSuchBucket" not in text or "was not shipped (try 1)" not in shipper.stderr.readline().decode():
            fail("a bucket that is not there: " + text)
    shipper.terminate()
    if not re.search(r"0 shipped, \d+ tries failed, 0 removed before, %d left$" % (len(NAMES) + 1), ended(shipper, 1).rstrip()):
        fail("failures are not counted")


def main():
    subprocess.run([tool, "run", "-q", "-o", "trace.evp", sys.executable, "-c", "def shop7(): pass\nshop7()"], check=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Checking)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    set_environment("http://127.0.0.1:%d/" % server.server_address[1])
    judge_signatures(server)
    judge_bounds()
    judge_certificates()
    judge_moto()
    os.chdir("/")
    print("stored")


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    try:
        main()
    finally:
        for one in started:
            if one.poll() is None:
                one.kill()
                one.wait()
