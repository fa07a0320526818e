# fetch.sh - sourced by the scripts of this folder: pinned tools and sources, in the user's cache. Nothing else changes.
#
# Wants $here (this folder). Sets $store, $tools, $python and $zig. pins/tools.txt and pins/zig.txt are packages of Python's
# index, fetched by pip; pins/sources.txt are source archives of a Debian mirror, which apt knows (or EVPROF_DEBIAN_MIRROR).
# Each has its hash.
# All fetching together takes EVPROF_SETUP_SECONDS (900) at most.

# shellcheck source=tools/packaging/begin.sh
. "$here/begin.sh"
cache=${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/evprof
store=$cache/packaging
# shellcheck source=tools/scripts/bound.sh
. "$here/../scripts/bound.sh"
# shellcheck source=tests/interpreters/pip.sh
. "$here/../../tests/interpreters/pip.sh"
key_of() { # FILE...
	cat "$@" | sha256sum | cut -c1-12
}
tools=$store/tools-$(key_of "$pins/tools.txt")
zig_folder=$store/zig-$(key_of "$pins/zig.txt")
python=$cache/pip/bin/python
zig=$zig_folder/ziglang/zig
export PYTHONPATH="$tools" PYTHONDONTWRITEBYTECODE=1

fetch_packages() { # FOLDER PINS
	[ -e "$1/.done" ] && return
	have_pip || fail "pip could not be fetched: $no_pip"
	mkdir -p "$store" && new=$(mktemp -d "$store/new.XXXXXX") || exit 1
	echo "${0##*/}: fetching the packages of ${2##*/}" >&2
	if ! PYTHONPATH='' pip 600 install --only-binary :all: --no-deps --require-hashes --no-compile --target "$new" -r "$2" \
		>"$store/pip.log" 2>&1; then
		rm -rf "$new"
		fail "the packages of ${2##*/} could not be fetched; see $store/pip.log"
	fi
	touch "$new/.done"
	chmod 755 "$new"
	mv -T "$new" "$1" 2>/dev/null || rm -rf "$new" # another one was quicker
}

fetch_tools() {
	fetch_packages "$tools" "$pins/tools.txt"
}

fetch_zig() {
	fetch_packages "$zig_folder" "$pins/zig.txt"
}

debian_mirror() {
	[ -n "${EVPROF_DEBIAN_MIRROR:-}" ] && echo "$EVPROF_DEBIAN_MIRROR" && return
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
		grep -v security | head -n 1
}

download() { # ADDRESS FILE
	if [ -z "${EVPROF_DEBIAN_MIRROR:-}" ] && [ -x /usr/lib/apt/apt-helper ]; then
		bounded 120 /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -qq download-file "$1" "$2"
	elif command -v curl >/dev/null; then
		bounded 120 curl -fsSL -o "$2" "$1"
	else
		bounded 120 wget -qO "$2" "$1"
	fi
}

# Prints the path of the archive.
fetch_source() { # NAME
	# shellcheck disable=SC2046 # words
	set -- $(grep "^$1 " "$pins/sources.txt")
	[ $# = 5 ] || fail "pins/sources.txt has no such library"
	archive=$store/sources/${4##*/}
	if ! [ -e "$archive" ]; then
		mirror=$(debian_mirror)
		[ -n "$mirror" ] || fail "apt knows no Debian mirror; set EVPROF_DEBIAN_MIRROR"
		mkdir -p "$store/sources"
		download "${mirror%/}/pool/main/$4" "$archive.part" >&2 || fail "$1 $2 could not be fetched from the Debian mirror"
		echo "$5  $archive.part" | sha256sum -c --quiet >&2 || fail "$archive.part has another hash than pins/sources.txt"
		mv "$archive.part" "$archive"
	fi
	echo "$archive"
}
