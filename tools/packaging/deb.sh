#!/bin/sh
# deb.sh [FOLDER] - builds the Debian packages of evprof into FOLDER (dist/deb), with debhelper and this machine's libraries, and checks
# them with lintian. Called by `make deb`.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
top=$(cd "$here/../.." && pwd)
result=${1:-$top/dist/deb}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
version=$(version_here)

fail() {
	echo "deb.sh: $*" >&2
	exit 1
}

missing=
for program in dpkg-buildpackage dh dh_python3 lintian; do
	command -v "$program" >/dev/null || missing="$missing $program"
done
[ -z "$missing" ] || fail "missing:$missing; apt-get install debhelper dh-python lintian"
tree=$work/evprof-$version
stage "$tree"
cp -r "$here/debian" "$tree/debian"
cat >"$tree/debian/changelog" <<EOF
evprof ($version) unstable; urgency=medium

  * Release $version; tools/packaging/CHANGELOG.md has what is new.

 -- $(sed -n 's/^Maintainer: //p' "$here/debian/control")  $(date -uR -d "@$SOURCE_DATE_EPOCH")
EOF
# Symbols in a package of their own are the distribution's affair.
(cd "$tree" && DEB_BUILD_OPTIONS="noautodbgsym parallel=${EVPROF_PACKAGING_JOBS:-$(nproc)} ${DEB_BUILD_OPTIONS:-}" \
	dpkg-buildpackage --build=binary --no-sign >"$work/log" 2>&1) || {
	grep -E 'error|Error|Unmet|dh_' "$work/log" | tail -n 20 >&2
	cp "$work/log" "$top/build-deb.log"
	fail "the packages do not build; see build-deb.log"
}
lintian --fail-on error --allow-root "$work"/*.deb >"$work/lintian" 2>&1 || {
	cat "$work/lintian" >&2
	fail "lintian finds errors"
}
cat "$work/lintian" >&2
mkdir -p "$result" || exit 1
rm -f "$result"/*.deb
for package in "$work"/*.deb; do
	cp "$package" "$result/" || exit 1
	echo "${package##*/}"
done
