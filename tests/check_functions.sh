#!/bin/sh
# check_functions.sh - no function of evprof is longer than 80 lines. Run by `make check-rules`.
#
# Lines are counted from the opening brace to the closing one, both at the start of a line, which the format asks for.
set -u
cd "$(dirname "$0")/.." || exit 1
find include preload collector tools tests -name '*.[ch]' | sort | xargs awk -v limit=80 '
	FNR == 1 { start = 0 }
	/^{$/ { start = FNR; name = before }
	/^[A-Za-z].*\) {$/ { start = FNR; name = $0 }
	/^}$/ && start {
		lines = FNR - start + 1
		if (lines > limit) {
			printf "%s:%d: %d lines, at most %d: %s\n", FILENAME, start, lines, limit, name
			broken = 1
		}
		start = 0
	}
	{ before = $0 }
	END { exit broken }
'
