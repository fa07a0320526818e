#!/bin/sh
# demo.sh - profiles a real program of the standard library and prints what was recorded. Called by `make demo`.
#
#   sh tools/demo.sh BUILD_DIRECTORY
set -eu
build=$1
trace=$build/demo.evp
python=${PYTHON:-python3}
program='
import ast, difflib, inspect, json, textwrap

before = inspect.getsource(textwrap)
tree = ast.parse(before)
after = ast.unparse(tree) if hasattr(ast, "unparse") else before.upper()
names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
matcher = difflib.SequenceMatcher(None, before.split(), after.split())
encoded = json.dumps({"names": names, "blocks": matcher.get_matching_blocks()}, indent=1)
print(f"{len(names)} names, {len(json.loads(encoded)['"'blocks'"'])} equal blocks, {matcher.ratio():.2f} equal")
'
run() {
	printf '\n$ %s\n' "$1" >&2
	shift
	"$@"
}
rm -f "$trace"
echo "The program: parse the source of textwrap, write it out again, compare both, encode the result as JSON."
run "$build/evprof run -o $trace -- $python -c PROGRAM" "$build/evprof" run -o "$trace" -- "$python" -c "$program"
run "$build/evprof report --limit 20 $trace" "$build/evprof" report --limit 20 "$trace"
run "$build/evprof info $trace" "$build/evprof" info "$trace"
