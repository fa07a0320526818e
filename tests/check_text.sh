#!/bin/sh
# check_text.sh - nothing in the repository names a developer's machine or a package registry's host, and every source
# file starts with a comment that says what it owns. Run by `make check-rules`.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

files() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files -co --exclude-standard
	else
		find . -type f -not -path './build*' -not -path './.git/*'
	fi
}

# Put together here, so that this file does not hold what it looks for.
join() {
	printf '%s' "$@"
}
places="$(join '/wo' 'rk/')|$(join '/ro' 'ot/[.A-Za-z]')"
hosts="$(join 'd' 'eb\.debian\.org')|$(join 'snap' 'shot\.debian\.org')|$(join 'sec' 'urity\.debian\.org')"
hosts="$hosts|$(join 'archive' '\.ubuntu\.com')|$(join 'py' 'pi\.org')|$(join 'files\.python' 'hosted\.org')"
hosts="$hosts|$(join 'crates' '\.io')|$(join 'registry\.' 'npmjs\.org')|$(join 'repo1?\.' 'maven\.')"
hosts="$hosts|$(join 'proxy\.' 'golang\.org')|$(join 'registry\.' 'npmjs')"

list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
files >"$list"
if tr '\n' '\0' <"$list" | xargs -0 grep -nIE -e "$places" -e "$hosts" -- /dev/null; then
	echo "these lines name a place on one machine or a package registry"
	status=1
fi
for file in $(grep -E '^(\./)?(include|preload|collector|tools|tests)/.*\.[ch]$' "$list"); do
	[ -e "$file" ] || continue
	head -c 2 "$file" | grep -q '^/[*/]' && continue
	echo "$file: does not start with a comment on what it owns"
	status=1
done
exit $status
