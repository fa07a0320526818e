#!/bin/sh
# sdist.sh - writes the source distribution into dist/: the tree, with pyproject.toml, LICENSE and CHANGELOG.md at its top.
# Called by `make sdist`. pip builds it with the machine's compiler and libraries.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
make_work
fetch_tools
stage "$work/tree"
mkdir -p "$top/dist"
rm -f "$top/dist"/evprof-*.tar.gz
(cd "$work/tree" && "$python" -m hatchling build -t sdist -d "$top/dist" >"$work/log" 2>&1) || fail "no sdist: $(cat "$work/log")"
echo "dist/evprof-$(version_here).tar.gz"
