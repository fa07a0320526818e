#!/bin/sh
# trial.sh WHEEL [PYTHON [PIP]] - installs a wheel into a new virtual environment and uses it as somebody does who has nothing else.
#
# PIP: a folder that has the package pip, for a Python without ensurepip. Prints one line for each thing that works, and ends with status 1 at the first that does not. Wants a Python with venv, and
# no network. Runs in a bare root, too: nothing of the source tree is used.
set -u

wheel=$(realpath "$1") || exit 1
interpreter=${2:-python3}
pip=${3:-}
work=$(mktemp -d) || exit 1
daemon=
program=
trap 'for one in $daemon $program; do kill "$one" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
unset LD_PRELOAD PYTHONPATH PYTHONHOME
cd "$work" || exit 1

works() {
	echo "works: $*"
}

fails() {
	echo "fails: $*"
	[ ! -s err ] || sed 's/^/    /' err
	exit 1
}

"$interpreter" -m venv ${pip:+--without-pip} "$work/venv" >err 2>&1 || fails "a virtual environment of $interpreter"
PYTHONPATH=$pip "$work/venv/bin/python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check "$wheel" >err 2>&1 ||
	fails "pip install ${wheel##*/}"
PATH=$work/venv/bin:/usr/bin:/bin
export PATH
works "pip install"

# fib(12) is 465 calls, whatever counts them: 2 * fib(13) - 1.
cat >app.py <<'END'
import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


if __name__ == "__main__":
    print(fib(12), sys.argv[1:], sys.prefix)
    sys.exit(3)
END
wanted=$(python app.py --own x)
code=$(cat app.py)

calls_of() { # TRACE: of fib
	evprof report --format csv "$1" | awk -F , '/fib/ { print; exit }'
}

form() { # NAME COMMAND...
	name=$1
	shift
	rm -f ./*.evp
	got=$("$@" 2>err)
	status=$?
	[ $status = 3 ] || fails "$name: status $status"
	[ "$got" = "$wanted" ] || fails "$name: prints \"$got\", not \"$wanted\""
	[ -s trial.evp ] || fails "$name: no trace"
	calls_of trial.evp | grep -q ',465,' || fails "$name: not 465 calls of fib: $(calls_of trial.evp)"
	works "$name"
}

form "evprof run app.py" evprof run -o trial.evp app.py --own x
form "python -m evprof run app.py" python -m evprof run -o trial.evp app.py --own x
form "evprof run -m app" evprof run -o trial.evp -m app --own x
form "evprof run -c" evprof run -o trial.evp -c "$code" --own x
form "an environment that is not activated" env PATH=/usr/bin:/bin "$work/venv/bin/evprof" run -o trial.evp app.py --own x
form "evprof run -- python app.py" evprof run -o trial.evp -- python app.py --own x

evprof info trial.evp >out 2>err && grep -q 'app.py' out || fails "info"
works info
python -m evprof trial.evp >out 2>err && grep -q 'MainThread' out || fails "python -m evprof trial.evp"
works "python -m evprof TRACE"
python -c 'import evprof; trace = evprof.load("trial.evp"); assert len(trace.processes) == 1, trace.processes' >err 2>&1 ||
	fails "evprof.load"
[ "$(evprof --version)" = "evprof $(python -c 'import evprof; print(evprof.__version__)' 2>err)" ] || fails "evprof.__version__"
[ "$(python -m evprof --version 2>err)" = "$(evprof --version)" ] || fails "python -m evprof --version"
works "import evprof"
for format in html chrome pstats perfetto callgrind folded speedscope pprof firefox csv; do
	evprof export --format "$format" trial.evp -o "out.$format" 2>err && [ -s "out.$format" ] || fails "export --format $format"
done
python -c 'import pstats; calls = [row[1] for key, row in pstats.Stats("out.pstats").stats.items() if key[2] == "fib"]; assert calls == [465], calls' \
	>err 2>&1 || fails "pstats of the export"
works export

evprof run --native -o native.evp app.py >out 2>err
[ $? = 3 ] && ! grep -q 'no native stacks' err && evprof export --format folded --weight bytes native.evp -o - 2>err |
	grep -q 'Py' || fails "evprof run --native"
works "native stacks, with names"

evprof tree --min-percent 0 trial.evp >out 2>err && grep -q '  fib .*app.py:' out || fails "evprof tree"
evprof check --max-calls app:fib=465 trial.evp >out 2>err || fails "evprof check"
! evprof check --max-calls app:fib=464 trial.evp >out 2>&1 || fails "evprof check fails at one call more"
evprof diff trial.evp native.evp >out 2>err && grep -q 'function calls' out || fails "evprof diff"
evprof memory trial.evp >out 2>err && grep -q '^  peak ' out || fails "evprof memory"
evprof annotate trial.evp app.py >out 2>err && grep -q 'def fib' out || fails "evprof annotate"
evprof completion bash >out 2>err && bash -n out || fails "evprof completion"
works "tree, check, diff, memory, annotate, completion"

cat >block.py <<'END'
import re

import evprof

with evprof.profile() as p:
    sorted(range(100), key=lambda number: -number)
assert re.search(r"^ +100 .*<lambda>", p.text(), re.M), p.text()
END
python block.py >out 2>err || fails "evprof.profile() without evprof run"
works "evprof.profile()"

# A program that runs already; its own count of calls is in the file when it has ended.
cat >busy.py <<'END'
import os, sys, time


def tick():
    time.sleep(0.001)


while not os.path.exists("enough"):
    tick()
END
python busy.py &
program=$!
sleep 1
evprof attach -q -o attached.evp "$program" >out 2>err || fails "evprof attach"
evprof status "$program" >out 2>err && grep -q "^ *$program  events" out || fails "evprof status"
evprof top --count 2 --interval 0.5 "$program" >out 2>err && grep -q 'tick .*busy.py' out || fails "evprof top"
evprof snapshot -o snapshot.evp "$program" >out 2>err && evprof report snapshot.evp 2>err | grep -q '(tick)' || fails "evprof snapshot"
evprof detach "$program" >out 2>err || fails "evprof detach"
: >enough
wait "$program" || fails "the program that was attached to"
program=
evprof report attached.evp 2>err | grep -q '(tick)' || fails "the trace of evprof attach"
works "attach, status, top, snapshot, detach"

mkdir traces
evprof-collector --socket "$work/socket" --output-dir "$work/traces" >daemon.log 2>&1 &
daemon=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	sleep 0.2
	[ -S socket ] && break
done
EVPROF_SOCKET=$work/socket LD_PRELOAD=$(python -m evprof --library) python app.py >out 2>err
[ $? = 3 ] || fails "a program with the daemon"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	trace=$(find traces -name '*.evp' 2>/dev/null | head -n 1)
	[ -n "$trace" ] && calls_of "$trace" 2>/dev/null | grep -q ,465, && break
	sleep 0.5
done
cat daemon.log >>err
[ -n "$trace" ] && calls_of "$trace" | grep -q ,465, || fails "the daemon's trace"
works "the daemon"
