#!/bin/sh
# trial.sh WHEEL [PYTHON] - installs a wheel into a new virtual environment and uses it as somebody does who has nothing else.
#
# Prints one line for each thing that works, and ends with status 1 at the first that does not. Wants a Python with venv, and
# no network. Runs in a bare root, too: nothing of the source tree is used.
set -u

wheel=$(realpath "$1") || exit 1
interpreter=${2:-python3}
work=$(mktemp -d) || exit 1
daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null; rm -rf "$work"' EXIT
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

"$interpreter" -m venv "$work/venv" >err 2>&1 || fails "a virtual environment of $interpreter"
"$work/venv/bin/python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check "$wheel" >err 2>&1 ||
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
