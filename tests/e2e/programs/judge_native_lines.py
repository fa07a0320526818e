"""judge_native_lines.py OWN JSON: compares what programs/native_lines.py printed with evprof memory --by line --json.

A line also holds a few objects of Python's, of less than SMALL bytes; a native block has more."""
import json
import sys

SMALL = 20000

with open(sys.argv[1]) as file:
    own = {int(line): int(bytes_) for line, bytes_, _ in map(str.split, file)}
with open(sys.argv[2]) as file:
    process, = json.load(file)["processes"]
found = {}
for site in process["sites"]:
    if site["file"] and site["file"].endswith("native_lines.py"):
        found[site["line"]] = found.get(site["line"], 0) + site["end_bytes"]
wrong = ["line %s holds %s bytes, not %s" % (line, found.get(line), size) for line, size in own.items()
         if not size <= found.get(line, 0) < size + SMALL]
wrong += ["line %s holds %s bytes" % (line, size) for line, size in found.items() if line not in own and size >= SMALL]
if wrong:
    sys.exit("\n".join(wrong))
print(len(own), "lines")
