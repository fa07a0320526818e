#!/bin/sh
# in-root.sh ROOT PROGRAM [ARGUMENT...] - runs a program of another root as if it were one of ours.
#
# The same process ID, environment, working directory and descriptors; the repository and the packages of the tests stand
# at their own paths. All mounts are made in a mount namespace of its own and are gone with the program. LD_PRELOAD counts
# for the program only, not for the tools that lead to it. Called by the tests and the benchmarks with interpreters that
# find.sh has found.
set -eu

if [ "${EVPROF_IN_ROOT:-}" != "$$" ]; then
	EVPROF_IN_ROOT=$$
	EVPROF_IN_ROOT_PRELOAD=${LD_PRELOAD-}
	unset LD_PRELOAD
	export EVPROF_IN_ROOT EVPROF_IN_ROOT_PRELOAD
	if [ "$(id -u)" = 0 ]; then
		exec unshare --mount "$0" "$@"
	fi
	exec unshare --user --map-root-user --mount "$0" "$@"
fi

root=$1
program=$2
shift 2
preload=$EVPROF_IN_ROOT_PRELOAD
unset EVPROF_IN_ROOT EVPROF_IN_ROOT_PRELOAD
# The name of a directory may end with a newline, which $() would take away.
here=$(pwd && echo .)
here=${here%??}
packages=${TEST_PACKAGES:-${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/evprof/packages} # packages.sh
repository=$(cd "$(dirname "$0")/../.." && pwd)

for place in /proc /sys /dev /tmp "$repository" "$here" "$packages"; do
	case $place in
	/tmp/?*) continue ;;
	esac
	[ -d "$place" ] || continue
	mkdir -p "$root$place"
	mount --rbind "$place" "$root$place"
done
for name in passwd group hosts; do
	[ -e "$root/etc/$name" ] || cp "/etc/$name" "$root/etc/$name" 2>/dev/null || :
done

if [ -n "$preload" ]; then
	set -- LD_PRELOAD="$preload" "$program" "$@"
else
	set -- "$program" "$@"
fi
exec chroot "$root" /usr/bin/env -C "$here" PATH=/usr/local/bin:/usr/bin:/bin "$@"
