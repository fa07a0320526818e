#!/bin/sh
# free-threaded.sh [--build] [VERSION...] - prints the free-threaded CPythons that are there (PEP 703); builds those that are not.
#
#     tests/interpreters/free-threaded.sh                    the paths of those that are there; called by find.sh
#     tests/interpreters/free-threaded.sh --build 3.13       builds 3.13t first, from Debian's source package: minutes
#
# Debian has none as a package. The sources are fetched by apt-get source with the package list and keys of the root that
# forky.sh makes, and nothing is installed but into the folder below. Takes its path from EVPROF_TEST_FREE_THREADED.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/scripts/bound.sh
. "$here/../../tools/scripts/bound.sh"
folder=${EVPROF_TEST_FREE_THREADED:-${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/evprof/free-threaded}

fail() {
	echo "free-threaded.sh: no Python $version without the GIL: $1" >&2
	exit 1
}

# Unpacks the source package into ./source.
fetch() {
	root=$("$here/forky.sh") || fail "there is no root to take the package lists from"
	sed -n 's/^deb /deb-src /p' "$root/etc/apt/sources.list" >sources.list
	mkdir -p state/lists/partial cache/archives/partial
	set -- -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::trustedparts="$root/etc/apt/trusted.gpg.d" -o Dir::State="$PWD/state" \
		-o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root
	{ bounded 300 apt-get "$@" update && bounded 600 apt-get "$@" source --download-only "python$version" &&
		dpkg-source -x ./python"$version"_*.dsc source; } >>"$folder/$version.log" 2>&1 ||
		fail "its sources cannot be had; see $folder/$version.log"
}

# Plain -O2: what is tested is evprof. Without pip, which Debian's sources refuse to install.
compile() {
	{ cd source && ./configure --disable-gil --without-ensurepip --prefix="$folder/${version}t" CFLAGS=-O2 &&
		nice make -j"$(nproc)" && nice make DESTDIR="$work/made" install; } >>"$folder/$version.log" 2>&1 ||
		fail "it does not compile; see $folder/$version.log"
	cd "$work" || fail "$work is gone"
}

# Moved to its place as a whole, so that an interrupted build is never taken for an interpreter.
build() {
	echo "free-threaded.sh: building Python $version without the GIL in $folder (some minutes)" >&2
	mkdir -p "$folder" || fail "cannot make $folder"
	rm -f "$folder/$version.log"
	work=$(mktemp -d "$folder/build.XXXXXX") || fail "cannot make a directory in $folder"
	trap 'rm -rf "$work"' EXIT
	cd "$work" || fail "cannot enter $work"
	fetch
	compile
	mv -T "$work/made$folder/${version}t" "$folder/${version}t" || fail "cannot move it to $folder"
	cd / && rm -rf "$work"
	trap - EXIT
	rm -f "$folder/$version.log"
}

if [ "${1:-}" = --build ]; then
	shift
	for version in "${@:-3.13}"; do
		[ -x "$folder/${version}t/bin/python${version}t" ] || build
	done
fi
for python in "$folder"/*t/bin/python3.*t; do
	[ -x "$python" ] && echo "$python"
done
exit 0
