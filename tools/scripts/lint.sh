#!/bin/sh
# lint.sh - format, warnings of both compilers as errors, cppcheck and clang's analyzer. Called by `make lint`. Files are looked at
# side by side, one for each processor.
#
#   sh tools/scripts/lint.sh CLANG "FLAGS" FILE...
#   sh tools/scripts/lint.sh --file CLANG "FLAGS" FILE      one of them; 1 if something is found
set -u

include_flags() { # FILE
	case $1 in
	preload/*) echo -Ipreload ;;
	tools/shared/*) echo -Itools/shared ;;
	collector/* | tools/*) echo "-I${1%%/*} -Itools/shared" ;;
	tests/*) echo "-I. -Ipreload -Icollector -Itools -Itools/shared -Wno-missing-prototypes -Wno-unknown-warning-option" \
		"-Wno-format-truncation" ;;
	esac
}

fail() {
	echo "lint: $*"
	status=1
}

# shellcheck disable=SC2086 # lists of flags
lint_file() { # CLANG FLAGS FILE
	extra=$(include_flags "$3")
	clang-format --dry-run -Werror "$3" 2>/dev/null || fail "$3 is not formatted; run make format"
	case $3 in *.h) return ;; esac
	gcc $2 $extra -O2 -Werror -c "$3" -o /dev/null || fail "gcc warns about $3"
	"$1" $2 $extra -Werror -fsyntax-only "$3" || fail "clang warns about $3"
	case $3 in tests/*) return ;; esac
	"$1" $2 $extra --analyze -Xclang -analyzer-werror -Xclang -analyzer-disable-checker \
		-Xclang security.insecureAPI.DeprecatedOrUnsafeBufferHandling -o /dev/null "$3" ||
		fail "the analyzer complains about $3"
}

status=0
if [ "$1" = --file ]; then
	shift
	lint_file "$@"
	exit "$status"
fi
clang=$1
flags=$2
shift 2
lanes=$(nproc 2>/dev/null || echo 2)
printf '%s\n' "$@" | xargs -P "$lanes" -I FILE sh "$0" --file "$clang" "$flags" FILE || status=1
sources=$(printf '%s\n' "$@" | grep -E '^(preload|collector|tools)/.*\.c$')
# shellcheck disable=SC2086 # a list of files
[ -z "$sources" ] || cppcheck --quiet -j "$lanes" --enable=warning,portability,performance --inline-suppr --error-exitcode=1 --std=c11 \
	--suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -Iinclude -Ipreload -Icollector -Itools \
	-Itools/shared $sources || fail "cppcheck complains"
[ "$status" = 0 ] && echo "lint: clean"
exit "$status"
