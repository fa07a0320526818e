#!/bin/sh
# check_text.sh - nothing in the repository names a developer's machine or a package registry's host, and every source
# file starts with a comment that says what it owns and has no line that is wider than 120 columns (clang-format leaves
# comments as they are). Identifiers have the words of docs/glossary.md. A heading of a document is at most one level
# below the one before, or its site is not built. Nothing but what belongs there is at the top of the tree. Run by
# `make check-rules`.
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
# What a hand left there would be published with it. A source distribution has files of its own there.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1 &&
	sed 's,/.*,,' "$list" | sort -u |
	grep -vxE 'Makefile|README\.md|\.(ci|clang-format|gitignore)|collector|docs|include|preload|tests|tools'; then
	echo "these have no place at the top of the tree"
	status=1
fi
# Identifiers of before the glossary.
old="neighbours_[a-z]|(struct|on)[ _]deaf|deafen|unborn|UNBORN|tally_[a-z]|struct (tally|visit|timeline|select|pairs|awaited)\\b"
old="$old|\\b(visit|timeline|select)_[a-z]+\\(|\\bchoice_(pattern|takes)|\\b(choose|say|tell|settle)_[a-z_]+\\(|\\bis_chosen"
old="$old|\\b(untold|telling|unsettled|tallies|heard|natives)\\b|_told\\b|struct told|_beside_memory|CODE_CLOSER|take_back"
old="$old|stand_before|output_say|\\b(tell|say|settle|know)\\("
if grep -E '^(\./)?(include|preload|collector|tools)/.*\.[ch]$' "$list" | tr '\n' '\0' | xargs -0 grep -nE -e "$old" -- /dev/null; then
	echo "these lines have words that docs/glossary.md replaces"
	status=1
fi
# Prose of before the glossary, in comments, messages and documents: say what is recorded, reported or known.
prose="\\btold (of|apart)\\b|\\btells of\\b|\\bwere told\\b|\\bis told\\b|\\bwas told\\b|\\bhear[sd]?\\b|\\bneighbours?\\b"
prose="$prose|\\b[Ww]hat (is|are) no\\b|\\bis no (file|trace|regular|text|variable)\\b|\\bof before\\b|\\bat most so many\\b"
prose="$prose|\\bis chosen\\b|\\bnot chosen\\b|\\bthe wall's clock\\b|\\bchoose another\\b|\\bbeside that\\b"
if grep -E '^(\./)?((include|preload|collector|tools|docs)/.*\.([ch]|py|js|md|[17])|README\.md)$' "$list" |
	grep -vxE '(\./)?docs/(glossary|performance)\.md' | tr '\n' '\0' | xargs -0 grep -nE -e "$prose" -- /dev/null; then
	echo "these lines have words that docs/glossary.md replaces"
	status=1
fi
# The same words and some more in the tests, which have no names or messages of users to keep.
tests="$prose|$old|\b(un)?told\b|_told|\btell(s|ing)?\b|_tells?\b|heard|\bso many(th)?\b|\bchosen\b|\bcho(ose|oses|se)\b|_chosen"
tests="$tests|\bneighbours?|NEIGHBOUR|\bdeaf|unborn|\btally|\bconfine|\bbeside\b|_beside|beside_|\b[Ww]hat was no\b|is tried\b"
if grep -E '^(\./)?tests/' "$list" | grep -vE 'check_text\.sh$|/corpus/|/pins/' | tr '\n' '\0' |
	xargs -0 grep -nIE -e "$tests" -- /dev/null | grep -vE -e '--beside|object_pairs_hook'; then
	echo "these lines have words that docs/glossary.md replaces"
	status=1
fi
sources=$(grep -E '^(\./)?(include|preload|collector|tools|tests)/.*\.[ch]$' "$list")
for file in $sources; do
	[ -e "$file" ] || continue
	head -c 2 "$file" | grep -q '^/[*/]' && continue
	echo "$file: does not start with a comment on what it owns"
	status=1
done
for file in $sources; do
	[ -e "$file" ] && echo "$file"
done | xargs awk -v limit=120 '
	{
		line = $0
		while ((at = index(line, "\t")))
			line = substr(line, 1, at - 1) substr("        ", 1, 8 - (at - 1) % 8) substr(line, at + 1)
		if (length(line) > limit) {
			printf "%s:%d: %d columns, at most %d\n", FILENAME, FNR, length(line), limit
			broken = 1
		}
	}
	END { exit broken }
' || status=1
grep -E '^(\./)?(docs/.*|README)\.md$' "$list" | xargs awk '
	FNR == 1 { level = 0; code = 0 }
	/^ *```/ { code = !code }
	!code && /^#+ / {
		if (length($1) > level + 1 && level) {
			printf "%s:%d: this heading leaves out a level\n", FILENAME, FNR
			broken = 1
		}
		level = length($1)
	}
	END { exit broken }
' || status=1
exit $status
