#!/bin/sh
# build_packages.sh deb|rpm [FOLDER] - builds the packages of a distribution into FOLDER (dist/deb, dist/rpm), with this machine's
# libraries. Called by `make deb` and `make rpm`.
#
# deb: by debhelper; lintian checks them. rpm: by evprof.spec. On a system without rpm's own database (Debian) what the build wants
# cannot be looked up: it is not asked for there.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/stage.sh
. "$here/stage.sh"
kind=${1:?usage: build_packages.sh deb|rpm [FOLDER]}
result=$(realpath -m "${2:-$top/dist/$kind}")
jobs=${EVPROF_PACKAGING_JOBS:-$(nproc)}
version=$(version_here)

wants() { # HINT PROGRAM...
	hint=$1
	missing=
	shift
	for program; do
		command -v "$program" >/dev/null || missing="$missing $program"
	done
	[ -z "$missing" ] || fail "missing:$missing; $hint"
}

built() { # COMMAND...
	"$@" >"$work/log" 2>&1 && return
	grep -E 'error|Error|Unmet|dh_' "$work/log" | tail -n 20 >&2
	cp "$work/log" "$top/build-$kind.log"
	fail "the packages do not build; see build-$kind.log"
}

build_deb() {
	cp -r "$here/debian" debian
	cat >debian/changelog <<EOF
evprof ($version) unstable; urgency=medium

  * Release $version; tools/packaging/CHANGELOG.md has what is new.

 -- $(sed -n 's/^Maintainer: //p' "$here/debian/control")  $(date -uR -d "@$SOURCE_DATE_EPOCH")
EOF
	# Symbols in a package of their own are the distribution's affair.
	built env DEB_BUILD_OPTIONS="noautodbgsym parallel=$jobs ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --no-sign
	mv ../*.deb ../packages/
	lintian --fail-on error --allow-root ../packages/*.deb >&2 || fail "lintian finds errors"
}

build_rpm() {
	tar czf "../evprof-$version.tar.gz" -C .. "evprof-$version" || exit 1
	no_database=
	rpm -q rpm >/dev/null 2>&1 || no_database=--nodeps
	# shellcheck disable=SC2086 # an option, or nothing
	built rpmbuild -bb $no_database --define "evprof_version $version" --define "_topdir $work/rpm" --define "_sourcedir $work" \
		--define "_smp_mflags -j$jobs" "$here/evprof.spec"
	mv "$work"/rpm/RPMS/*/*.rpm ../packages/
}

case $kind in
deb) wants "apt-get install debhelper dh-python lintian" dpkg-buildpackage dh dh_python3 lintian ;;
rpm) wants "install the package rpm-build (of Debian: rpm)" rpmbuild rpm ;;
*) fail "deb or rpm, not $kind" ;;
esac
make_work
stage "$work/evprof-$version"
mkdir "$work/packages" && cd "$work/evprof-$version" || exit 1
"build_$kind"
mkdir -p "$result" || exit 1
rm -f "$result"/*."$kind"
cp ../packages/*."$kind" "$result/" || exit 1
(cd ../packages && ls)
