#!/bin/sh
# check_runner.sh - what tools/scripts/run_tests.sh says of programs that fail, hang, crash or are interrupted, and that it runs
# programs side by side but the sensitive ones alone. Run by `make check-rules`, with programs of its own.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/expect_output.sh
. tests/expect_output.sh
export FOLDER="$folder"

# A program that stands for one of criterion: its closing line, and its TAP file.
program() { # NAME PASSED FAILED BODY
	cat >"$folder/$1" <<EOF
#!/bin/sh
closing() {
	for option in "\$@"; do
		case \$option in --tap=*) echo "ok - $1::left_out # SKIP no tool" >"\${option#--tap=}" ;; esac
	done
	echo "[====] Synthesis: Tested: $(($2 + $3)) | Passing: $2 | Failing: $3 | Crashing: 0 "
}
$4
EOF
	chmod +x "$folder/$1"
}

run() { # NAME...
	for name in "$@"; do
		shift
		set -- "$@" "$folder/$name"
	done
	env -u EVPROF_TEST_LANES EVPROF_BUILD="$folder/build" TEST_TIMEOUT="${limit:-10}" sh tools/scripts/run_tests.sh "$@" \
		>"$folder/output" 2>&1
	code=$?
	last=$(tail -1 "$folder/output")
}

# Nobody may have waited for it yet.
sleeper_ended() {
	for _ in $(seq 50); do
		state=$(sed 's/.*) //' "/proc/$(cat "$folder/sleeper")/stat" 2>/dev/null)
		case $state in '' | Z*) return 0 ;; esac
		sleep 0.1
	done
	return 1
}

program test_good 3 0 'closing "$@"'
program test_bad 2 1 'closing "$@"; exit 1'
program test_odd 2 0 'closing "$@"; exit 7'
program test_crash 1 0 'kill -SEGV $$'
program test_hang 1 0 'sleep 30 & echo $! >"$FOLDER/sleeper"; wait'
# Each waits for the other, and prints in two halves; the third comes after both.
meeting='echo "$0 begins"; : >"$0.here"
for try in $(seq 50); do [ -e "$FOLDER/test_left.here" ] && [ -e "$FOLDER/test_right.here" ] && break; sleep 0.1; done
echo "$0 ends"; [ "$try" -lt 50 ] || exit 1; closing "$@"; : >"$0.over"'
program test_left 1 0 "$meeting"
program test_right 1 0 "$meeting"
program test_cpu 1 0 '[ -e "$FOLDER/test_left.over" ] && [ -e "$FOLDER/test_right.over" ] || exit 1; closing "$@"'

run test_good
expect "run_tests.sh: a program that passes is a success" [ "$code:$last" = "0:3 passed, 0 failed, 1 skipped" ]
expect "run_tests.sh: the skipped test is named" grep -qx '  test_good::left_out: no tool' "$folder/output"

program test_language 1 0 '[ "${LANGUAGE-}$LC_ALL" = C.UTF-8 ] && closing "$@"'
LANGUAGE=de LC_ALL=de_DE.UTF-8 run test_language
expect "run_tests.sh: the closing line is English in any session" [ "$code:$last" = "0:1 passed, 0 failed, 1 skipped" ]

run test_bad test_good
expect "run_tests.sh: a test that failed is a failure" [ "$code:$last" = "1:5 passed, 1 failed, 2 skipped" ]

program test_once 3 1 'case $* in *--filter*) echo "Synthesis: Passing: 1 | Failing: 0"; exit 0 ;; esac
closing "$@"; { echo "not ok - once::now_and_then@3.8  (0.1s)"; echo "  once.c:1: was 2"; } >>"${1#--tap=}"; exit 1'
run test_once
expect "run_tests.sh: a test that passes when it runs again has passed" [ "$code:$last" = "0:4 passed, 0 failed, 1 skipped" ]
expect "run_tests.sh: it is named" grep -qx 'passed when it ran again, alone: once::now_and_then@3.8' "$folder/output"
expect "run_tests.sh: its message is printed" grep -qx '    once.c:1: was 2' "$folder/output"

program test_twice 3 1 'case $* in *--filter*) echo "Synthesis: Passing: 0 | Failing: 1"; exit 1 ;; esac
closing "$@"; echo "not ok - twice::always@3.8  (0.1s)" >>"${1#--tap=}"; exit 1'
run test_twice
expect "run_tests.sh: a test that fails again has failed" [ "$code:$last" = "1:3 passed, 1 failed, 1 skipped" ]

printf 'echo "this line is too wide"\nexit 1\n' >"$folder/rule.sh"
run rule.sh test_good
expect "run_tests.sh: a broken rule is a failure" [ "$code:$last" = "1:3 passed, 0 failed, 1 skipped" ]
expect "run_tests.sh: it is named at the end" sh -c 'tail -3 "$FOLDER/output" | grep -qx "broken: $FOLDER/rule.sh"'
expect "run_tests.sh: with what it printed" sh -c 'tail -2 "$FOLDER/output" | grep -qx "  this line is too wide"'

run test_odd
expect "run_tests.sh: an exit status counts" [ "$code:$last" = "1:2 passed, 1 failed, 1 skipped" ]

mkdir "$folder/unit"
program unit/test_plain 1 0 'env | grep ^EVPROF_ && exit 1; closing "$@"'
EVPROF_E2E_FOUND=1 run unit/test_plain
expect "run_tests.sh: unit tests see no variable of evprof" [ "$code:$last" = "0:1 passed, 0 failed, 1 skipped" ]

limit=1 run test_hang test_good test_crash
expect "run_tests.sh: programs that hang or crash are failures" [ "$code:$last" = "1:3 passed, 2 failed, 1 skipped" ]
expect "run_tests.sh: the one that hangs is named" grep -qx 'test_hang: still running after 1 s, ended' "$folder/output"
expect "run_tests.sh: the one that crashes is named" grep -q '^test_crash: no closing line (exit status 139)' "$folder/output"
expect "run_tests.sh: what it started has ended" sleeper_ended

run test_cpu test_left test_right
expect "run_tests.sh: programs run side by side, and test_cpu alone" [ "$code:$last" = "0:3 passed, 0 failed, 3 skipped" ]
expect "run_tests.sh: what one prints stays together" sh -c 'grep -A1 "test_left begins" "$FOLDER/output" | grep -q "test_left ends"'
expect "run_tests.sh: each program's time is printed" [ "$(grep -cE '^ +[0-9]+ s  test_(cpu|left|right)$' "$folder/output")" = 3 ]

rm -f "$folder/sleeper"
EVPROF_BUILD="$folder/build" sh tools/scripts/run_tests.sh "$folder/test_hang" "$folder/test_good" >"$folder/output" 2>&1 &
runner=$!
for _ in $(seq 50); do
	[ -s "$folder/sleeper" ] && break
	sleep 0.1
done
kill "$runner"
wait "$runner"
expect "run_tests.sh: a signal ends it" grep -q 'ended by a signal' "$folder/output"
expect "run_tests.sh: and what runs under it" sleeper_ended
exit $status
