#!/bin/sh
# check_docs.sh - the site has every page, test_docs.c runs every page, and the links of README.md and of docs/ lead to files. Run by
# `make check-rules`; `make docs`, which needs Sphinx, checks the rest.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
for page in docs/*.md docs/tutorials/*.md docs/man/*.[17]; do
	name=${page#docs/}
	name=${name#man/}
	grep -qxF "${name%.md}" tools/docs/pages.md && continue
	echo "tools/docs/pages.md: $page is not in the site"
	status=1
done
for page in README.md docs/*.md docs/tutorials/*.md docs/man/*.[17]; do
	grep -qF "\"$page\"" tests/e2e/test_docs.c && continue
	echo "tests/e2e/test_docs.c: nobody runs the commands of $page"
	status=1
done
for page in README.md docs/*.md docs/tutorials/*.md; do
	for target in $(grep -oE '\]\([^):# ]+' "$page" | cut -c3-); do
		[ -e "$(dirname "$page")/$target" ] && continue
		echo "$page: $target is not there"
		status=1
	done
done
exit $status
