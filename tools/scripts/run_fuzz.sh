#!/bin/sh
# run_fuzz.sh - runs libFuzzer programs, one after the other, each for a number of seconds. Called by `make fuzz`.
#
# Starts from the inputs in tests/fuzz/corpus/NAME (kept in the repository); new ones go to the build directory. A
# crashing input is left in the build directory, and its path printed. Memory is limited: what a hostile input makes grow
# is a finding. The programs write to descriptor 2 what would be lost among their messages, so it is closed for them.
#
#   sh tools/scripts/run_fuzz.sh SECONDS build-fuzz/tests/fuzz/fuzz_NAME...
set -u
seconds=$1
shift
status=0
for program in "$@"; do
	name=$(basename "$program" | sed 's/^fuzz_//')
	found=$(dirname "$program")/found/$name
	seeds=tests/fuzz/corpus/$name
	mkdir -p "$found"
	words=tests/fuzz/$name.dict
	if [ "$name" = api ]; then # the inputs of trace, read otherwise
		seeds="$seeds tests/fuzz/corpus/trace"
		words=tests/fuzz/trace.dict
	fi
	[ -d "${seeds%% *}" ] || seeds=
	words=$([ -f "$words" ] && echo "-dict=$words")
	echo "fuzz $name for $seconds s"
	: >"$found.log"
	# shellcheck disable=SC2086 # no seeds is no argument
	if BROKEN_INVARIANTS="$found.log" ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=16}" "$program" -max_total_time="$seconds" -max_len=16384 \
		-timeout=20 -rss_limit_mb=700 -malloc_limit_mb=400 -print_final_stats=1 -close_fd_mask=2 $words \
		-artifact_prefix="$found-" "$found" $seeds >>"$found.log" 2>&1; then
		sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "$found.log"
	else
		tail -40 "$found.log"
		echo "fuzz $name: found something, see $found.log"
		status=1
	fi
done
exit $status
