# stage.sh - sourced: the source tree as the sdist has it, with the packaging files at its top.
#
# Wants $here (this folder).

# shellcheck source=tools/packaging/begin.sh
. "$here/begin.sh"

# What git knows of it; all of it in an unpacked sdist, and where git is not installed or does not trust the folder's owner.
tree_files() {
	if [ -e .git ] && git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -co --exclude-standard
	else
		find . -type f ! -path './build*' ! -path './dist/*' ! -path './.git/*' ! -path ./.git ! -name '*.pyc' ! -path ./PKG-INFO
	fi
}

stage() { # FOLDER: a new one
	mkdir -p "$1" || exit 1
	(cd "$top" && tree_files | tar cf - --no-recursion -T - | tar xf - -C "$1") && [ -e "$1/include/evprof/version.h" ] ||
		fail "the tree cannot be copied to $1"
	for file in pyproject.toml LICENSE CHANGELOG.md; do
		cp "$here/$file" "$1/$file" || exit 1
	done
	# An index shows it without the tree.
	sed '/^!\[.*](docs\//d' "$top/README.md" >"$1/README.md"
}

version_here() {
	sed -n 's/.*EVPROF_VERSION "\(.*\)".*/\1/p' "$top/include/evprof/version.h"
}

# Files in archives have the time of the commit, so that the same tree gives the same archive.
: "${SOURCE_DATE_EPOCH:=$(cd "$top" && git log -1 --format=%ct 2>/dev/null || echo 1700000000)}"
export SOURCE_DATE_EPOCH
