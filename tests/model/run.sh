#!/bin/sh
# run.sh - checks the models of the protocol with spin, and that each seeded mistake is found. Run by `make model`.
#
# Skipped, by name, where spin is missing. CC is the compiler of the checker that spin writes.
set -u
cd "$(dirname "$0")" || exit 1
if ! command -v spin >/dev/null 2>&1; then
	echo "model: skipped: spin is not installed (on Debian: apt-get install spin)"
	exit 0
fi
models=$PWD
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cd "$scratch" || exit 1
status=0

# MODEL [-DNAME...]: leaves "ERRORS STATES SECONDS" in $result. A search that did not end is an error of ours.
search() {
	model=$1
	shift
	result=
	if ! spin -a "$@" "$models/$model" >spin.out 2>&1 ||
		! ${CC:-cc} -O2 -w -DSAFETY -DCOLLAPSE -o pan pan.c >cc.out 2>&1; then
		cat spin.out cc.out 2>/dev/null
		return 1
	fi
	./pan -m1000000 -w22 >pan.out 2>&1
	if grep -qE 'max search depth too small|out of memory|Search not completed' pan.out &&
		! grep -q 'errors: [1-9]' pan.out; then
		cat pan.out
		return 1
	fi
	result=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.out)
	states=$(awk '/states, stored/ { print $1; exit }' pan.out)
	seconds=$(awk '/elapsed time/ { print $4; exit }' pan.out)
}

right() { # MODEL [-DNAME...]
	if search "$@" && [ "$result" = 0 ]; then
		echo "model: $*: right, $states states, ${seconds:-0} s"
	else
		grep -hE 'assertion violated|invalid end state' pan.out 2>/dev/null
		echo "model: $*: WRONG"
		status=1
	fi
}

found() { # MODEL -DMISTAKE [-DNAME...]
	if search "$@" && [ "${result:-0}" -gt 0 ]; then
		echo "model: $*: found ($(sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/\1/p' pan.out | head -n 1))"
	else
		echo "model: $*: the mistake was NOT found"
		status=1
	fi
}

# Two threads of which one finds no slot until the other's is read; two with a slot each; one with two lives.
right ring.pml -DTHREADS=2 -DSLOTS=1 -DEVENTS=2
right ring.pml -DTHREADS=2 -DSLOTS=2 -DEVENTS=1
right ring.pml -DTHREADS=1 -DSLOTS=1 -DEVENTS=4 -DLIVES=2
right ring.pml -DHOLDS=1 -DTHREADS=1 -DSLOTS=1 -DEVENTS=3
right ring.pml -DHOLDS=1 -DTHREADS=1 -DSLOTS=1 -DEVENTS=2 -DLIVES=2
right ring.pml -DHOLDS=1 -DTHREADS=2 -DSLOTS=1 -DEVENTS=1
right stop.pml
right exchange.pml -DTHREADS=1 -DEVENTS=4
right exchange.pml -DTHREADS=2 -DEVENTS=1

found ring.pml -DMISTAKE_DEFINITIONS_BEFORE_HEAD -DTHREADS=1 -DEVENTS=2
found ring.pml -DMISTAKE_EVENT_BEFORE_DEFINITION -DTHREADS=1 -DEVENTS=2
found ring.pml -DMISTAKE_TAIL_BEFORE_COPY -DTHREADS=1 -DEVENTS=5
found ring.pml -DMISTAKE_FREE_BEFORE_DRAINED -DTHREADS=2 -DEVENTS=2
found ring.pml -DMISTAKE_STATE_AFTER_HEAD -DTHREADS=1 -DEVENTS=2
found ring.pml -DMISTAKE_HEAD_BEFORE_WORDS -DTHREADS=1 -DEVENTS=2
found ring.pml -DMISTAKE_LIVE_BEFORE_START -DTHREADS=1 -DEVENTS=2
found ring.pml -DMISTAKE_WRITER_AFTER_END -DTHREADS=2 -DEVENTS=1
found ring.pml -DMISTAKE_CLAIM_WITHOUT_COMPARE -DTHREADS=2 -DEVENTS=1
found ring.pml -DMISTAKE_ROOM -DTHREADS=1 -DEVENTS=5
found ring.pml -DMISTAKE_TAKEN_BACK_UNSAID -DHOLDS=1 -DTHREADS=1 -DEVENTS=2
found stop.pml -DMISTAKE_RELAXED_ROOM
found stop.pml -DMISTAKE_RELAXED_STATUS
found stop.pml -DMISTAKE_LIMIT_AFTER_LOOK
found exchange.pml -DMISTAKE_ROOM_LEFT -DEVENTS=5
found exchange.pml -DMISTAKE_COPY_BEFORE_MAPPING -DEVENTS=3
found exchange.pml -DMISTAKE_TAIL_AFTER_MAPPING -DEVENTS=5
found exchange.pml -DMISTAKE_NO_MARK -DEVENTS=3
found exchange.pml -DMISTAKE_PUBLISHED_ONLY -DEVENTS=3
found exchange.pml -DMISTAKE_NO_COMPARE -DEVENTS=3
found exchange.pml -DMISTAKE_HEAD_STORED -DEVENTS=3
found exchange.pml -DMISTAKE_GIVEN_BEFORE_MERGE -DEVENTS=3
found exchange.pml -DMISTAKE_LOSS_STORED -DEVENTS=5
found exchange.pml -DMISTAKE_LOSS_LOADED_AND_STORED -DEVENTS=5
exit $status
