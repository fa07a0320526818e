"""redacted.py EVPROF TRACE REDACTED SECRET: that no byte of the secret is left in REDACTED, unpacked chunks included, and that what the
tool prints of it is what it prints of TRACE, but for the secret. Used by test_redact.c. Prints "redacted".
"""
import json
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import oracle_trace

tool, path, redacted, secret = sys.argv[1:]
stars = "*" * len(secret)


def said(file, *words):
    done = subprocess.run([tool, *words, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit("%s ends with %d: %s" % (" ".join(words), done.returncode, done.stderr.decode()))
    # A piece of an argument may have a part of the secret: has_secret() joins them.
    return "".join(line for line in done.stdout.decode("utf-8", "replace").splitlines(True) if "\targument\t" not in line)


PATH = re.compile('"path":"([^"]*)"')


def is_cut(mine, theirs):
    """Whether the lines only differ in an argument that is masked whole, as is a text that lies in two chunks."""
    return PATH.sub("", mine) == PATH.sub("", theirs) and not PATH.search(mine).group(1).strip("*")


def same(what, mine, theirs):
    if mine == theirs:
        return
    mine, theirs = mine.splitlines(), theirs.splitlines()
    if len(mine) != len(theirs):
        sys.exit("%s: %d lines instead of %d" % (what, len(mine), len(theirs)))
    cuts = 0
    for one, other in zip(mine, theirs):
        if one != other and not is_cut(one, other):
            sys.exit("%s: %r instead of %r" % (what, one, other))
        cuts += one != other
    if not cuts:
        sys.exit("%s: the lines end otherwise" % what)
    if cuts >= len(list(payloads(before))):
        sys.exit("%s: %d arguments are masked whole" % (what, cuts))


with open(redacted, "rb") as file:
    data = file.read()
with open(path, "rb") as file:
    before = file.read()


def payloads(content):
    at = 64
    while content[at:at + 4] == b"EVCK":
        _, _, codec, stored, raw = struct.unpack_from("<4sHHII", content, at)
        payload = content[at + 64:at + 64 + stored]
        yield oracle_trace.decompress(payload, raw) if codec else payload
        at += 64 + (stored + 7) // 8 * 8


def has_secret(content):
    """Where the secret is: in the bytes of the file, in an unpacked chunk, in the arguments of spans and marks, which are of pieces."""
    places = ["the file"] if secret.encode() in content else []
    places += ["a chunk"] if any(secret.encode() in payload for payload in payloads(content)) else []
    rows = oracle_trace.Trace(content, False).rows
    return places + (["an argument"] if any(secret in str(value) for row in rows for _, value in row.get("arguments", [])) else [])


if has_secret(before)[-2:] != ["a chunk", "an argument"]:
    sys.exit("the secret is in %s only" % has_secret(before))
if has_secret(data):
    sys.exit("the secret is in %s" % ", ".join(has_secret(data)))
for words in (("dump",), ("export", "-f", "csv", "-o", "-"), ("export", "-f", "chrome", "-o", "-")):
    same(" ".join(words), said(redacted, *words), said(path, *words).replace(secret, stars))
# Rows with the same numbers are in the order of their names.
for words in (("report", "--limit", "all", "--sort", "calls"), ("export", "-f", "folded", "--weight", "bytes", "-o", "-"), ("tree",)):
    mine, theirs = (sorted(said(file, *words).replace(secret, stars).splitlines()) for file in (redacted, path))
    same(" ".join(words), "\n".join(mine), "\n".join(theirs))
infos = [json.loads(said(file, "info", "--json").replace(secret, stars)) for file in (path, redacted)]
for info in infos:
    del info["trace"], info["size_bytes"]
same("info", json.dumps(infos[1], indent=1), json.dumps(infos[0], indent=1))
print("redacted")
