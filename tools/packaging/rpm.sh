#!/bin/sh
# rpm.sh [FOLDER] - builds packages of evprof for rpm into FOLDER (dist/rpm), by evprof.spec, with this machine's libraries. Called by `make rpm`.
#
# On a system without rpm's own database (Debian) what the build wants cannot be looked up: it is not asked for there.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
top=$(cd "$here/../.." && pwd)
result=${1:-$top/dist/rpm}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
version=$(version_here)

fail() {
	echo "rpm.sh: $*" >&2
	exit 1
}

command -v rpmbuild >/dev/null || fail "missing: rpmbuild; install the package rpm-build (of Debian: rpm)"
stage "$work/evprof-$version"
tar czf "$work/evprof-$version.tar.gz" -C "$work" "evprof-$version" || exit 1
no_database=
rpm -q rpm >/dev/null 2>&1 || no_database=--nodeps
rpmbuild -bb $no_database --define "evprof_version $version" --define "_topdir $work/rpm" --define "_sourcedir $work" \
	--define "_smp_mflags -j${EVPROF_PACKAGING_JOBS:-$(nproc)}" "$here/evprof.spec" >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	fail "the packages do not build"
}
mkdir -p "$result" || exit 1
rm -f "$result"/*.rpm
for package in "$work"/rpm/RPMS/*/*.rpm; do
	cp "$package" "$result/" || exit 1
	echo "${package##*/}"
done
