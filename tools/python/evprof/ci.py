"""python -m evprof.ci: records a command on two revisions of a git repository, compares the traces, and comments the result.

tools/packaging/ci has a GitHub action and a GitLab template that call it.

Each revision is checked out into a folder of its own, at the same path for both, so that files match. The command is run there by
`sh -e`, after that of --prepare, which is not recorded. PYTHONHASHSEED=0 and PYTHONDONTWRITEBYTECODE=1 are set unless the environment
has them: both runs do the same then. The folder of --output has base.evp, head.evp, comment.md and, with --check, limits.xml.

Exit status: 0; 1 if a limit of --check or --diff does not hold; 2 if something could not be recorded or compared. Where the command
fails on the base only, nothing is compared, and --check alone decides.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ._paths import find

_FINE, _LIMIT, _FAILED = 0, 1, 2
_REGRESSION = 4  # of evprof diff --fail-on
_BODY_MAX = 60000  # characters; GitHub takes 65536
_PAGES_MAX = 20


class _Failure(Exception):
    """One line for the user."""


class _Forge(NamedTuple):
    """Where the comments of a pull or merge request are."""

    list_url: str
    edit_url: str  # with the comment's id behind it
    edit_method: str
    headers: Dict[str, str]


def _say(text: str) -> None:
    print("evprof.ci: " + text, file=sys.stderr, flush=True)


# ---- the two runs ----


def _git(*words: str) -> str:
    done = subprocess.run(("git",) + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        raise _Failure("git %s: %s" % (" ".join(words), done.stderr.strip() or "status %d" % done.returncode))
    return done.stdout.strip()


def _commit(revision: str) -> str:
    """The commit of a revision. One that a shallow clone lacks is fetched."""
    try:
        return _git("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
    except _Failure:
        _git("fetch", "--quiet", "--no-tags", "--depth=1", "origin", revision)
        return _git("rev-parse", "--verify", "FETCH_HEAD^{commit}")


def _environment() -> Dict[str, str]:
    """That of the commands: without the token and what finds this package, and with what makes two runs alike."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = dict(os.environ)
    environment.pop("PROFILE_TOKEN", None)
    path = [one for one in environment.pop("PYTHONPATH", "").split(os.pathsep) if one and os.path.abspath(one) != own]
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(path)
    environment.setdefault("PYTHONHASHSEED", "0")
    environment.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    return environment


def _run_in(tree: str, words: List[str]) -> int:
    # The log of the job has the commands' stdout in its place, between what evprof.ci says.
    return subprocess.run(words, cwd=tree, env=_environment(), stdin=subprocess.DEVNULL).returncode


def _record(options: argparse.Namespace, tree: str, commit: str, trace: str) -> None:
    """Records the command on a commit. Raises _Failure if it fails."""
    _git("worktree", "add", "--quiet", "--force", "--detach", tree, commit)
    try:
        if options.prepare:
            _say("preparing %s" % commit[:10])
            status = _run_in(tree, ["sh", "-e", "-c", options.prepare])
            if status:
                raise _Failure("--prepare ended with status %d on %s" % (status, commit[:10]))
        _say("recording %s" % commit[:10])
        status = _run_in(tree, [find("evprof"), "run", "--events", options.events, "-o", trace.replace("%", "%%"), "--", "sh", "-e",
                                "-c", options.run])
        if status:
            raise _Failure("the command ended with status %d on %s" % (status, commit[:10]))
        if not os.path.exists(trace):
            raise _Failure("the command ran no Python on %s, so there is nothing to compare" % commit[:10])
    finally:
        _git("worktree", "remove", "--force", tree)


# ---- the result ----


def _tool(tree: str, *words: str) -> Tuple[int, str]:
    """Runs evprof where the trees were, so that their files are shown relative to them."""
    os.makedirs(tree, exist_ok=True)
    done = subprocess.run((find("evprof"),) + words, cwd=tree, stdout=subprocess.PIPE)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _compare(options: argparse.Namespace, tree: str, base: str, head: str) -> Tuple[int, str]:
    status, table = _tool(tree, "diff", "--markdown", "--limit", "25", *options.diff, "--", base, head)
    return {0: _FINE, _REGRESSION: _LIMIT}.get(status, _FAILED), table


def _check(options: argparse.Namespace, tree: str, head: str, folder: str) -> Tuple[int, str]:
    if not options.check:
        return _FINE, ""
    status, lines = _tool(tree, "check", "--junit", os.path.join(folder, "limits.xml"), *options.check, "--", head)
    return {0: _FINE, 1: _LIMIT}.get(status, _FAILED), "\n```\n%s```\n" % lines.replace("```", "'''")


def _marker(options: argparse.Namespace) -> str:
    return "<!-- evprof: %s -->" % options.title.replace("--", "- -")


def _body(options: argparse.Namespace, heading: str, parts: List[str]) -> str:
    text = "%s\n### %s: %s\n\n%s" % (_marker(options), options.title, heading, "".join(parts))
    if len(text) > _BODY_MAX:
        text = text[:_BODY_MAX].rsplit("\n", 1)[0] + "\n\nThe rest is in the job's files.\n"
    return text


# ---- the forge ----


def _github() -> Optional[_Forge]:
    token, path = os.environ.get("PROFILE_TOKEN"), os.environ.get("GITHUB_EVENT_PATH")
    if not token or not path:
        return None
    with open(path, encoding="utf-8") as file:
        number = json.load(file).get("pull_request", {}).get("number")
    if not number:
        return None
    url = "%s/repos/%s/issues/" % (os.environ["GITHUB_API_URL"], os.environ["GITHUB_REPOSITORY"])
    headers = {"Authorization": "Bearer " + token, "Accept": "application/vnd.github+json"}
    return _Forge("%s%d/comments" % (url, number), url + "comments/", "PATCH", headers)


def _gitlab() -> Optional[_Forge]:
    token, number = os.environ.get("PROFILE_TOKEN"), os.environ.get("CI_MERGE_REQUEST_IID")
    if not token or not number:
        return None
    url = "%s/projects/%s/merge_requests/%s/notes" % (os.environ["CI_API_V4_URL"], os.environ["CI_PROJECT_ID"], number)
    return _Forge(url, url + "/", "PUT", {"PRIVATE-TOKEN": token})


def _request(forge: _Forge, method: str, url: str, value: Optional[Dict[str, str]] = None) -> Any:
    data = json.dumps(value).encode("utf-8") if value else None
    request = urllib.request.Request(url, data=data, method=method, headers=dict(forge.headers))
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _comment(forge: _Forge, marker: str, body: str) -> None:
    """Replaces the comment that begins with the marker, or adds one."""
    for page in range(1, _PAGES_MAX + 1):
        comments = _request(forge, "GET", "%s?per_page=100&page=%d" % (forge.list_url, page))
        for comment in comments:
            if (comment.get("body") or "").startswith(marker):
                _request(forge, forge.edit_method, "%s%d" % (forge.edit_url, comment["id"]), {"body": body})
                return
        if len(comments) < 100:
            break
    _request(forge, "POST", forge.list_url, {"body": body})


def _publish(options: argparse.Namespace, body: str) -> None:
    """A comment that cannot be written is no reason for the job to fail: a fork's job has no right to."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(body)
    forge = {"github": _github, "gitlab": _gitlab}[options.comment]() if options.comment else None
    if not forge:
        return
    try:
        _comment(forge, _marker(options), body)
    except (OSError, ValueError, LookupError) as error:
        _say("the comment could not be written: %s" % error)


# ---- all of it ----


def _words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("%s: %s" % (error, text)) from None


def _parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evprof.ci", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--base", required=True, help="the revision to compare with")
    parser.add_argument("--head", default="HEAD", help="the revision to judge (default: HEAD)")
    parser.add_argument("--run", required=True, help="the command to record, for sh -e")
    parser.add_argument("--prepare", default="", help="a command to run before it, which is not recorded")
    parser.add_argument("--events", default="call,c_call", help="as EVPROF_EVENTS (default: call,c_call)")
    parser.add_argument("--diff", type=_words, default=[], help="options of evprof diff: --threshold, --fail-on, --include, --limit, ...")
    parser.add_argument("--check", type=_words, default=[], help="options of evprof check, for the head: --max-calls, ...")
    parser.add_argument("--output", default="evprof-ci", help="the folder for the traces and the comment (default: evprof-ci)")
    parser.add_argument("--title", default="evprof", help="of the comment; each title has a comment of its own")
    parser.add_argument("--comment", choices=("github", "gitlab"), help="comment on the pull or merge request, with PROFILE_TOKEN")
    return parser.parse_args(arguments)


def _judge(options: argparse.Namespace, scratch: str, folder: str) -> Tuple[int, str]:
    """Records and compares. Returns the exit status and the comment."""
    tree, base, head = os.path.join(scratch, "tree"), _commit(options.base), _commit(options.head)
    traces = [os.path.join(folder, name) for name in ("base.evp", "head.evp")]
    without_base = ""
    try:
        _record(options, tree, base, traces[0])
    except _Failure as failure:
        without_base = "%s: nothing to compare with" % failure
        _say(without_base)
    _record(options, tree, head, traces[1])
    compared, table = (_FINE, without_base + ".\n") if without_base else _compare(options, tree, *traces)
    checked, limits = _check(options, tree, traces[1], folder)
    status = max(compared, checked)
    heading = {_FINE: "no limit is exceeded", _LIMIT: "a limit is exceeded", _FAILED: "not comparable; see the job's log"}[status]
    return status, _body(options, heading, ["`%s` to `%s`: " % (base[:10], head[:10]), table, limits])


def main(arguments: List[str]) -> int:
    """The exit status."""
    options = _parse(arguments)
    folder = os.path.abspath(options.output)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="evprof-ci-") as scratch:
            status, body = _judge(options, os.path.realpath(scratch), folder)
    except (_Failure, ImportError, OSError) as error:
        status, body = _FAILED, _body(options, "not recorded", ["%s\n" % error])
        _say(str(error))
    with open(os.path.join(folder, "comment.md"), "w", encoding="utf-8") as file:
        file.write(body)
    print(body)
    _publish(options, body)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
