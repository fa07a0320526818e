# begin.sh - sourced by fetch.sh and stage.sh, so by each script of this folder: the tree, errors, a folder for the work.
#
# Wants $here (this folder). Sets $top.

# shellcheck disable=SC2034 # for the script
top=$(cd "$here/../.." && pwd)

fail() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# Sets $work, a new folder, which goes when the script ends.
make_work() { # [FOLDER]: that which it is in
	work=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/work.XXXXXX") || exit 1
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' INT TERM HUP
}
