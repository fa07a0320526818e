#!/bin/sh
# run_tests.sh - runs rule checks (tests/check_*.sh) and criterion programs, one after the other, and adds them up.
#
# Called by `make test` with EVPROF_BUILD set. The last line, "N passed, N failed, N skipped", counts the tests of the
# criterion programs; a failed rule check or a program that ended without its closing line makes the exit status 1.
#
#   sh tools/run_tests.sh [tests/check_NAME.sh | build/tests/unit/test_NAME | build/tests/e2e/test_NAME]...
set -u
passed=0
failed=0
skipped=0
broken=0
logs=$EVPROF_BUILD/test-logs
mkdir -p "$logs" || exit 1
: >"$logs/skipped"

# The preloaded library of a sanitizer build comes after libc, and an uninstrumented Python's memory is its own. A private
# collector has no stderr, so reports go to files, and any report is a failure whatever the tests say. (What is undefined
# ends the process, and goes to stderr: gcc's runtime knows no file for it beside the address sanitizer.) Signals are the
# program's: one that dies by SIGSEGV is to die by it, and where it was evprof's fault its status differs.
rm -f "$logs"/sanitizer.*
case $EVPROF_BUILD in
*-asan*)
	export ASAN_OPTIONS="${ASAN_OPTIONS:-verify_asan_link_order=0:detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:log_path=$logs/sanitizer}"
	export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
	;;
esac
# Whoever runs the tests may be profiled or configured; the tests set what they test.
unset EVPROF EVPROF_OUTPUT EVPROF_SOCKET EVPROF_EVENTS EVPROF_RING_SIZE EVPROF_ON_FULL EVPROF_CHILDREN EVPROF_LOG \
	EVPROF_SESSION EVPROF_INCLUDE EVPROF_EXCLUDE EVPROF_EXCLUDE_SYSPATH EVPROF_FORMAT EVPROF_CALIBRATE EVPROF_NATIVE \
	EVPROF_SAMPLE_RATE

run_rule() { # SCRIPT
	if sh "$1"; then
		echo "$1: holds"
	else
		echo "$1: broken"
		broken=$((broken + 1))
	fi
}

closing_number() { # FILE WORD: the number after WORD in criterion's closing line
	sed 's/\x1b\[[0-9;]*m//g' "$1" | sed -n "s/.*Synthesis:.*$2: \([0-9]*\).*/\1/p" | tail -1
}

run_program() { # PROGRAM
	name=$(basename "$1")
	log=$logs/$name.log
	tap=$logs/$name.tap
	rm -f "$tap"
	echo "$name"
	# Unit tests meet the library in their own process, to which the tests' own would be mistyped variables of evprof.
	case $1 in
	*/unit/*)
		# shellcheck disable=SC2046 # a list of words
		set -- env $(env | sed -n 's/^\(EVPROF_[A-Z_]*\)=.*/-u \1/p') BUILD="$EVPROF_BUILD" "$1"
		;;
	esac
	timeout "${TEST_TIMEOUT:-1800}" "$@" --tap="$tap" >"$log" 2>&1
	status=$?
	cat "$log"
	good=$(closing_number "$log" Passing)
	bad=$(closing_number "$log" Failing)
	if [ -z "$good" ] || [ -z "$bad" ]; then
		[ "$status" = 124 ] && echo "$name: still running after $TEST_TIMEOUT s, ended"
		echo "$name: no closing line (exit status $status)"
		good=0
		bad=1
	elif [ "$bad" = 0 ] && [ "$status" != 0 ]; then
		echo "$name: exit status $status although no test failed"
		bad=1
	fi
	left_out=$(grep -c '^ok - .* # SKIP' "$tap" 2>/dev/null)
	sed -n "s/^ok - \([^ ]*\) *# SKIP *\(.*\)/\1: \2/p" "$tap" >>"$logs/skipped" 2>/dev/null
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + ${left_out:-0}))
}

programs=0
for one in "$@"; do
	case $one in
	*.sh) run_rule "$one" ;;
	*)
		programs=$((programs + 1))
		run_program "$one"
		;;
	esac
done
[ "$programs" = 0 ] && exit $((broken > 0))
for report in "$logs"/sanitizer.*; do
	[ -e "$report" ] || continue
	cat "$report"
	echo "a sanitizer complains: $report"
	broken=$((broken + 1))
done
if [ -s "$logs/skipped" ]; then
	echo "skipped:"
	sed 's/^/  /' "$logs/skipped"
fi
[ "$broken" = 0 ] || echo "rule checks broken and sanitizer reports: $broken"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$broken" = 0 ] && [ "$passed" -gt 0 ]
