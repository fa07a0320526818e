#!/bin/sh
# try_packages.sh deb|rpm [FOLDER] - installs the packages of FOLDER (dist/deb, dist/rpm) into a bare Debian root and uses them there.
#
# Prints one line for each thing that works, and ends with status 1 at the first that does not. Wants root and mmdebstrap; the bare root
# is fetched from the mirror that apt knows, and kept in the user's cache. Packages of rpm are installed there by this machine's rpm,
# whose database knows nothing of what they depend on: that alone is not tried.
# shellcheck disable=SC2015,SC2016 # A && B || fails; commands for other shells
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
kind=${1:?usage: try_packages.sh deb|rpm [FOLDER]}
packages=${2:-$top/dist/$kind}
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
bare=$store/bare-$release
# What the packages depend on, and what tries them: all is there before, so nothing is fetched when they are installed.
wanted=python3,libdw1,libelf1,libjansson4,libunwind8,libzstd1,zlib1g,systemd

works() {
	echo "works: $*"
}

fails() {
	echo "fails: $*"
	[ ! -s "$work/out" ] || sed 's/^/    /' "$work/out" | head -n 40
	exit 1
}

[ "$(id -u)" = 0 ] || fail "a bare root wants root"
command -v mmdebstrap >/dev/null || fail "missing: mmdebstrap"
if ! [ -e "$bare" ]; then
	mkdir -p "$store" && new=$(mktemp -d "$store/new.XXXXXX") || exit 1
	echo "try_packages.sh: fetching a bare root of $release" >&2
	bounded 600 mmdebstrap --variant=apt --include="$wanted" "$release" "$new" >"$store/bare.log" 2>&1 || {
		rm -rf "$new"
		fail "the bare root could not be fetched; see $store/bare.log"
	}
	chmod 755 "$new"
	mv -T "$new" "$bare"
fi
make_work
root=$work/root
if ! cp -a "$bare" "$root" || ! mkdir "$root/packages" || ! cp "$packages"/*."$kind" "$root/packages/"; then
	fail "no packages in $packages"
fi

inside() { # COMMAND...: in the root, with /proc
	unshare --mount --pid --fork sh -c 'mount -t proc proc "$1/proc" && shift && exec "$@"' sh "$root" \
		chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@" >"$work/out" 2>&1
}

case $kind in
deb) inside sh -c 'dpkg -i /packages/*.deb' || fails "dpkg -i" ;;
rpm) rpm --root "$root" --nodeps --ignoreos -i "$root"/packages/*.rpm >"$work/out" 2>&1 || fails "rpm -i" ;;
*) fail "deb or rpm, not $kind" ;;
esac
works "installing"

# fib(12) is 465 calls, whatever counts them: 2 * fib(13) - 1.
cat >"$root/app.py" <<'END_OF_APP'
import os


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(12))
os.listdir("/")
END_OF_APP
calls() { # TRACE
	inside evprof report --format csv "$1" && grep 'fib' "$work/out" | grep -q ',465,'
}

inside evprof run --native -o /app.evp /app.py || fails "evprof run"
grep -qx 144 "$work/out" || fails "evprof run prints what the program prints"
! grep -q 'no native stacks' "$work/out" || fails "evprof run --native"
calls /app.evp || fails "465 calls of fib"
works "evprof run"
inside evprof export --format folded --weight bytes /app.evp -o - && grep -qE 'Py[A-Za-z_]* [(]python3' "$work/out" || fails "names of native functions"
works "native stacks"
# Debian's Python does not look where rpm's has its packages.
case $kind in rpm) inside sh -c 'ln -s /usr/lib/python3*/site-packages/evprof /usr/lib/python3/dist-packages/' || fails "the Python package" ;; esac
inside python3 -m evprof /app.evp && grep -q MainThread "$work/out" || fails "python3 -m evprof"
inside python3 -c 'import evprof; assert len(evprof.load("/app.evp").processes) == 1' || fails "import evprof"
works "the Python package"
inside getent passwd evprof || fails "the collector's user"
works "the collector's user"
if [ "$kind" = deb ]; then # of rpm, the distribution's presets decide
	inside systemctl is-enabled evprof-collector.socket || fails "the socket is enabled"
	works "the socket"
fi
inside systemd-analyze --man=no verify evprof-collector.service evprof-collector.socket && ! grep -q evprof-collector "$work/out" || fails "the units"
works "the units"
inside sh -c 'mkdir /run/evprof /traces
	evprof-collector --socket /run/evprof/collector.sock --output-dir /traces & collector=$!
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -S /run/evprof/collector.sock ] && break; sleep 0.5; done
	EVPROF_SOCKET=/run/evprof/collector.sock LD_PRELOAD=/usr/lib/evprof/libevprof.so python3 /app.py && sleep 1
	kill $collector; wait $collector; mv /traces/*.evp /daemon.evp' || fails "the daemon"
calls /daemon.evp || fails "the daemon's trace"
works "the daemon"
inside bash -c 'ls /usr/share/man/man1/evprof.1* /usr/share/man/man7/evprof.7* && . /usr/share/bash-completion/completions/evprof &&
	COMP_WORDS=(evprof report --rev) COMP_CWORD=2 && _evprof && [ "${COMPREPLY[*]}" = --reverse ]' || fails "man pages and completion"
works "man pages and completion"
case $kind in
deb) inside dpkg --purge evprof-collector python3-evprof evprof || fails "removing" ;;
rpm) rm "$root/usr/lib/python3/dist-packages/evprof" && rpm --root "$root" --nodeps -e evprof-collector python3-evprof evprof \
	>"$work/out" 2>&1 || fails "removing" ;;
esac
left=$(find "$root/usr" "$root/lib/systemd" "$root/etc" -name '*evprof*' ! -path '*/systemd/deb-systemd-helper*' | head -n 5)
[ -z "$left" ] || fails "removing leaves $left"
works "removing"
