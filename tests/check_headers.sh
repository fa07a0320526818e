#!/bin/sh
# check_headers.sh - each header of include/evprof/ compiles alone, and the public one in C++ too. Run by
# `make check-rules`.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
alone() { # LANGUAGE HEADER: a program that is nothing but the header compiles
	printf '#include "%s"\n' "${2#include/}" | ${CC:-cc} -Wall -Wextra -Werror -Iinclude -fsyntax-only -x "$1" -
}

for header in include/evprof/*.h; do
	alone c "$header" || status=1
done
# Where only C is installed there is nothing to compile C++ with.
if echo 'int main() { return 0; }' | ${CC:-cc} -x c++ -fsyntax-only - 2>/dev/null; then
	alone c++ include/evprof/evprof.h || status=1
fi
exit $status
