#!/bin/sh
# forky.sh - makes the Debian root that holds CPython 3.14 and 3.15, where it is not there yet, and prints its path.
#
# Called by find.sh and by people. Silent and quick where the root exists; otherwise says on stderr what it does, and
# ends with status 1 and one line where it cannot, or not within EVPROF_SETUP_SECONDS (900). Takes the path of the root
# from EVPROF_TEST_ROOT.
set -u

# shellcheck source=tools/scripts/bound.sh
. "$(dirname "$0")/../../tools/scripts/bound.sh"
root=${EVPROF_TEST_ROOT:-${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/evprof/forky}
packages=python3.14,python3.15,python3-memray,libjansson4,libzstd1,libdw1t64,libunwind8,zlib1g,libasan8,libubsan1

fail() {
	echo "forky.sh: no Python 3.14 and 3.15: $1" >&2
	exit 1
}

# The names are checked as links too: Debian's are absolute in places, and we are outside of the root.
complete() {
	[ -e "$1/usr/bin/python3.14" ] && [ -e "$1/usr/bin/python3.15" ]
}

if complete "$root"; then
	echo "$root"
	exit 0
fi
[ "${1:-}" = --no-build ] && fail "$root is not there (run tests/interpreters/forky.sh)"
[ "$(id -u)" = 0 ] || fail "debootstrap needs root; run this script once as root"
command -v debootstrap >/dev/null || fail "install debootstrap"

# A debootstrap older than the release does not know its name; all releases use the script of sid.
script=$(dpkg -L debootstrap 2>/dev/null | grep '/scripts/sid$')
scripts=$(dirname "${script:-/usr/share/debootstrap/scripts/sid}")
[ -e "$scripts/sid" ] || fail "debootstrap has no script for sid in $scripts"
[ -e "$scripts/forky" ] || ln -s sid "$scripts/forky" || fail "cannot write to $scripts"

# Built next to its place and then moved there, so that an interrupted build is never taken for a root.
mkdir -p "$(dirname "$root")" || fail "cannot make $(dirname "$root")"
work=$(mktemp -d "$(dirname "$root")/forky.XXXXXX") || fail "cannot make a directory next to $root"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
echo "forky.sh: building $root (a few minutes)" >&2
# What it mounts in the new root stands in a mount namespace of its own, so that nothing is left there when it is ended.
bounded 600 unshare --mount debootstrap --variant=minbase --include="$packages" forky "$work" >"$root.log" 2>&1 || {
	status=$?
	[ "$status" = 124 ] && fail "debootstrap was ended, its time is over; to go on: sh tests/interpreters/forky.sh"
	fail "debootstrap failed; see $root.log"
}
complete "$work" || fail "the packages hold no python3.14 and python3.15; see $root.log"
chmod 755 "$work"
mv -T "$work" "$root" || fail "cannot move the root to $root (a partial one there? remove it)"
trap - EXIT
rm -f "$root.log"
echo "$root"
