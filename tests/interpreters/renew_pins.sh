#!/bin/sh
# renew_pins.sh [--wanted] [VERSION | VERSION-frontends | VERSION-peaks | VERSION-peers | VERSION-stores | viztracer | pyperformance | pprofile | fleet | npm | packaging | ci | docs]... - writes the pins anew: the newest packages of the indexes, now.
#
#     tests/interpreters/renew_pins.sh               all of pins/; some minutes, and a GB to fetch
#     tests/interpreters/renew_pins.sh 3.15 npm      pins/3.15.txt and pins/npm only
#     tests/interpreters/renew_pins.sh packaging     tools/packaging/pins, what builds packages of evprof
#     tests/interpreters/renew_pins.sh ci            tools/packaging/pins/ci.txt, what checks the files for the forges
#     tests/interpreters/renew_pins.sh docs          tools/docs/pins.txt, what makes the site
#     tests/interpreters/renew_pins.sh --wanted 3.15 prints what is wanted for a version, and changes nothing
#
# For people; what it changes is committed, after a run of the tests. pins/3.N.txt has each package and all it depends
# on, with the hashes of its wheels for x86_64 and aarch64; a package without a wheel for a version is named there as missing.
# pins/npm has package.json (edit it to want another) and npm's lock file, without the addresses of the registry. pip and
# npm ask the indexes that they are set up for (PIP_INDEX_URL, npm's registry); PIP_CONSTRAINT keeps versions back.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/evprof
# shellcheck source=tools/scripts/bound.sh
. "$here/../../tools/scripts/bound.sh"
# shellcheck source=tests/interpreters/pip.sh
. "$here/pip.sh"
EVPROF_SETUP_END=$(($(date +%s) + 7200))
peaks="3.12-peaks 3.13-peaks"
peers=3.13-peers
versions="3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.13t 3.14 3.15"
frontends="3.8-frontends 3.9-frontends 3.10-frontends 3.11-frontends 3.12-frontends 3.13-frontends 3.13t-frontends 3.14-frontends
	3.15-frontends"
services="3.8-services 3.11-services 3.13-services"
tables="3.11-tables 3.13-tables"
stores=3.11-stores

fail() {
	echo "renew_pins.sh: $*" >&2
	exit 1
}

# For programs under evprof; what trio wants until 3.10, because pip asks its own version of Python what a dependency is
# for; readers of pstats files, which want 3.9; for the package in tools/python, on two versions, because they are large.
# VERSION; VERSION-frontends: pytest and Jupyter, in a folder of their own; VERSION-services: web frameworks, their servers and
# tracers, on three versions; VERSION-tables: what reads folders of tables; VERSION-stores: a server of S3; VERSION-peaks: memray, and what the programs use whose memory is compared with memray's;
# VERSION-peers: other profilers, and what a program that is profiled wants.
wanted() {
	case $1 in
	3.12-peaks) echo "memray numpy<2" && return ;;
	3.13-peaks) echo "memray pandas scikit-learn lxml pillow sqlalchemy" && return ;;
	*-peaks) return ;;
	3.13-peers) echo "viztracer trace0 memray py-spy scalene pyinstrument line_profiler yappi sqlglot" && return ;;
	*-peers) return ;;
	3.8-services | 3.11-services | 3.13-services)
		list="flask django fastapi gunicorn uvicorn celery opentelemetry-sdk sentry-sdk"
		case $1 in 3.8-* | 3.9-* | 3.10-*) list="$list exceptiongroup typing_extensions importlib_metadata zipp backports.zoneinfo" ;; esac
		echo "$list"
		return
		;;
	*-services) return ;;
	3.11-tables | 3.13-tables) echo duckdb && return ;;
	*-tables) return ;;
	3.11-stores) echo "moto[s3] flask flask-cors" && return ;;
	*-stores) return ;;
	3.6-* | 3.7-*) return ;;
	*-frontends)
		list="pytest pytest-xdist pytest-cov ipykernel nbclient"
		case $1 in 3.8-* | 3.9-* | 3.10-*) list="$list exceptiongroup tomli typing_extensions" ;; esac
		case $1 in 3.8-* | 3.9-*) list="$list importlib_metadata zipp" ;; esac
		case $1 in 3.8-*) list="$list importlib_resources pkgutil_resolve_name backcall pickleshare" ;; esac
		echo "$list"
		return
		;;
	esac
	list="greenlet gevent trio uvloop coverage sympy networkx numpy"
	case $1 in 3.7 | 3.8 | 3.9 | 3.10) list="$list exceptiongroup typing_extensions" ;; esac
	case $1 in 3.6 | 3.7 | 3.8 | *t) ;; *) list="$list snakeviz gprof2dot" ;; esac
	case $1 in 3.11 | 3.13) list="$list pandas pyarrow zstandard polars matplotlib mypy" ;; esac
	echo "$list"
}

download() { # MACHINE FOLDER ARGUMENT...: the wheels into a folder
	wheels_for "$version" "$1"
	target=$2
	shift 2
	# shellcheck disable=SC2086 # the options are words
	pip 300 download $wheels --dest "$target" "$@" >>"$work/log" 2>&1
}

pin_of() { # WHEEL: PACKAGE-VERSION-TAGS
	basename "$1" | awk -F - '{ print $1 "==" $2 }'
}

hash_of() {
	printf ' \\\n    --hash=sha256:%s' "$(sha256sum "$1" | cut -d' ' -f1)"
}

# The pin of a wheel of x86_64: what its name says, and its hash with that of the other machine's.
write_pin() { # WHEEL
	pin=$(pin_of "$1")
	rm -rf "$work/one"
	case $1 in
	*-any.whl) echo "$pin$(hash_of "$1")" ;;
	*)
		if download aarch64 "$work/one" --no-deps "$pin"; then
			echo "$pin$(hash_of "$1")$(hash_of "$work"/one/*.whl)"
		else
			echo "$pin ; platform_machine == \"x86_64\"$(hash_of "$1")"
		fi
		;;
	esac
}

# Sets $found and $missing. Where one package cannot be had, pip tries every old one of the others: it is asked for each
# alone then.
find_wheels() { # PACKAGE...
	missing=
	found=$*
	rm -rf "$work/all"
	download x86_64 "$work/all" "$@" && return
	found=
	for package in "$@"; do
		if download x86_64 "$work/alone" "$package"; then
			found="$found $package"
		else
			missing="$missing $package"
		fi
	done
	rm -rf "$work/all"
	# shellcheck disable=SC2086 # words
	download x86_64 "$work/all" $found || fail "pip finds no common versions for $version; see $work/log"
}

renew() { # FILE PACKAGE...
	file=$1
	shift
	find_wheels "$@"
	{
		echo "# Made by tests/interpreters/renew_pins.sh."
		[ -z "$missing" ] || echo "# missing:$missing"
		for wheel in "$work/all"/*.whl; do
			write_pin "$wheel"
		done
	} >"$work/pins"
	mv "$work/pins" "$file"
	echo "renew_pins.sh: $version: $(grep -c == "$file") packages${missing:+, missing:$missing}" >&2
}

# PACKAGE: one wheel serves all machines: nobody runs a part of it that has a machine's code.
renew_wheel() {
	version=3.11
	download x86_64 "$work/$1" --no-deps "$1" || fail "no $1 from the index; see $work/log"
	{
		echo "# Made by tests/interpreters/renew_pins.sh."
		printf '%s%s\n' "$(pin_of "$work/$1"/*.whl)" "$(hash_of "$work/$1"/*.whl)"
	} >"$pins/$1.txt"
}

# What builds packages of evprof. twine is for one check of it; what it would upload with is left out.
renew_packaging() {
	version=3.10
	set -- ziglang auditwheel pyelftools packaging hatchling pathspec pluggy trove-classifiers tomli twine readme-renderer nh3 \
		docutils pygments requests requests-toolbelt urllib3 certifi idna rich markdown-it-py mdurl rfc3986 id
	download x86_64 "$work/packaging" --no-deps "$@" || fail "not all of $* can be had; see $work/log"
	for file in zig tools; do
		echo "# Made by tests/interpreters/renew_pins.sh." >"$work/$file.txt"
	done
	for wheel in "$work/packaging"/*.whl; do
		case $wheel in */ziglang-*) file=zig ;; *) file=tools ;; esac
		write_pin "$wheel" >>"$work/$file.txt"
	done
	mv "$work/zig.txt" "$work/tools.txt" "$here/../../tools/packaging/pins/"
}

# What runs on several versions of Python: the packages that 3.11 needs, with the hashes of the wheels for each version.
renew_for_several() { # FILE PACKAGE...
	file=$1
	shift
	version=3.11
	rm -rf "$work/several"
	download x86_64 "$work/several" "$@" || fail "not all of $* can be had; see $work/log"
	for wheel in "$work/several"/*.whl; do
		pin_of "$wheel"
	done | sort -u >"$work/names"
	for version in 3.11 3.12 3.13 3.14; do
		for machine in x86_64 aarch64; do
			# shellcheck disable=SC2046 # words
			download "$machine" "$work/several" --no-deps $(cat "$work/names") || fail "not all for $version; see $work/log"
		done
	done
	{
		echo "# Made by tests/interpreters/renew_pins.sh. For Python 3.11 to 3.14."
		while read -r pin; do
			printf '%s' "$pin"
			for wheel in "$work/several/$(echo "$pin" | sed 's/==/-/')"-*.whl; do
				hash_of "$wheel"
			done
			echo
		done <"$work/names"
	} >"$work/pins"
	mv "$work/pins" "$here/../../$file"
}

# FILE PACKAGE: what comes as source only.
renew_source() {
	mkdir -p "$work/$1"
	pip 600 download --no-deps --no-binary :all: --no-build-isolation --dest "$work/$1" "$2" >>"$work/log" 2>&1 ||
		fail "no $2 from the index; see $work/log"
	{
		echo "# Made by tests/interpreters/renew_pins.sh."
		basename "$work/$1"/*.tar.gz .tar.gz | sed 's/-/==/' | tr -d '\n'
		hash_of "$work/$1"/*.tar.gz
		echo
	} >"$pins/$1.txt"
}

renew_npm() {
	rm -f "$pins/npm/package-lock.json"
	npm install --prefix "$pins/npm" --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts \
		--no-audit --no-fund >>"$work/log" 2>&1 || fail "npm finds no versions; see $work/log"
}

if [ "${1:-}" = --wanted ]; then
	wanted "$2"
	exit
fi
work=$(mktemp -d) || exit 1
trap '[ $? = 0 ] && rm -rf "$work"' EXIT
have_pip || fail "$no_pip"
[ $# -gt 0 ] || {
	# shellcheck disable=SC2086 # words
	set -- $versions $frontends $services $tables $stores $peaks $peers viztracer pyperformance pprofile fleet npm packaging ci docs
}
for one in "$@"; do
	case $one in
	npm) renew_npm ;;
	viztracer | pyperformance) renew_wheel "$one" ;;
	fleet) renew_source fleet 'pyspark>=4,<5' ;;
	pprofile) renew_source pprofile pprofile ;;
	packaging) renew_packaging ;;
	ci) renew_for_several tools/packaging/pins/ci.txt check-jsonschema ;;
	docs) renew_for_several tools/docs/pins.txt sphinx myst-parser furo ;;
	3.*)
		version=${one%-*}
		# shellcheck disable=SC2046 # words
		renew "$pins/$one.txt" $(wanted "$one")
		;;
	*) fail "no pins of \"$one\"; one of: $versions $frontends $services $tables $stores $peaks $peers viztracer pyperformance pprofile fleet npm packaging ci docs" ;;
	esac
done
