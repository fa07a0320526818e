#!/bin/sh
# musl.sh FOLDER FLAGS SOURCE... - compiles and links the preloaded library for musl, with the flags that the build has, and runs
# musl's own programs with it: without a Python they have to run as without evprof. Called by `make musl`. MUSL_GCC: the compiler.
#
# Skipped, by name, where musl-gcc is missing. The rest of evprof needs libraries that distributions with glibc do not have for musl
# (zstd, jansson, zlib, elfutils).
set -u
folder=$1 flags=$2
shift 2
compiler=${MUSL_GCC:-musl-gcc}
if ! command -v "$compiler" >/dev/null 2>&1; then
	echo "musl: skipped: $compiler is not installed (on Debian: apt-get install musl-tools)"
	exit 0
fi
mkdir -p "$folder" || exit 1
# The kernel's headers are in no folder of musl's.
kernel="-idirafter /usr/include -idirafter /usr/include/$(gcc -print-multiarch 2>/dev/null)"
objects=
for source in "$@"; do
	object=$folder/$(echo "$source" | tr '/' '_').o
	# shellcheck disable=SC2086 # flags are words
	$compiler $flags $kernel -Werror -O2 -g -Ipreload -fPIC -fvisibility=hidden -ftls-model=initial-exec -c "$source" -o "$object" ||
		exit 1
	objects="$objects $object"
done
# shellcheck disable=SC2086
$compiler -shared -Wl,-soname,libevprof.so -Wl,--version-script=preload/evprof.map -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete \
	-Wl,-z,noexecstack -Wl,-z,defs -o "$folder/libevprof.so" $objects || exit 1
needed=$(readelf -dW "$folder/libevprof.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
case $needed in
"libc.so " | "libc.musl-$(uname -m).so.1 ") ;;
*)
	echo "musl: the library needs $needed, not musl alone"
	exit 1
	;;
esac

# ---- a program of musl's, with the library in front ----

cat >"$folder/program.c" <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_signal(int number)
{
	if (fork() == 0)
		_exit(number == SIGUSR1 ? 5 : 6);
}

int main(int argc, char **argv)
{
	static char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	struct rlimit limit;
	int status = -1;

	if (argc > 1)
		return puts("again") < 0;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	if (wait(&status) < 0 || WEXITSTATUS(status) != 5 || getrlimit(RLIMIT_AS, &limit) || setrlimit(RLIMIT_AS, &limit))
		return 1;
	execv(argv[0], (char *[]){argv[0], "again", NULL});
	return 2;
}
END
$compiler -o "$folder/program" "$folder/program.c" || exit 1
loader=$(LC_ALL=C readelf -lW "$folder/program" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
if ! [ -x "$loader" ]; then
	echo "musl: compiled; not run: there is no $loader"
	exit 0
fi
out=$(LD_PRELOAD=$folder/libevprof.so "$folder/program" 2>&1) || {
	echo "musl: a program with the library in front ends with $?: $out"
	exit 1
}
if [ "$out" != again ]; then
	echo "musl: a program with the library in front prints: $out"
	exit 1
fi
echo "musl: the preloaded library compiles, needs musl only, and leaves a program without Python alone"
