#!/bin/sh
# demo.sh - profiles a real program (tools/scripts/demo.py) and prints what was recorded. Called by `make demo`.
#
#   sh tools/scripts/demo.sh BUILD_DIRECTORY
set -eu
build=$1
trace=$build/demo.evp
python=${PYTHON:-python3}

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

rm -f "$trace"
show "$build/evprof" run -o "$trace" -- "$python" tools/scripts/demo.py
show "$build/evprof" report --limit 20 "$trace"
show "$build/evprof" info "$trace"
