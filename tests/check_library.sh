#!/bin/sh
# check_library.sh - what libevprof.so exports and needs, seen from outside. Run by `make check-rules` with EVPROF_BUILD.
#
# The library lives in processes of others: it exports only what preload/evprof.map names, needs the C library only,
# and binds everything at its start.
set -u
cd "$(dirname "$0")/.." || exit 1
library=${EVPROF_BUILD:-build}/libevprof.so
status=0
if [ ! -e "$library" ]; then
	echo "$library is not built; run make"
	exit 1
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

broken() {
	echo "libevprof.so: $*"
	status=1
}

# A sanitizer or coverage build has its runtime in it; only what the sources say is judged there.
instrumented=
nm -D "$library" | grep -qE '__(asan|tsan|ubsan|gcov)_' && instrumented=yes

tr '\n' ' ' <preload/evprof.map | sed 's|/\*[^*]*\*/||g' | tr -s ' \t;' '\n' |
	awk '/^global:/ { on = 1; next } /^local:/ { on = 0 } on && /^[A-Za-z_]/ { print }' | sort -u >"$scratch/wanted"
[ -s "$scratch/wanted" ] || broken "preload/evprof.map names no symbol under global:"
grep -q '[*?]' "$scratch/wanted" && broken "preload/evprof.map exports by pattern; name each symbol"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$scratch/exported"
for symbol in $(comm -13 "$scratch/wanted" "$scratch/exported"); do
	broken "exports $symbol, which preload/evprof.map does not name"
done
# The sanitizers' own allocators are the process's (preload/start/interpose_malloc.c).
for symbol in $(comm -23 "$scratch/wanted" "$scratch/exported"); do
	[ -n "$instrumented" ] || broken "does not define $symbol, which preload/evprof.map names"
done

for needed in $(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	case $needed in
	libc.so.6 | libdl.so.2 | libpthread.so.0 | ld-linux*.so.*) ;;
	*) [ -n "$instrumented" ] || broken "needs $needed; only the C library is allowed" ;;
	esac
done

readelf -dW "$library" | grep -qE 'BIND_NOW|FLAGS.*NOW' || broken "is not linked with -z now"
readelf -dW "$library" | grep -q TEXTREL && broken "has text relocations"
readelf -lW "$library" | grep GNU_STACK | grep -q 'RWE' && broken "asks for an executable stack"
readelf -rW "$library" | grep -q '_TLS_DESC\|DTPMOD' && [ -z "$instrumented" ] &&
	broken "has dynamic thread-local storage; compile with -ftls-model=initial-exec"
exit $status
