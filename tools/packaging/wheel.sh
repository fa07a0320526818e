#!/bin/sh
# wheel.sh [MACHINE]... - builds wheels of evprof into dist/, for x86_64 and aarch64 or for those named. Called by `make wheel`.
# wheel.sh --of BUILD FOLDER - packs what make has built in BUILD, for this machine only, into a wheel in FOLDER. For tests.
#
# A wheel is for every Python 3, and for every Linux with glibc 2.17 or later: zig compiles against that version's symbols, and
# what is not in glibc is in the programs (libraries.sh, NOTICE.txt). auditwheel confirms the tag.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
glibc=2.17
jobs=${EVPROF_PACKAGING_JOBS:-$(nproc)}
make_work

build() { # MACHINE
	libraries=$("$here/libraries.sh" "$1-linux-gnu.$glibc") || exit 1
	binaries=$top/build-wheel-$1 # for make a relative folder: it splits a path that has a space
	CFLAGS="-O2 -ffunction-sections -fdata-sections" make -C "$top" --no-print-directory -j "$jobs" B="${binaries##*/}" CC="$libraries/cc" \
		CPPFLAGS=-DEVPROF_STATIC_UNWIND LDFLAGS="-s -Wl,--gc-sections" \
		preload_libraries="-lunwind_static -ldl -lpthread" symbols_libraries="-ldw -lelf -leu -ldisasm -llzma -lzstd -lz -ldl" \
		all >"$binaries.log" 2>&1 || fail "evprof does not build for $1; see $binaries.log"
}

pack() { # MACHINE
	stage "$work/$1"
	mkdir "$work/$1/LICENSES"
	cp "$here/NOTICE.txt" "$libraries"/LICENSES/*.txt "$work/$1/LICENSES/"
	# What is in it counts, not only evprof.
	sed -i 's/^license = "MIT"/license = "MIT AND 0BSD AND BSD-3-Clause AND LGPL-3.0-or-later AND Zlib"/' "$work/$1/pyproject.toml"
	wheel_of "$work/$1" "$binaries" "$(tags "$1")" "$work/dist-$1"
}

tags() { # MACHINE
	tag=manylinux_$(echo $glibc | tr . _)_$1
	[ $glibc = 2.17 ] && tag=$tag.manylinux2014_$1
	echo "$tag"
}

wheel_of() { # TREE BINARIES TAGS FOLDER: sets $wheel
	(cd "$1" && EVPROF_WHEEL_BINARIES=$2 EVPROF_WHEEL_PLATFORM=$3 "$python" -m hatchling build -t wheel -d "$4" >"$work/log" 2>&1) ||
		fail "no wheel: $(cat "$work/log")"
	wheel=$(echo "$4"/*.whl)
}

# The tag that the code allows is the one that it has.
audit() { # MACHINE
	"$python" -m auditwheel show "$wheel" >"$work/audit" 2>&1 || fail "auditwheel: $(cat "$work/audit")"
	tr '\n' ' ' <"$work/audit" | grep -q "platform tag: *\"manylinux_$(echo $glibc | tr . _)_$1\"" ||
		fail "auditwheel does not confirm glibc $glibc: $(cat "$work/audit")"
}

fetch_tools
if [ "${1:-}" = --of ]; then
	stage "$work/tree"
	wheel_of "$work/tree" "$(realpath "$2")" "linux_$(uname -m)" "$(realpath "$3")"
	echo "$wheel"
	exit 0
fi
[ $# -gt 0 ] || set -- x86_64 aarch64
mkdir -p "$top/dist"
for machine; do
	build "$machine"
	pack "$machine"
	audit "$machine"
	rm -f "$top/dist"/evprof-*"_$machine.whl"
	cp "$wheel" "$top/dist/"
	echo "dist/${wheel##*/}"
done
