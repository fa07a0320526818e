#!/bin/sh
# collector.sh - prints the path of the OpenTelemetry Collector for the tests. It is built with its own builder into the
# test cache, of the versions in builder.yaml, if EVPROF_TEST_ALL is set: that fetches some hundred megabytes of modules and takes
# two minutes. Without it, and without Go or a network, it fails with the reason.
set -u
here=$(cd "$(dirname "$0")" && pwd)
version=v0.165.0 # of the builder, that of the parts
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evprof/otel
made=$cache/$(cksum <"$here/builder.yaml" | tr ' ' -)

failed() {
	echo "$1"
	exit 1
}

[ -x "$made/built/otelcol-evprof" ] && echo "$made/built/otelcol-evprof" && exit 0
[ -n "${EVPROF_TEST_ALL:-}" ] || failed "the OpenTelemetry Collector is not built; EVPROF_TEST_ALL=1 builds it"
command -v go >/dev/null || failed "there is no go to build the OpenTelemetry Collector with"
mkdir -p "$made" || failed "no folder $made"
exec 9>"$made/lock"
flock 9
if ! [ -x "$made/built/otelcol-evprof" ]; then
	cp "$here/builder.yaml" "$made/" && cd "$made" || exit 1
	GOBIN=$made/bin timeout 240 go install "go.opentelemetry.io/collector/cmd/builder@$version" >log 2>&1 9>&- &&
		timeout 600 "$made/bin/builder" --config builder.yaml >>log 2>&1 9>&- ||
		failed "the OpenTelemetry Collector is not built: $(tail -n 1 log)"
fi
echo "$made/built/otelcol-evprof"
