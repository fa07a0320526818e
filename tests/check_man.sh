#!/bin/sh
# check_man.sh - the man pages name what the programs have: options, formats, kinds of events, variables; and no options that
# they have not. Run by `make check-rules` with EVPROF_BUILD.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${EVPROF_BUILD:-build}
status=0
if [ ! -x "$build/evprof" ] || [ ! -x "$build/evprof-collector" ]; then
	echo "$build/evprof is not built; run make"
	exit 1
fi

section() { # FILE NAME: the lines of that section
	awk -v name="$2" '/^\.SH / { on = $0 == ".SH " name } on' "$1"
}

options() { # the options that the input names, without those that every program has
	grep -oE -e '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -e '--[a-z-]+' | sort -u | grep -vxE -e '--(help|version)'
}

# Where an option is explained, a line with its name follows a .TP.
explained() {
	awk 'before ~ /^\.T[PQ]/ { print } { before = $0 }' | options
}

want() { # WHERE WORD...: each is in the text of the input
	where=$1
	shift
	text=$(cat)
	for word; do
		printf '%s\n' "$text" | grep -qE -e "(^|[^a-z_-])$word($|[^a-z_-])" && continue
		echo "$where: nothing is said of $word"
		status=1
	done
}

page=docs/man/evprof.1
section "$page" FILTERS | explained >/dev/null || {
	echo "$page: no options under FILTERS"
	status=1
}
for verb in $("$build/evprof" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	name=$(echo "$verb" | tr '[:lower:]' '[:upper:]')
	help=$("$build/evprof" "$verb" --help)
	# shellcheck disable=SC2046 # the options are words
	want "$page, $name" $(printf '%s\n' "$help" | sed '/^usage:/d' | options) <<EOF
$(section "$page" "$name"; section "$page" FILTERS)
EOF
	# shellcheck disable=SC2046
	want "evprof $verb --help" $(section "$page" "$name" | explained) <<EOF
$help
EOF
done
# shellcheck disable=SC2046
want "$page, EXPORT" $("$build/evprof" export --help | sed -n 's/^                          \([a-z-]*\)  *[A-Za-z].*/\1/p') <<EOF
$(section "$page" EXPORT)
EOF
# shellcheck disable=SC2046
want docs/man/evprof-collector.1 $("$build/evprof-collector" --help | sed '/^usage:/d' | options) <docs/man/evprof-collector.1

kinds=$(awk '/define WIRE_KIND_NAMES/ { on = 1 } on { print } on && /}/ { exit }' include/evprof/wire.h |
	grep -oE '"[a-z_]+"' | tr -d '"' | grep -vxE 'none|time|extended|cpu|native_stack|at_line|other_call|at_instruction|stack_change|realloc_begin')
# shellcheck disable=SC2086
want "$page, DUMP" $kinds <<EOF
$(section "$page" DUMP)
EOF
# shellcheck disable=SC2046
want "docs/man/evprof.7, EVENTS" $(echo "$kinds" | grep -vxE 'gap|stack|frame|open') <<EOF
$(section docs/man/evprof.7 EVENTS)
EOF
variables=$(sed -n 's/^#define ENV_[A-Z_]* "\(EVPROF[A-Z_]*\)"$/\1/p' include/evprof/control.h)
for variable in $variables; do
	grep -qw "$variable" docs/man/evprof.7 && continue
	echo "docs/man/evprof.7: nothing is said of $variable"
	status=1
done
exit $status
