#!/bin/sh
# release_check.sh - whether what is in dist/ can be released: version, tag, changelog, licences, contents, tags of the wheels,
# the index's checks, and a trial of each wheel that this machine runs. Called by `make release-check`, which builds first.
#
# One line for each thing that is wrong; status 1 if there is one.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
cd "$top" || exit 1
version=$(version_here)
make_work
status=0
fetch_tools

wrong() {
	echo "release-check: $*"
	status=1
}

# ---- version ----

changed=$(sed -n 's/^## //p' "$here/CHANGELOG.md" | head -n 1)
[ "$changed" = "$version" ] || wrong "CHANGELOG.md begins with $changed, include/evprof/version.h has $version"
tag=$(git tag --points-at HEAD 2>/dev/null | grep '^v' | head -n 1)
if [ -n "$tag" ]; then
	[ "$tag" = "v$version" ] || wrong "the commit has the tag $tag, not v$version"
	[ -z "$(git status --porcelain)" ] || wrong "the tree has changes that are not committed"
else
	echo "release-check: the commit has no tag yet; a release has v$version"
fi
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null && [ -z "$tag" ]; then
	wrong "v$version was released from another commit"
fi

# ---- archives ----

source=dist/evprof-$version.tar.gz
[ -s "$source" ] || wrong "$source is missing"
for file in pyproject.toml LICENSE CHANGELOG.md README.md Makefile PKG-INFO include/evprof/version.h tools/packaging/pins/sources.txt \
	preload/evprof.map; do
	tar tzf "$source" | grep -qx "evprof-$version/$file" || wrong "$source has no $file"
done
# make test and make docs work in it.
git ls-files docs tests 2>/dev/null | grep -v '^tests/suites/' | sed "s|^|evprof-$version/|" | sort >"$work/wanted"
absent=$(tar tzf "$source" | sort | comm -13 - "$work/wanted" | head -n 5 | tr '\n' ' ')
[ -z "$absent" ] || wrong "$source has no $absent"
tar xzOf "$source" "evprof-$version/PKG-INFO" | grep -qx "Version: $version" || wrong "$source: another version"

member() { # WHEEL NAME: its text
	"$python" -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' "$1" "$2"
}

check_licences() { # WHEEL
	notice=$(member "$1" "evprof-$version.dist-info/licenses/LICENSES/NOTICE.txt")
	member "$1" "evprof-$version.dist-info/METADATA" >"$work/metadata"
	grep -v '^#' "$pins/sources.txt" >"$work/sources"
	while read -r name number licence _; do
		echo "$notice" | grep -q "  $name $number  *$licence" || wrong "$1: NOTICE.txt does not name $name $number, $licence"
		grep -qE "^License-Expression:.*\\b$licence\\b" "$work/metadata" || wrong "$1: its licence has no $licence ($name)"
		grep -q "licenses/LICENSES/$name.*\.txt" "$work/list" || wrong "$1: no text of the licence of $name"
	done <"$work/sources"
	grep -q 'licenses/LICENSE$' "$work/list" || wrong "$1: no LICENSE"
}

check_programs() { # WHEEL MACHINE
	case $2 in x86_64) elf=X86-64 ;; *) elf=AArch64 ;; esac
	rm -rf "$work/open" && mkdir "$work/open" && "$python" -m zipfile -e "$1" "$work/open"
	for file in evprof evprof-collector evprof-symbols libevprof.so libevprof-reader.so; do
		path=$work/open/evprof/_bin/$file
		[ -s "$path" ] || {
			wrong "$1 has no $file"
			continue
		}
		LC_ALL=C readelf -hW "$path" | grep -q "Machine:.*$elf" || wrong "$1: $file is not for $2"
		for needed in $(readelf -dW "$path" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
			case $needed in
			libc.so.6 | libdl.so.2 | libpthread.so.0 | libm.so.6 | ld-linux*.so.*) ;;
			*) wrong "$1: $file needs $needed" ;;
			esac
		done
		grep -aqF "$top" "$path" && wrong "$1: $file names $top"
		grep -aqF "$cache" "$path" && wrong "$1: $file names $cache"
	done
	"$python" -m auditwheel show "$1" 2>&1 | tr '\n' ' ' | grep -q "platform tag: *\"manylinux_2_17_$2\"" ||
		wrong "$1: auditwheel does not confirm its tag"
}

count=0
for wheel in dist/evprof-"$version"-py3-none-manylinux*.whl; do
	[ -e "$wheel" ] || continue
	count=$((count + 1))
	machine=${wheel%.whl}
	machine=$(echo "$machine" | grep -oE '(x86_64|aarch64)$')
	"$python" -m zipfile -l "$wheel" | awk '{ print $1 }' >"$work/list"
	check_licences "$wheel"
	check_programs "$wheel" "$machine"
	if [ "$machine" = "$(uname -m)" ]; then
		sh "$here/trial.sh" "$wheel" >"$work/trial" 2>&1 || wrong "$wheel: $(grep -A9 '^fails' "$work/trial")"
	fi
done
[ "$count" -gt 0 ] || wrong "no wheel of version $version in dist/"
[ "$(find dist -maxdepth 1 -name 'evprof-*' | wc -l)" = $((count + 1)) ] || wrong "dist/ has other files of evprof, too"
"$python" -m twine check --strict "$source" dist/*.whl >"$work/twine" 2>&1 || wrong "twine: $(cat "$work/twine")"

# ---- the sdist builds with the machine's compiler, without the network ----

if built=$(sh "$here/sdist.sh" --build "$source" "$work/built" 2>&1); then
	sh "$here/trial.sh" "$built" >"$work/trial" 2>&1 || wrong "the sdist's wheel: $(grep -A9 '^fails' "$work/trial")"
else
	wrong "$built"
fi
[ $status = 0 ] && echo "release-check: evprof $version can be released: $count wheels and the source"
exit $status
