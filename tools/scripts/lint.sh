#!/bin/sh
# lint.sh - format, warnings of both compilers as errors, cppcheck and clang's analyzer. Called by `make lint`.
#
#   sh tools/scripts/lint.sh CLANG "FLAGS" FILE...
set -u
clang=$1
flags=$2
shift 2
status=0
sources=
for file in "$@"; do
	case $file in preload/*/*.c | tools/shared/*/*.c | collector/*/*.c | tools/*/*.c) sources="$sources $file" ;; esac
done

fail() {
	echo "lint: $*"
	status=1
}

for file in "$@"; do
	clang-format --dry-run -Werror "$file" 2>/dev/null || fail "$file is not formatted; run make format"
done
for file in "$@"; do
	case $file in *.h) continue ;; esac
	extra=
	case $file in preload/*) extra=-Ipreload ;; tools/shared/*) extra=-Itools/shared ;; collector/* | tools/*) extra="-I${file%%/*} -Itools/shared" ;; esac
	case $file in tests/*) extra="-I. -Ipreload -Icollector -Itools -Itools/shared -Wno-missing-prototypes -Wno-unknown-warning-option -Wno-format-truncation" ;; esac
	# shellcheck disable=SC2086 # lists of flags
	gcc $flags $extra -O2 -Werror -c "$file" -o /dev/null || fail "gcc warns about $file"
	# shellcheck disable=SC2086
	"$clang" $flags $extra -Werror -fsyntax-only "$file" || fail "clang warns about $file"
done
# shellcheck disable=SC2086
if [ -n "$sources" ]; then
	cppcheck --quiet --enable=warning,portability,performance --inline-suppr --error-exitcode=1 --std=c11 \
		--suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -Iinclude -Ipreload -Icollector -Itools -Itools/shared $sources ||
		fail "cppcheck complains"
	for file in $sources; do
		"$clang" $flags "-I${file%%/*}" -Itools/shared --analyze -Xclang -analyzer-werror -Xclang -analyzer-disable-checker \
			-Xclang security.insecureAPI.DeprecatedOrUnsafeBufferHandling -o /dev/null "$file" ||
			fail "the analyzer complains about $file"
	done
fi
[ "$status" = 0 ] && echo "lint: clean"
exit $status
