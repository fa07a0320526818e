#!/bin/sh
# check_includes.sh - who may include what: the dependency rules of docs/design.md. Run by `make check-rules`.
#
#   preload, collector and tools share include/evprof/; collector and tools also share tools/shared/, and nothing else.
#   preload knows libc only; each library has one owner file. The rooms of a part stand in one order, the data's way, and a
#   file includes its own room and those before it. No unit (a .c with its .h) includes one that includes it.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

broken() {
	echo "$1: includes $2: $3"
	status=1
}

includes() { # FILE: lines "<name>" or "\"name\"" of its include directives
	sed -n 's/^[ \t]*#[ \t]*include[ \t]*\([<"][^>"]*\)[>"].*/\1/p' "$1"
}

libc="assert complex ctype dirent dlfcn elf endian err errno fcntl fenv fnmatch glob inttypes langinfo libgen limits link
locale malloc math netdb poll pthread pty pwd regex sched semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef
stdint stdio stdio_ext stdlib stdnoreturn string strings syscall termios time ucontext uchar unistd utime wchar wctype
cpuid x86intrin immintrin emmintrin tmmintrin smmintrin nmmintrin arm_neon arm_acle features getopt grp"

is_libc() { # NAME: a header of the C library, the kernel or the compiler
	case $1 in sys/*.h | linux/*.h | asm/*.h | arpa/*.h | net/*.h | netinet/*.h | bits/*.h) return 0 ;; esac
	for known in $libc; do
		[ "$1" = "$known.h" ] && return 0
	done
	return 1
}

# LIBRARY HEADER: the one file that may include it, per part
owner_file() { # FILE HEADER
	case $2 in
	zstd.h | zdict.h | zstd_errors.h) echo "tools/trace/chunk.c tools/shared/file/trace_writer.c" ;;
	dwarf.h | libelf.h | gelf.h | elfutils/*) echo "collector/symbols/symbols.c" ;;
	libunwind.h | libunwind-*) echo "preload/definitions/unwind.c" ;;
	*) echo "$1" ;;
	esac
}

rooms_preload="base python join ring definitions life hooks calibrate start"
rooms_shared="util file remote"
rooms_collector="base ring sampler symbols trace session server"
rooms_tools="util trace replay cut analysis alive report export html api control run attach stack watch top serve slow push ship cmd"

folder_of() { # PART
	case $1 in shared) echo tools/shared ;; *) echo "$1" ;; esac
}

files_of() { # PART
	find "$(folder_of "$1")" -name '*.[ch]' | sort | if [ "$1" = tools ]; then grep -v ^tools/shared/; else cat; fi
}

# The rooms of a part that a room may include: itself, and those before it.
rooms_below() { # PART ROOM
	eval "order=\$rooms_$1"
	case " $order " in *" $2 "*) echo "${order%"$2"*}$2" ;; esac
}

check_room() { # FILE PART NAME: of "room/header.h"
	room=${1#"$(folder_of "$2")/"}
	room=${room%%/*}
	case " $(rooms_below "$2" "$room") " in
	*" ${3%%/*} "*) ;;
	*) broken "$1" "\"$3\"" "the room $room comes before ${3%%/*}, or one of them is not in the order of rooms" ;;
	esac
}

check_system_header() { # FILE PART NAME
	case " $(owner_file "$1" "$3") " in
	*" $1 "*) ;;
	*) broken "$1" "<$3>" "only $(owner_file "$1" "$3") may" ;;
	esac
	[ "$2" = preload ] || return 0
	[ "$1:$3" = preload/definitions/unwind.c:libunwind.h ] || is_libc "$3" || broken "$1" "<$3>" "preload uses the C library only"
}

check_own_header() { # FILE PART NAME
	case $3 in
	evprof/*.h) [ -e "include/$3" ] || broken "$1" "\"$3\"" "no such contract in include/evprof/" ;;
	file/* | remote/*) [ -e "tools/shared/$3" ] && [ "$2" != preload ] || broken "$1" "\"$3\"" "tools/shared/ is for collector/ and tools/" ;;
	util/*)
		[ -e "tools/shared/$3" ] && [ "$2" != preload ] && return
		[ "$2" = tools ] && [ -e "tools/$3" ] || broken "$1" "\"$3\"" "tools/shared/util/ is for collector/ and tools/, tools/util/ for tools/"
		;;
	*/*)
		[ -e "$2/$3" ] || broken "$1" "\"$3\"" "only include/evprof/ and headers of $2/ are allowed"
		check_room "$1" "$2" "$3"
		;;
	*) [ -e "$2/$3" ] || broken "$1" "\"$3\"" "only include/evprof/ and headers of $2/ are allowed" ;;
	esac
}

for part in preload shared collector tools; do
	for file in $(files_of "$part"); do
		includes "$file" >"${TMPDIR:-/tmp}/includes.$$"
		while IFS= read -r line; do
			name=${line#?}
			case $line in
			\<evprof/*) check_own_header "$file" "$part" "$name" ;;
			\<*) check_system_header "$file" "$part" "$name" ;;
			*) check_own_header "$file" "$part" "$name" ;;
			esac
		done <"${TMPDIR:-/tmp}/includes.$$"
	done
done

# 0x030c and its like, and the text of a version.
grep -rnE '0x03[01][0-9a-f]\b|Py_GetVersion' preload --include='*.[ch]' | grep -v '^preload/python/' &&
	broken "preload" "a version of Python" "only preload/python/ distinguishes versions" && status=1

# tsort names the units of a cycle on stderr.
for part in preload shared collector tools; do
	for file in $(files_of "$part"); do
		unit=${file#"$(folder_of "$part")/"}
		includes "$file" | sed -n "s|^\"\([^/]*/.*\)\.h\$|${unit%.?} \1|p" | awk '$1 != $2'
	done | tsort 2>&1 >/dev/null | sed "s|^tsort: -: input contains a loop:|$part: these units include each other:|; s|^tsort: ||" |
		grep . && status=1
done
# Tests include headers of all parts.
for header in $(find preload collector tools -name '*.h' | sed 's|^[a-z]*/||' | sort | uniq -d); do
	broken "tests" "\"$header\"" "two parts have a header of this room and name"
done
for file in include/evprof/*.h; do
	includes "$file" >"${TMPDIR:-/tmp}/includes.$$"
	while IFS= read -r line; do
		name=${line#?}
		case $name in evprof/*.h) continue ;; esac
		is_libc "$name" || broken "$file" "$name" "a contract needs the C library only"
	done <"${TMPDIR:-/tmp}/includes.$$"
done
rm -f "${TMPDIR:-/tmp}/includes.$$"
exit $status
