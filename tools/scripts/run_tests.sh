#!/bin/sh
# run_tests.sh - runs rule checks (tests/check_*.sh) and criterion programs, and adds them up.
#
# Called by `make test` with EVPROF_BUILD set. Programs run side by side, EVPROF_TEST_LANES of them (2) at a time; those
# that compare times (alone(), below) run after the others, one after the other. The output of each is printed whole
# when it ends. At the end stand what was skipped, by reason, the slowest programs, each failed test with its message, and
# what a broken rule printed last.
# The last line, "N passed, N failed, N skipped", counts the tests of the criterion programs; a failed rule check or a
# program that ended without its closing line makes the exit status 1.
#
# Where at most ten tests failed, each runs once more with nothing beside it. One that passes then is named in a line of
# its own: the machine was busy, or the test has a race.
#
#   sh tools/scripts/run_tests.sh [tests/check_NAME.sh | build/tests/unit/test_NAME | build/tests/e2e/test_NAME]...
set -u
broken=0
lanes=${EVPROF_TEST_LANES:-2}
limit=${TEST_TIMEOUT:-1800}
logs=$EVPROF_BUILD/test-logs
mkdir -p "$logs" || exit 1
logs=$(cd "$logs" && pwd)
rm -rf "$logs/taken" "$logs"/*.result "$logs"/sanitizer.* "$logs/broken"
mkdir "$logs/taken" || exit 1

# The preloaded library of a sanitizer build comes after libc, and an uninstrumented Python's memory is its own. A private
# collector has no stderr, so reports go to files, and any report is a failure whatever the tests say. (What is undefined
# ends the process, and goes to stderr: gcc's runtime knows no file for it beside the address sanitizer.) Its strstr() reads
# the whole text at each call, which takes minutes for the tests that search megabytes step by step. Signals are the
# program's: one that dies by SIGSEGV is to die by it, and where it was evprof's fault its status differs.
case $EVPROF_BUILD in
*-asan*)
	export ASAN_OPTIONS="${ASAN_OPTIONS:-verify_asan_link_order=0:intercept_strstr=0:detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:log_path=$logs/sanitizer}"
	export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
	;;
esac
# What evprof/invariant.h reports in DEBUG builds and those of the sanitizers is a failure, too, whatever the tests say.
export BROKEN_INVARIANTS="$logs/sanitizer.invariants"
# Criterion translates its closing line (closing_number).
unset LANGUAGE
export LC_ALL=C.UTF-8
# Whoever runs the tests may be profiled or configured; the tests set what they test.
unset EVPROF EVPROF_OUTPUT EVPROF_SOCKET EVPROF_EVENTS EVPROF_RING_SIZE EVPROF_ON_FULL EVPROF_FALLBACK EVPROF_CHILDREN EVPROF_LOG \
	EVPROF_SESSION EVPROF_INCLUDE EVPROF_EXCLUDE EVPROF_EXCLUDE_SYSPATH EVPROF_FORMAT EVPROF_CALIBRATE EVPROF_NATIVE \
	EVPROF_SAMPLE_RATE EVPROF_MEMORY_INTERVAL EVPROF_MEMORY_LINES EVPROF_PROGRAM_ONLY EVPROF_START EVPROF_SIGNAL EVPROF_KEEP \
	EVPROF_TRIGGER EVPROF_BUDGET

# A program that compares times, or what a bound of time decides, with those of a bare run.
alone() { # PROGRAM
	case ${1##*/} in
	test_accounting | test_calibrate | test_collector_loss | test_cpu) return 0 ;;
	test_parallel | test_sampling | test_storms) return 0 ;;
	esac
	return 1
}

run_rule() { # SCRIPT
	sh "$1" >"$logs/rule" 2>&1
	ended=$?
	cat "$logs/rule"
	if [ "$ended" = 0 ]; then
		echo "$1: holds"
	else
		echo "$1: broken"
		{
			echo "broken: $1"
			tail -n 5 "$logs/rule" | cut -c1-300 | sed 's/^/  /'
		} >>"$logs/broken"
		broken=$((broken + 1))
	fi
}

closing_number() { # FILE WORD: the number after WORD in criterion's closing line
	sed 's/\x1b\[[0-9;]*m//g' "$1" | sed -n "s/.*Synthesis:.*$2: \([0-9]*\).*/\1/p" | tail -1
}

# What a program says at its end, and NAME.result: passed, failed, skipped, seconds.
judge() { # NAME STATUS SECONDS
	good=$(closing_number "$log" Passing)
	bad=$(closing_number "$log" Failing)
	if [ -z "$good" ] || [ -z "$bad" ]; then
		[ "$2" = 124 ] && echo "$1: still running after $limit s, ended"
		echo "$1: no closing line (exit status $2)"
		good=0
		bad=1
	elif [ "$bad" = 0 ] && [ "$2" != 0 ]; then
		echo "$1: exit status $2 although no test failed"
		bad=1
	fi
	echo "$1: $3 s"
	left_out=$(grep -c '^ok - .* # SKIP' "$tap" 2>/dev/null)
	echo "$good $bad ${left_out:-0} $3 $1" >"$logs/$1.result"
}

# In place of this shell, a criterion program in the environment that it wants.
become() { # PROGRAM ARGUMENT...
	# Unit tests meet the library in their own process, to which the tests' own would be mistyped variables of evprof.
	case $1 in
	*/unit/*)
		# shellcheck disable=SC2046 # a list of words
		set -- $(env | sed -n 's/^\(EVPROF_[A-Z0-9_]*\)=.*/-u \1/p') BUILD="$EVPROF_BUILD" "$@"
		;;
	esac
	# The shell has what it starts here ignore the keyboard's signals, which tests are about.
	exec timeout "$limit" env --default-signal=INT,QUIT "$@"
}

run_program() { # PROGRAM
	name=${1##*/}
	log=$logs/$name.log
	tap=$logs/$name.tap
	rm -f "$tap"
	began=$(date +%s)
	become "$1" --tap="$tap" >"$log" 2>&1 &
	running=$!
	wait "$running"
	judge "$name" "$?" $(($(date +%s) - began)) >"$logs/$name.end"
	(cd "$logs" && echo "$name" | flock lock cat - "$name.log" "$name.end")
}

# Runs those of the programs that no other lane has taken; without those of alone() unless EACH is set.
lane() { # EACH PROGRAM...
	each=$1
	shift
	trap 'trap "" TERM; kill "$running"; wait; exit 1' TERM
	for one in "$@"; do
		case $one in *.sh) continue ;; esac
		[ -n "$each" ] || ! alone "$one" || continue
		mkdir "$logs/taken/${one##*/}" 2>/dev/null && run_program "$one"
	done
}

run_lanes() { # HOW-MANY EACH PROGRAM...
	count=$1
	shift
	started=
	while [ "$count" -gt 0 ]; do
		lane "$@" &
		started="$started $!"
		count=$((count - 1))
	done
	wait
}

stop() {
	trap '' INT TERM HUP
	# shellcheck disable=SC2086 # words
	kill $started 2>/dev/null
	wait
	echo "run_tests.sh: ended by a signal; the output so far is in $logs" >&2
	exit 1
}

programs=0
for one in "$@"; do
	case $one in
	*.sh) run_rule "$one" ;;
	*) programs=$((programs + 1)) ;;
	esac
done
[ "$programs" = 0 ] && exit $((broken > 0))
# Each end-to-end program needs the interpreters, and to find them is to start them all.
case $* in
*/e2e/*)
	EVPROF_E2E_FOUND=$(sh tests/interpreters/find.sh)
	# The judges' Python, which starts thousands of times: not pyenv's script, which takes a tenth of a second to find it.
	EVPROF_E2E_PYTHON3=$(for python in /usr/bin/python3 python3; do
		"$python" -c 'import sys; assert sys.version_info >= (3, 9); print(sys.executable)' 2>/dev/null && break
	done)
	export EVPROF_E2E_FOUND EVPROF_E2E_PYTHON3
	;;
esac
started=
trap stop INT TERM HUP
began=$(date +%s)
run_lanes "$lanes" "" "$@"
run_lanes 1 each "$@"

sum() { # COLUMN of the results
	cat "$logs"/*.result 2>/dev/null | awk -v column="$1" '{ sum += $column } END { print sum + 0 }'
}
failures() { # PROGRAM: the names of its failed tests
	sed -n 's/^not ok - \([^ ]*\) .*/\1/p' "$logs/${1##*/}.tap" 2>/dev/null
}

# Its failed tests with what they said, some lines of each: CI shows the last four kilobytes of a run.
messages() { # PROGRAM
	awk '/^not ok - / { print; lines = 0; next }
		/^ *(---|\.\.\.|assertions: [0-9]+|failures:)$/ { next }
		/^  / && lines++ < 10 { print substr($0, 1, 200) }' "$logs/${1##*/}.tap" 2>/dev/null | head -60
}

# Each failed test of PROGRAM once more. What passes now moves from the second column of the results to the first.
run_again() { # PROGRAM
	name=${1##*/}
	for test in $(failures "$1"); do
		become "$1" --filter "*${test##*::}" >"$logs/$name.again" 2>&1 &
		started=$!
		wait "$started" || continue
		[ "$(closing_number "$logs/$name.again" Passing)" -gt 0 ] || continue
		echo "$test" >>"$logs/second"
		read -r good bad rest <"$logs/$name.result"
		echo "$((good + 1)) $((bad - 1)) $rest" >"$logs/$name.result"
	done
}

rm -f "$logs/second"
if [ "$(sum 2)" -le 10 ]; then
	for one in "$@"; do
		case $one in *.sh) continue ;; esac
		[ -z "$(failures "$one")" ] || run_again "$one"
	done
fi
passed=$(sum 1)
failed=$(sum 2)
for one in "$@"; do
	case $one in *.sh) continue ;; esac
	[ -e "$logs/${one##*/}.result" ] && continue
	echo "${one##*/}: was not run to its end"
	failed=$((failed + 1))
done
for report in "$logs"/sanitizer.*; do
	[ -e "$report" ] || continue
	cat "$report"
	echo "a sanitizer or an invariant complains: $report"
	broken=$((broken + 1))
done
for one in "$@"; do
	sed -n "s/^ok - \([^ ]*\) *# SKIP *\(.*\)/\1: \2/p" "$logs/${one##*/}.tap" 2>/dev/null
done >"$logs/skipped"
if [ -s "$logs/skipped" ]; then
	echo "skipped (all by name in $logs/skipped):"
	awk '{ name = $1; sub(/^[^ ]* /, ""); count[$0]++; if (count[$0] < 10) names[$0] = names[$0] "  " name " " $0 "\n" }
		END { for (why in count) if (count[why] < 10) printf "%s", names[why]; else printf "  %d tests: %s\n", count[why], why }
		' "$logs/skipped" | sort
fi
echo "$programs programs in $(($(date +%s) - began)) s; the slowest:"
sort -k4nr "$logs"/*.result | head -10 | awk '{ printf "  %4d s  %s\n", $4, $5 }'
for one in "$@"; do
	case $one in *.sh) continue ;; esac
	messages "$one"
done >"$logs/failed"
if [ -s "$logs/failed" ]; then
	echo "failed:"
	sed 's/^/  /' "$logs/failed"
fi
[ -s "$logs/second" ] && sed 's/^/passed when it ran again, alone: /' "$logs/second"
[ "$broken" = 0 ] || echo "rule checks broken and sanitizer reports: $broken"
# Their names once more: who shows the end of a long output only shows these.
[ ! -s "$logs/broken" ] || cat "$logs/broken"
[ "$failed" = 0 ] || sed -n 's/^not ok - \([^ ]*\) .*/failed: \1/p' "$logs/failed"
echo "$passed passed, $failed failed, $(sum 3) skipped"
[ "$failed" = 0 ] && [ "$broken" = 0 ] && [ "$passed" -gt 0 ]
