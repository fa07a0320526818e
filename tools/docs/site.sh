#!/bin/sh
# site.sh OUTPUT - the HTML site of README.md, docs/, the man pages and the docstrings of the package. Called by `make docs`.
#
# Sphinx, MyST and the theme are pinned (pins.txt) and stand in the user's cache; mandoc reads the man pages. A warning, such
# as that of a link without a target, is an error.
set -u

docs=$(cd "$(dirname "$0")" && pwd)
root=$docs/../..
here=$docs/../packaging # for fetch.sh
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
output=${1:?usage: site.sh OUTPUT}

command -v mandoc >/dev/null || fail "mandoc is not installed; run: sh tools/scripts/setup.sh docs"
packages=$store/docs-$(key_of "$docs/pins.txt")
fetch_packages "$packages" "$docs/pins.txt"

make_work
source=$work
cp "$docs/conf.py" "$source/" && cp -r "$root"/docs/*.md "$root/docs/tutorials" "$root/docs/images" "$source/" || exit 1
cp "$root/tools/packaging/CHANGELOG.md" "$source/changelog.md" || exit 1

# Links of the site: man pages are pages like others, and the README's links are those of the folder above.
sed -i 's|](man/\([^)]*\))|](\1.md)|g' "$source"/*.md || exit 1
{
	sed 's|](docs/man/\([^)]*\))|](\1.md)|g; s|](docs/|](|g' "$root/README.md"
	cat "$docs/pages.md"
} >"$source/index.md"

for page in "$root"/docs/man/*.[17]; do
	name=$(basename "$page")
	{
		printf '# %s(%s)\n\n```{raw} html\n' "${name%.*}" "${name##*.}"
		mandoc -T html -O fragment "$page" | sed 's|\(</*h\)1|\12|g' || fail "mandoc cannot read $page"
		printf '```\n'
	} >"$source/$name.md"
done
cp "$docs/api.md" "$source/api.md" || exit 1

version=$(sed -n 's/^#define EVPROF_VERSION "\(.*\)"$/\1/p' "$root/include/evprof/version.h")
mkdir -p "$output" || exit 1
EVPROF_SITE_VERSION=$version EVPROF_SITE_PACKAGE=$root/tools/python PYTHONPATH=$packages \
	"$python" -m sphinx -q -W --keep-going -b html -d "$source/.trees" "$source" "$output" || exit 1
echo "$output/index.html"
