#!/bin/sh
# try_image.sh WHEEL - builds the sidecar's image (container/Dockerfile) with a wheel of `make wheel`, and has it record a program in
# another container.
#
# Prints one line for each thing that works, and ends with status 1 at the first that does not. Wants root, buildah and mmdebstrap; needs
# no daemon and no registry: a Debian root of the mirror that apt knows stands for both images that the Dockerfile begins with. It is
# fetched once, and kept in the user's cache.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
wheel=$(realpath "${1:?usage: try_image.sh WHEEL}") || exit 1
base=$store/base-image-bookworm.tar
daemon=

works() {
	echo "works: $*"
}

fails() {
	echo "fails: $*"
	sed 's/^/    /' "$work/out" | tail -n 40
	exit 1
}

engine() {
	buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

# Ends the sidecar, with what buildah has started for it, and removes the containers with their mounts.
end_all() {
	for one in $([ -z "$daemon" ] || pgrep -P "$daemon") $daemon; do
		kill "$one" 2>/dev/null
	done
	[ -z "$daemon" ] || wait "$daemon" 2>/dev/null
	engine rm --all >/dev/null 2>&1
	rm -rf "$work"
}

[ "$(id -u)" = 0 ] || fail "building an image wants root"
for program in buildah mmdebstrap; do
	command -v $program >/dev/null || fail "missing: $program"
done
if ! [ -e "$base" ]; then
	mkdir -p "$store" && new=$(mktemp "$store/new.XXXXXX.tar") || exit 1
	echo "try_image.sh: fetching a root of bookworm" >&2
	bounded 900 mmdebstrap --variant=minbase --include=python3,python3-pip bookworm "$new" >"$store/base-image.log" 2>&1 || {
		rm -f "$new"
		fail "the root could not be fetched; see $store/base-image.log"
	}
	mv "$new" "$base"
fi
make_work
trap end_all EXIT
mkdir "$work/shared" "$work/traces" && chmod 755 "$work" && chmod 777 "$work/shared" "$work/traces"
cp -r "$here/container" "$work/context" && cp "$wheel" "$work/context/" || exit 1

begun=$(engine from scratch) && engine add "$begun" "$base" / >"$work/out" 2>&1 &&
	engine commit "$begun" docker.io/library/debian:bookworm-slim >>"$work/out" 2>&1 &&
	engine tag docker.io/library/debian:bookworm-slim docker.io/library/python:3.12-slim-bookworm || fails "the images to begin with"
# The wheel by its path: no index is asked for it.
engine bud --isolation chroot --pull-never --build-arg "PACKAGE=/wheels/${wheel##*/}" -t evprof-sidecar "$work/context" \
	>"$work/out" 2>&1 || fails "the image is built"
works "the image is built"

sidecar=$(engine from --pull-never localhost/evprof-sidecar) && app=$(engine from --pull-never docker.io/library/debian:bookworm-slim) &&
	engine config --user 65534 --env LD_PRELOAD=/run/evprof/libevprof.so --env EVPROF_SOCKET=/run/evprof/collector.sock "$app" ||
	fails "the containers"
engine run --isolation chroot -v "$work/shared:/run/evprof" -v "$work/traces:/var/lib/evprof" "$sidecar" -- \
	/usr/lib/evprof/sidecar.sh >"$work/out" 2>&1 &
daemon=$!
tries=0
until [ -S "$work/shared/collector.sock" ]; do
	tries=$((tries + 1))
	[ $tries -lt 60 ] && kill -0 $daemon || fails "the sidecar has a socket"
	sleep 0.5
done
works "the sidecar has a socket"
# fib(12) is 465 calls, whatever counts them: 2 * fib(13) - 1.
printed=$(engine run --isolation chroot -v "$work/shared:/run/evprof" "$app" -- python3 -c '
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(12))' 2>>"$work/out")
[ "$printed" = 144 ] || fails "the program prints what it prints, not \"$printed\""
works "the program runs"
tries=0
until engine run --isolation chroot -v "$work/traces:/var/lib/evprof" "$sidecar" -- \
	sh -c 'evprof report --format csv /var/lib/evprof/evprof-python*.evp' 2>>"$work/out" | grep fib | grep -q ,465,; do
	tries=$((tries + 1))
	[ $tries -lt 10 ] || fails "the trace has 465 calls of fib"
	sleep 1
done
works "the trace, read by evprof in the image"
