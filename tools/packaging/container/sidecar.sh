#!/bin/sh
# sidecar.sh [OPTION]... - the entry point of the sidecar's image: puts the library where the program's container finds it, and becomes
# the collector. The options are the collector's.
#
# EVPROF_SHARED (/run/evprof) is a folder that both containers have; traces are written to EVPROF_TRACES (/var/lib/evprof).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
shared=${EVPROF_SHARED:-/run/evprof}
traces=${EVPROF_TRACES:-/var/lib/evprof}
unset EVPROF_SHARED EVPROF_TRACES # no variables of the collector's
# A program that starts meanwhile finds the whole library or none.
cp "$here/libevprof.so" "$shared/libevprof.so.new"
mv "$shared/libevprof.so.new" "$shared/libevprof.so"
exec "$here/evprof-collector" --socket "$shared/collector.sock" --output-dir "$traces" "$@"
