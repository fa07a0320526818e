#!/bin/sh
# libraries.sh - builds the libraries that packages of evprof contain as static archives, for a target, and prints their folder.
#
#     tools/packaging/libraries.sh x86_64-linux-gnu.2.17
#
# The folder has lib/, include/, LICENSES/ and cc, a compiler for the target that finds them. It stands in the user's cache;
# silent and quick where it is there. The target is one of zig's.
set -u

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
target=${1:?usage: libraries.sh TARGET}
key=$(key_of "$here/libraries.sh" "$pins/sources.txt" "$pins/zig.txt")
result=$store/libraries-$target-$key
jobs=${EVPROF_PACKAGING_JOBS:-$(nproc)}
if [ -e "$result/.done" ]; then
	echo "$result"
	exit 0
fi
fetch_zig
mkdir -p "$store"
make_work "$store"
log=$store/libraries-$target.log
: >"$log"
made=$work/result
mkdir -p "$made/lib" "$made/include/elfutils" "$made/LICENSES"
echo "libraries.sh: building for $target (a minute or two)" >&2

# Wrappers, as a build wants one word. zig adds its undefined-behaviour sanitizer to some builds.
wrap() { # NAME COMMAND
	printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="%s"\nexec %s "$@"\n' "$store/zig-cache" "$2" >"$made/$1" && chmod 755 "$made/$1"
}
wrap cc "'$zig' cc -target $target -fno-sanitize=undefined '-I$result/include' '-L$result/lib'"
wrap plain-cc "'$zig' cc -target $target -fno-sanitize=undefined"
wrap ar "'$zig' ar"
wrap ranlib "'$zig' ranlib"
# The library is loaded with the program: its thread-local storage has its place then.
flags="-O2 -g0 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -ftls-model=initial-exec"
host=${target%%-*}-linux-gnu

unpack() { # NAME
	archive=$(fetch_source "$1") || exit 1
	mkdir "$work/$1" && tar xf "$archive" -C "$work/$1" --strip-components=1 || fail "$archive cannot be unpacked"
	cd "$work/$1" || exit 1
}

# NAME FILE...: compiles into lib/NAME.a.
archive() {
	name=$1
	shift
	mkdir -p objects
	for file in "$@"; do
		# shellcheck disable=SC2086 # words
		"$made/plain-cc" $flags $defines -c "$file" -o "objects/$(echo "$file" | tr / _).o" >>"$log" 2>&1 ||
			fail "$file of $name does not compile; see $log"
	done
	"$made/ar" rcs "$made/lib/$name.a" objects/*.o >>"$log" 2>&1 || fail "$name: no archive; see $log"
}

unpack zlib
defines="-DHAVE_UNISTD_H -DHAVE_STDARG_H"
archive libz adler32.c compress.c crc32.c deflate.c gzclose.c gzlib.c gzread.c gzwrite.c infback.c inffast.c inflate.c inftrees.c \
	trees.c uncompr.c zutil.c
cp zlib.h zconf.h "$made/include/"
cp LICENSE "$made/LICENSES/zlib.txt"

unpack zstd
defines="-O3 -DZSTD_MULTITHREAD -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_"
archive libzstd lib/common/*.c lib/compress/*.c lib/decompress/*.c
cp lib/zstd.h lib/zstd_errors.h lib/zdict.h "$made/include/"
cp LICENSE "$made/LICENSES/zstd.txt"

# What reads .gnu_debugdata: elfutils decompresses, nothing compresses.
unpack xz
./configure -q CC="$made/plain-cc" AR="$made/ar" RANLIB="$made/ranlib" CFLAGS="$flags" --host="$host" --disable-shared --disable-nls \
	--disable-encoders --enable-decoders=lzma1,lzma2 --enable-threads=no --disable-lzip-decoder --disable-microlzma --disable-xz \
	--disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-scripts --disable-doc >>"$log" 2>&1 &&
	make -j "$jobs" -C src/liblzma >>"$log" 2>&1 || fail "xz does not build; see $log"
cp src/liblzma/.libs/liblzma.a "$made/lib/"
cp -r src/liblzma/api/lzma.h src/liblzma/api/lzma "$made/include/"
cp COPYING.0BSD "$made/LICENSES/xz.txt"

unpack jansson
sed 's/@json_inline@/inline/; s/@json_have_[a-z_]*@/1/' src/jansson_config.h.in >src/jansson_config.h
for name in HAVE_ATOMIC_BUILTINS HAVE_CLOSE HAVE_ENDIAN_H HAVE_FCNTL_H HAVE_GETPID HAVE_GETTIMEOFDAY HAVE_LOCALECONV HAVE_LOCALE_H \
	HAVE_OPEN HAVE_READ HAVE_SCHED_H HAVE_SCHED_YIELD HAVE_STDINT_H HAVE_SYS_PARAM_H HAVE_SYS_STAT_H HAVE_SYS_TIME_H \
	HAVE_SYS_TYPES_H HAVE_UNISTD_H USE_URANDOM; do
	echo "#define $name 1"
done >src/jansson_private_config.h
defines="-Isrc -DHAVE_CONFIG_H"
archive libjansson src/*.c
cp src/jansson.h src/jansson_config.h "$made/include/"
cp LICENSE "$made/LICENSES/jansson.txt"

unpack libunwind
# It goes on at a frame, which evprof never does, with more operands than clang has registers for.
sed -i '/__asm__ __volatile__ (/,/^[[:space:]]*);/c\      return -UNW_EINVAL;' src/aarch64/Gos-linux.c
./configure -q CC="$made/plain-cc" AR="$made/ar" RANLIB="$made/ranlib" CFLAGS="$flags" --host="$host" --prefix=/ --disable-shared \
	--disable-tests --disable-documentation --disable-minidebuginfo --disable-zlibdebuginfo --disable-cxx-exceptions \
	--disable-coredump --disable-ptrace --disable-setjmp --disable-debug-frame >>"$log" 2>&1 &&
	make -j "$jobs" -C src >>"$log" 2>&1 || fail "libunwind does not build; see $log"
# Both parts in one, under a name that is not of zig's own libunwind.
printf '%s\n' "create libunwind_static.a" "addlib src/.libs/libunwind-${host%%-*}.a" "addlib src/.libs/libunwind.a" save end |
	"$made/ar" -M >>"$log" 2>&1 && cp libunwind_static.a "$made/lib/" || fail "libunwind: no archive; see $log"
cp include/libunwind.h include/libunwind-common.h include/libunwind-dynamic.h "include/libunwind-${host%%-*}.h" "$made/include/"
cp COPYING "$made/LICENSES/libunwind.txt"

unpack elfutils
CFLAGS="$flags -w -fvisibility=default" CPPFLAGS="-I$made/include" LDFLAGS="-L$made/lib"
export CFLAGS CPPFLAGS LDFLAGS
./configure -q CC="$made/plain-cc" AR="$made/ar" RANLIB="$made/ranlib" --host="$host" --disable-debuginfod --disable-libdebuginfod \
	--disable-nls --disable-symbol-versioning --disable-demangler --without-bzlib --with-lzma --with-zstd >>"$log" 2>&1 ||
	fail "elfutils does not build; see $log"
# libdw has the disassemblers as parts, which want m4, and which evprof-symbols never calls.
sed -i 's|^libcpu_objects =.*|libcpu_objects =|' libdw/Makefile
for part in lib/libeu.a libelf/libelf.a libebl/libebl.a backends/libebl_backends.a libdwelf/libdwelf.a libdwfl/libdwfl.a \
	libdw/libdw.a; do
	make -j "$jobs" -C "${part%/*}" "${part#*/}" >>"$log" 2>&1 || fail "elfutils does not build; see $log"
done
for machine in i386 x86_64 riscv bpf; do
	echo "int ${machine}_disasm(void); int ${machine}_disasm(void) { return -1; }"
done >no_disassembler.c
unset CFLAGS CPPFLAGS LDFLAGS
defines=
archive libdisasm no_disassembler.c
cp libelf/libelf.a libdw/libdw.a lib/libeu.a "$made/lib/"
cp libelf/libelf.h libelf/gelf.h libdw/dwarf.h "$made/include/"
cp libdw/libdw.h libdwfl/libdwfl.h libebl/libebl.h libdwelf/libdwelf.h libelf/elf-knowledge.h version.h "$made/include/elfutils/"
cp COPYING-LGPLV3 "$made/LICENSES/elfutils-LGPL-3.0.txt"
cp COPYING "$made/LICENSES/elfutils-GPL-3.0.txt"

cd "$store" || exit 1
touch "$made/.done"
mv -T "$made" "$result" 2>/dev/null || [ -e "$result/.done" ] || fail "cannot move the libraries to $result"
echo "$result"
