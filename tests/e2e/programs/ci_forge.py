"""Runs the GitHub action and the GitLab template as their forges do, on two branches of a small repository. For test_ci.c.

    ci_forge.py github|gitlab FOLDER WHEEL PYTHON

FOLDER has action.yml and gitlab.yml. Their steps are taken from the YAML and run by a real shell; a server on this machine stands in
for the forge's interface of comments, and nothing else is replaced. Prints one line for each thing that works.
"""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from ruamel.yaml import YAML

APP = """
def query():
    return 1

def main():
    for _ in range(%d):
        query()

main()
"""
TOKEN = "a-token"


class Forge(http.server.ThreadingHTTPServer):
    """Comments of one pull or merge request. The first page is full of others'."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.comments = {number: "somebody's %d" % number for number in range(1, 101)}
        self.requests = []
        self.refuses = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def ours(self):
        return [body for body in self.comments.values() if body.startswith("<!-- evprof: ")]


class Answers(http.server.BaseHTTPRequestHandler):
    def answer(self):
        forge = self.server
        url = urllib.parse.urlsplit(self.path)
        allowed = TOKEN in (self.headers.get("PRIVATE-TOKEN"), (self.headers.get("Authorization") or "")[len("Bearer "):])
        length = int(self.headers.get("Content-Length") or 0)
        value = json.loads(self.rfile.read(length)) if length else None
        forge.requests.append((self.command, url.path))
        if forge.refuses or not allowed:
            return self.send_error(403)
        result = self.result(forge, url, value)
        if result is None:
            return self.send_error(404)
        data = json.dumps(result).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def result(self, forge, url, value):
        lists = ("/repos/owner/app/issues/7/comments", "/projects/12/merge_requests/7/notes")
        edits = (r"/repos/owner/app/issues/comments/(\d+)$", r"/projects/12/merge_requests/7/notes/(\d+)$")
        if self.command == "GET" and url.path in lists:
            query = urllib.parse.parse_qs(url.query)
            count, page = int(query["per_page"][0]), int(query["page"][0])
            every = [{"id": number, "body": body} for number, body in forge.comments.items()]
            return every[count * (page - 1):count * page]
        if self.command == "POST" and url.path in lists:
            number = 1000 + len(forge.comments)
            forge.comments[number] = value["body"]
            return {"id": number}
        for pattern, method in zip(edits, ("PATCH", "PUT")):
            found = re.match(pattern, url.path)
            if found and self.command == method and int(found.group(1)) in forge.comments:
                forge.comments[int(found.group(1))] = value["body"]
                return {"id": int(found.group(1))}
        return None

    do_GET = do_POST = do_PATCH = do_PUT = answer

    def log_message(self, *_):
        pass


def git(folder, *words):
    subprocess.run(("git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e@localhost") + words, check=True,
                   stdout=subprocess.DEVNULL)


def commit(folder, branch, calls):
    git(folder, "checkout", "-q", "-B", branch)
    with open(os.path.join(folder, "app.py"), "w") as file:
        file.write(APP % calls)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", branch)
    return subprocess.check_output(("git", "-C", folder, "rev-parse", "HEAD"), universal_newlines=True).strip()


def repository(work):
    """A repository with branches, and a clone of one commit of each as a forge's job has it. Returns the commits."""
    origin = os.path.join(work, "origin")
    os.mkdir(origin)
    git(origin, "init", "-q")
    commits = {branch: commit(origin, branch, calls) for branch, calls in (("main", 100), ("slow", 160), ("same", 100))}
    with open(os.path.join(origin, "app.py"), "w") as file:
        file.write("raise SystemExit(3)\n")
    git(origin, "checkout", "-q", "-B", "broken")
    git(origin, "commit", "-q", "-a", "-m", "broken")
    for branch in ("main", "slow", "same", "broken"):
        subprocess.run(("git", "clone", "-q", "--depth=1", "--branch", branch, "file://" + origin, os.path.join(work, branch)), check=True)
    return commits


def evaluate(text, inputs):
    """The expressions of the action. Only what is in it is known."""
    def one(found):
        expression = re.sub(r"inputs\.(\w+)", r"inputs['\1']", found.group(1)).replace("&&", " and ").replace("||", " or ")
        return str(eval(expression, {"inputs": inputs}))
    return re.sub(r"\$\{\{ *(.*?) *\}\}", one, text)


def github(folder, work, branch, base, settings, environment):
    action = YAML(typ="safe").load(open(os.path.join(folder, "action.yml")))
    inputs = {name: one.get("default") for name, one in action["inputs"].items()}
    inputs.update(settings, base=base, token=TOKEN)
    event = os.path.join(work, "event.json")
    with open(event, "w") as file:
        json.dump({"pull_request": {"number": 7}}, file)
    out = ""
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash" and "${{" not in step["run"], step
        variables = {name: evaluate(value, inputs) for name, value in step["env"].items()}
        script = os.path.join(work, "step.sh")
        with open(script, "w") as file:
            file.write(step["run"])
        done = subprocess.run(("bash", "--noprofile", "--norc", "-eo", "pipefail", script), cwd=os.path.join(work, branch),
                              env=dict(environment, GITHUB_EVENT_PATH=event, GITHUB_REPOSITORY="owner/app",
                                       GITHUB_API_URL=environment["FORGE"], RUNNER_TEMP=work,
                                       GITHUB_STEP_SUMMARY=os.path.join(work, "summary.md"), **variables),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        out += done.stdout
        if done.returncode:
            break
    return done.returncode, out


def gitlab(folder, work, branch, base, settings, environment):
    job = YAML(typ="safe").load(open(os.path.join(folder, "gitlab.yml")))[".evprof"]
    variables = dict(job["variables"])
    variables.update(("PROFILE_" + name.upper(), value) for name, value in settings.items())
    done = subprocess.run(("sh", "-e", "-c", "\n".join(job["script"])), cwd=os.path.join(work, branch),
                          env=dict(environment, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, CI_MERGE_REQUEST_IID="7", CI_PROJECT_ID="12",
                                   CI_API_V4_URL=environment["FORGE"], PROFILE_TOKEN=TOKEN, **variables),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode, done.stdout


def main(run, folder, wheel, python):
    work = tempfile.mkdtemp(prefix="forge-", dir=os.getcwd())
    base = repository(work)["main"]
    forge = Forge()
    # No PYTHONPATH but the job's, and none of this test's variables.
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment.update(FORGE="http://127.0.0.1:%d" % forge.server_address[1], PIP_NO_INDEX="1", PIP_NO_DEPS="1")
    counted = "--include */tree/* --threshold time=100s --threshold cumtime=100s"  # whatever the machine is at
    settings = {"run": '"%s" app.py && test -z "${PROFILE_TOKEN+x}${PYTHONPATH+x}"' % python, "package": wheel, "python": python,
                "prepare": "echo prepared in $(basename $PWD)", "diff": counted + " --fail-on calls",
                "check": "--max-calls app:query=150 --max-lost 0"}

    def step(name, branch, status, wanted, **more):
        got, out = run(folder, work, branch, base, dict(settings, **more), environment)
        assert got == status, (name, got, out)
        for text in wanted:
            assert text in out, (name, text, out)
        print("works:", name, flush=True)
        return out

    step("a regression fails", "slow", 1, ("| **100 → 160 (+60 %)** |", "prepared in tree", "a limit is exceeded"), check="")
    assert len(forge.ours()) == 1 and "`query` `app.py:2` | **100 → 160 (+60 %)**" in forge.ours()[0], forge.ours()
    print("works: the comment has the table", flush=True)
    posted = [method for method, _ in forge.requests]
    assert posted == ["GET", "GET", "POST"], forge.requests
    step("no regression passes", "same", 0, ("no limit is exceeded", "0 of "))
    assert len(forge.ours()) == 1 and "100 → 160" not in forge.ours()[0], forge.ours()
    assert [method for method, _ in forge.requests[3:]] == ["GET", "GET", "PUT" if run is gitlab else "PATCH"], forge.requests
    print("works: the comment is replaced", flush=True)
    step("a limit fails", "slow", 1, ("FAILED --max-calls app:query=150: 160 calls", "100 → 160"), diff=counted)
    assert os.path.getsize(os.path.join(work, "slow", "evprof-ci", "limits.xml")) > 0
    for name in ("base.evp", "head.evp", "comment.md"):
        assert os.path.getsize(os.path.join(work, "slow", "evprof-ci", name)) > 0, name
    step("another title has another comment", "same", 0, (), title="second")
    assert len(forge.ours()) == 2, forge.ours()
    step("a command that fails is an error", "broken", 2, ("status 3",))
    out = step("a missing quote is an error", "same", 2, ("No closing quotation: --max-calls 'app",), check="--max-calls 'app")
    assert "recording" not in out, out
    forge.refuses = True
    step("no right to comment is no failure", "same", 0, ("the comment could not be written: HTTP Error 403",))
    forge.shutdown()


main({"github": github, "gitlab": gitlab}[sys.argv[1]], *sys.argv[2:])
