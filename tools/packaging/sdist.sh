#!/bin/sh
# sdist.sh - writes the source distribution into dist/: the tree, with pyproject.toml, LICENSE and CHANGELOG.md at its top.
# Called by `make sdist`. pip builds it with the machine's compiler and libraries.
# sdist.sh --build SDIST FOLDER - does as pip does, without the network: writes its wheel into FOLDER and prints the path.
# pip builds in a folder whose path has a space, as a user's may have.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
make_work
fetch_tools
if [ "${1:-}" = --build ]; then
	mkdir "$work/a space" || exit 1
	TMPDIR="$work/a space" "$python" -m pip wheel --quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check -w "$3" "$2" >"$work/log" 2>&1 ||
		fail "$2 does not build: $(tail -n 20 "$work/log")"
	echo "$3"/*.whl
	exit 0
fi
stage "$work/tree"
mkdir -p "$top/dist"
rm -f "$top/dist"/evprof-*.tar.gz
(cd "$work/tree" && "$python" -m hatchling build -t sdist -d "$top/dist" >"$work/log" 2>&1) || fail "no sdist: $(cat "$work/log")"
echo "dist/evprof-$(version_here).tar.gz"
