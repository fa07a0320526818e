#!/bin/sh
# check_pins.sh - what the tests fetch is pinned: tests/interpreters/pins has, for each version of Python that find.sh names,
# each package that renew_pins.sh wants, with a hash, or says that it is missing; npm's lock file has a hash for each package;
# and none of them names a host. The same holds of tools/packaging/pins. Run by `make check-rules`.
set -u
cd "$(dirname "$0")/interpreters" || exit 1
status=0

broken() {
	echo "$*"
	status=1
}

# As pip compares names.
plain() {
	tr '[:upper:]_.' '[:lower:]--'
}

versions=$(sed -n 's/.*expected = split("\([^"]*\)".*/\1/p' find.sh)
[ -n "$versions" ] || broken "find.sh: no list of versions"
for version in $versions $(printf '%s-frontends ' $versions) $(printf '%s-peaks ' $versions); do
	[ -n "$(./renew_pins.sh --wanted "$version")" ] || continue
	file=pins/$version.txt
	[ -e "$file" ] || {
		broken "$file: missing (tests/interpreters/renew_pins.sh $version)"
		continue
	}
	have=" $(sed -n -e 's/^# missing: //p' -e 's/^\([^ =]*\)==.*/\1/p' "$file" | plain | tr '\n' ' ')"
	for package in $(./renew_pins.sh --wanted "$version" | sed 's/[<=>][^ ]*//g' | plain); do
		case $have in *" $package "*) ;; *) broken "$file: neither has $package nor names it as missing" ;; esac
	done
done
for file in pins/*.txt ../../tools/packaging/pins/tools.txt ../../tools/packaging/pins/zig.txt ../../tools/packaging/pins/ci.txt; do
	awk '
		/^#/ { next }
		/^[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+( ; platform_machine == "[a-z0-9_]+")? \\$/ { if (open) exit 1; open = 1; next }
		/^    --hash=sha256:[0-9a-f]+ \\$/ && open && length($1) == 78 { next }
		/^    --hash=sha256:[0-9a-f]+$/ && open && length($1) == 78 { open = 0; next }
		{ exit 1 }
		END { if (open) exit 1 }
	' "$file" || broken "$file: not every line is a pin with its hashes"
done
packages=$(grep -c '^    "node_modules/' pins/npm/package-lock.json)
[ "$packages" -gt 0 ] && [ "$packages" = "$(grep -c '^      "integrity": "sha512-' pins/npm/package-lock.json)" ] ||
	broken "pins/npm/package-lock.json: not every package has its hash"
grep -v '^#' ../../tools/packaging/pins/sources.txt | grep -nvE '^[a-z]+ [0-9.]+ [A-Za-z0-9.-]+ [a-z0-9]+/[a-z-]+/[^ /]+ [0-9a-f]{64}$' &&
	broken "tools/packaging/pins/sources.txt: these lines are not a name, version, licence, file and hash"
if grep -nE '"resolved"|--(extra-)?index-url|--find-links|@ *(http|file)' pins/*.txt pins/npm/* ../../tools/packaging/pins/*; then
	broken "these lines say where a package is fetched from"
fi
exit $status
