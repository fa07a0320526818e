#!/bin/sh
# setup.sh - installs what is missing on this machine to build, try or test evprof.
#
# Called by `make demo` and `make test`, and by hand. Owns the names of packages on each distribution; what is missing
# is found by trying it (a compile, a command), never by asking the package manager, so nothing happens where all is
# there. Says what it is going to run before it runs it.
#
#   sh tools/scripts/setup.sh [--check] build|demo|docs|test|all
#
#   build    compiler, make and libraries
#   demo     build, and a python3 to profile
#   docs     what makes the site
#   test     demo, and what the tests and `make lint` use
#   all      test, and what only `make check-all` uses (blender: large)
#   --check  change nothing; exit status 1 if something is missing
#
# Fetching takes EVPROF_SETUP_SECONDS (900) at most, with what else fetches for the tests. What only some tests use may
# stay missing then.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tools/scripts/bound.sh
. ./tools/scripts/bound.sh

say() {
	printf 'evprof setup: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 1
}

check_only=0
if [ "${1:-}" = --check ]; then
	check_only=1
	shift
fi
group=${1:-build}
items_build="cc make jansson zstd zlib"
# Libraries that have one owner file each are needed only where that file is there.
[ -e collector/symbols/symbols.c ] && items_build="$items_build dw"
[ -e preload/definitions/unwind.c ] && items_build="$items_build unwind"
items_demo="$items_build python3"
items_test="$items_demo find awk criterion clang fuzzer clang-format cppcheck valgrind debootstrap venv git numpy greenlet node"
manager=none
for candidate in apt-get dnf pacman zypper apk; do
	if command -v "$candidate" >/dev/null 2>&1; then
		manager=$candidate
		break
	fi
done
# The embedders that the tests start are taken where the distribution's own uwsgi loads Python as a plugin; allocators
# are preloaded into programs by their names.
[ "$manager" = apt-get ] && items_test="$items_test gdb tmux uwsgi libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 libmicrohttpd.so.12"
# Debian has the browser without its windows as a package of its own. It starts in a quarter of the CPU time.
browser=chromium
if grep -qx ID=debian /etc/os-release 2>/dev/null; then
	browser=chromium-headless-shell
	items_test="$items_test $browser"
fi
items_all="$items_test sanitizers pandas $browser npm spin blender mandoc zsh fish"
# The packages of make deb and make rpm are built, and tried in a bare root; make musl.
[ "$manager" = apt-get ] && items_all="$items_all dh dh_python3 lintian rpmbuild mmdebstrap buildah musl-gcc"
case $group in
build) items=$items_build ;;
demo) items=$items_demo ;;
docs) items="venv mandoc" ;;
test) items=$items_test ;;
all) items=$items_all ;;
*) die "unknown group '$group'; use build, demo, docs, test or all" ;;
esac

has_glibc() {
	getconf GNU_LIBC_VERSION >/dev/null 2>&1 && return 0
	# No getconf in a small image: tell by the loaders.
	ls /lib*/ld-linux-*.so.* >/dev/null 2>&1 && ! ls /lib/ld-musl-* >/dev/null 2>&1
}

# musl has neither the symbols nor the loader's behaviour that the preloaded library needs.
refuse_other_systems() {
	[ "$(uname -s)" = Linux ] || die "evprof runs on Linux; this is $(uname -s)"
	case $(uname -m) in
	x86_64 | aarch64) ;;
	*) die "evprof runs on x86_64 and aarch64; this machine is $(uname -m)" ;;
	esac
	if ! has_glibc; then
		die "evprof needs glibc; this system has another C library (Alpine and others use musl)." \
			"Use a glibc system, for example a Debian, Ubuntu or Fedora container"
	fi
}

compiles() { # HEADER [FLAG...]: a program with that header links with those flags
	header=$1
	shift
	printf '#include <%s>\nint main(void) { return 0; }\n' "$header" |
		$compiler -x c - -o "$scratch/probe" "$@" >/dev/null 2>&1
}

found() { # ITEM: is it on this machine?
	case $1 in
	cc) compiles stdio.h ;;
	jansson) compiles jansson.h -ljansson ;;
	zstd) compiles zstd.h -lzstd ;;
	zlib) compiles zlib.h -lz ;;
	dw) compiles elfutils/libdwfl.h -ldw -lelf ;;
	unwind) compiles libunwind.h -lunwind ;;
	criterion) compiles criterion/criterion.h -lcriterion ;;
	sanitizers) compiles stdio.h -fsanitize=address && compiles stdio.h -fsanitize=thread ;;
	fuzzer)
		printf '%s\n' '#include <stddef.h>' 'int LLVMFuzzerTestOneInput(const char *d, size_t n);' \
			'int LLVMFuzzerTestOneInput(const char *d, size_t n) { return !d && n; }' |
			clang -fsanitize=fuzzer,address -x c - -o "$scratch/fuzz" >/dev/null 2>&1
		;;
	venv) /usr/bin/python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
	numpy | pandas | greenlet) /usr/bin/python3 -c "import $1" >/dev/null 2>&1 ;;
	lib*.so.*) ! env LD_PRELOAD="$1" true 2>&1 | grep -q 'cannot be preloaded' ;;
	debootstrap | uwsgi) command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/usr/bin/$1-core" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# The common case in one compile instead of six.
all_libraries() {
	set -- -ljansson -lzstd -lz
	source='#include <stdio.h>\n#include <jansson.h>\n#include <zstd.h>\n#include <zlib.h>\n'
	case " $items " in *" dw "*)
		set -- "$@" -ldw -lelf
		source="$source#include <elfutils/libdwfl.h>\n"
		;;
	esac
	case " $items " in *" unwind "*)
		set -- "$@" -lunwind
		source="$source#include <libunwind.h>\n"
		;;
	esac
	printf '%b' "${source}int main(void) { return 0; }\n" | $compiler -x c - -o "$scratch/probe" "$@" >/dev/null 2>&1
}

missing_items() {
	rest=$items
	if all_libraries; then
		rest=
		for item in $items; do
			case $item in cc | jansson | zstd | zlib | dw | unwind) ;; *) rest="$rest $item" ;; esac
		done
	fi
	for item in $rest; do
		found "$item" || printf '%s ' "$item"
	done
}

package() { # ITEM: its packages here
	case $manager:$1 in
	apt-get:cc) echo gcc libc6-dev ;;
	apt-get:jansson) echo libjansson-dev ;;
	apt-get:zstd) echo libzstd-dev ;;
	apt-get:zlib) echo zlib1g-dev ;;
	apt-get:dw) echo libdw-dev libelf-dev ;;
	apt-get:unwind) echo libunwind-dev ;;
	apt-get:criterion) echo libcriterion-dev ;;
	apt-get:fuzzer) echo clang libclang-rt-dev ;;
	apt-get:venv) echo python3 python3-venv ;;
	apt-get:uwsgi) echo uwsgi-core uwsgi-plugin-python3 ;;
	apt-get:libmicrohttpd*) echo libmicrohttpd-dev ;; # with its header, with which a test compares
	apt-get:libjemalloc*) echo libjemalloc2 ;;
	apt-get:libtcmalloc*) echo libtcmalloc-minimal4 ;;
	apt-get:libmimalloc*) echo libmimalloc2.0 ;;
	apt-get:sanitizers) echo gcc ;;
	apt-get:dh) echo debhelper ;;
	apt-get:dh_python3) echo dh-python ;;
	apt-get:rpmbuild) echo rpm ;;
	apt-get:musl-gcc) echo musl-tools ;;
	apt-get:node) echo nodejs ;;
	pacman:numpy | pacman:pandas | pacman:greenlet) echo "python-$1" ;;
	*:numpy | *:pandas | *:greenlet) echo "python3-$1" ;;
	*:node) echo nodejs ;;
	dnf:cc) echo gcc glibc-devel ;;
	dnf:jansson) echo jansson-devel ;;
	dnf:zstd) echo libzstd-devel ;;
	dnf:zlib) echo zlib-devel ;;
	dnf:dw) echo elfutils-devel elfutils-libelf-devel ;;
	dnf:unwind) echo libunwind-devel ;;
	dnf:criterion) echo criterion-devel ;;
	dnf:fuzzer) echo clang compiler-rt ;;
	dnf:clang-format) echo clang-tools-extra ;;
	dnf:venv) echo python3 ;;
	dnf:sanitizers) echo libasan libubsan libtsan ;;
	pacman:cc) echo gcc ;;
	pacman:jansson | pacman:zstd | pacman:zlib | pacman:criterion) echo "$1" ;;
	pacman:dw) echo libelf ;;
	pacman:unwind) echo libunwind ;;
	pacman:fuzzer) echo clang compiler-rt ;;
	pacman:clang-format) echo clang ;;
	pacman:python3 | pacman:venv) echo python ;;
	pacman:sanitizers) echo gcc ;;
	zypper:cc) echo gcc glibc-devel ;;
	zypper:jansson) echo libjansson-devel ;;
	zypper:zstd) echo libzstd-devel ;;
	zypper:zlib) echo zlib-devel ;;
	zypper:dw) echo libdw-devel libelf-devel ;;
	zypper:unwind) echo libunwind-devel ;;
	zypper:criterion) echo criterion-devel ;;
	zypper:fuzzer | zypper:clang-format) echo clang ;;
	zypper:venv) echo python3 ;;
	zypper:sanitizers) echo gcc ;;
	*:find) echo findutils ;;
	*:awk) echo gawk ;;
	*) echo "$1" ;;
	esac
}

packages_of() {
	for item in "$@"; do
		package "$item"
	done | tr ' ' '\n' | sort -u | tr '\n' ' '
}

install_command() {
	case $manager in
	apt-get) echo "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends" ;;
	dnf) echo "dnf install -y" ;;
	pacman) echo "pacman -S --needed --noconfirm" ;;
	zypper) echo "zypper --non-interactive install" ;;
	esac
}

fetching() {
	say "running: ${as_root:+$as_root }$*"
	bounded "$EVPROF_SETUP_SECONDS" "$@"
}

refresh_lists() {
	case $manager in
	apt-get) fetching apt-get update ;;
	pacman) fetching pacman -Sy --noconfirm ;;
	zypper) fetching zypper --non-interactive refresh ;;
	*) return 0 ;;
	esac
}

have_lists() {
	[ "$manager" = apt-get ] || return 0
	ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1
}

# apt-get may be ended while it fetches, but not while it unpacks.
# shellcheck disable=SC2046,SC2086 # these are lists of words
install_packages() {
	if [ "$manager" = apt-get ]; then
		fetching $(install_command) --download-only "$@" && $as_root $(install_command) --no-download "$@"
	else
		fetching $(install_command) "$@"
	fi
}

optional() { # ITEM...: only some tests use them
	[ "$group" = test ] || return 1
	for item in "$@"; do
		case " $items_demo find awk criterion " in *" $item "*) return 1 ;; esac
	done
}

# Ends the script where what is missing cannot be installed: status 0 if the tests can be run without.
leave_out() { # ITEM...
	optional "$@" || exit 1
	say "left out: $* (tests that use them are skipped by name; to try again: sh tools/scripts/setup.sh $group)"
	exit 0
}

become_root() {
	as_root=
	[ "$(id -u)" = 0 ] && return
	if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		as_root=sudo
		return
	fi
	first=
	have_lists || first="apt-get update && "
	say "cannot become root here; as root, run: $first$(install_command) $packages"
	# shellcheck disable=SC2086 # a list of words
	leave_out $missing
}

refuse_other_systems
compiler=${CC:-cc}
scratch=$(mktemp -d) || die "no room for temporary files; set TMPDIR"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
missing=$(missing_items)
[ -z "$missing" ] && exit 0
if [ "$check_only" = 1 ]; then
	say "missing: ${missing}(run: sh tools/scripts/setup.sh $group)"
	exit 1
fi
case $manager in
none | apk)
	say "missing: ${missing}and no package manager that is known here; install these by hand"
	# shellcheck disable=SC2086 # a list of words
	leave_out $missing
	;;
esac

# shellcheck disable=SC2086
packages=$(packages_of $missing)
become_root
say "missing: $missing"
# shellcheck disable=SC2086
have_lists || refresh_lists || {
	say "the package lists cannot be fetched; check the network, then run this again"
	leave_out $missing
}
# shellcheck disable=SC2086
if ! install_packages $packages; then
	# Old lists name versions that are gone; and one unknown name must not keep the others away.
	refresh_lists
	install_packages $packages || for one in $packages; do
		install_packages "$one" || say "package $one cannot be installed here"
	done
fi
still=$(missing_items)
[ -z "$still" ] && exit 0
setup_over && say "$EVPROF_SETUP_SECONDS s are over (EVPROF_SETUP_SECONDS); to go on: sh tools/scripts/setup.sh $group"
# shellcheck disable=SC2086 # a list of words
optional $still || die "still missing: ${still}(install them by hand; criterion: https://github.com/Snaipe/Criterion)"
# shellcheck disable=SC2086
leave_out $still
