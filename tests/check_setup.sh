#!/bin/sh
# check_setup.sh - what the scripts that install, fetch and pack do where something is missing, and at a signal:
# tools/scripts/setup.sh and bound.sh, tests/interpreters/packages.sh, tools/packaging/stage.sh. Nothing is installed or fetched.
# Run by `make check-rules`.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/expect_output.sh
. tests/expect_output.sh
unset EVPROF_SETUP_END EVPROF_SETUP_SECONDS TEST_PACKAGES XDG_CACHE_HOME

run() { # COMMAND...
	"$@" >"$folder/output" 2>&1
	code=$?
}

says() { # TEXT
	grep -qF -- "$1" "$folder/output"
}

# The programs of this machine. What stands first in PATH may be ccache, which looks for the compiler there.
mkdir "$folder/bin"
for one in /usr/bin $(echo "$PATH" | tr : ' '); do
	ln -s "$one"/* "$folder/bin/" 2>/dev/null
done

# ---- setup.sh: this machine without some programs, and without root ----

without() { # PROGRAM...: no rights either
	for program in "$@" sudo id; do
		rm -f "$folder/bin/$program"
	done
	printf '#!/bin/sh\necho 1000\n' >"$folder/bin/id" && chmod +x "$folder/bin/id"
}

for one in apt-get dnf pacman zypper; do
	[ -e "$folder/bin/$one" ] && can_install=1
done
without cppcheck
run env PATH="$folder/bin" sh tools/scripts/setup.sh test
expect "setup.sh: who cannot become root tests without cppcheck" [ "$code" = 0 ]
[ -z "${can_install:-}" ] || expect "setup.sh: it prints the command" says "as root, run: "
expect "setup.sh: it prints what is left out" says "left out: "
run env PATH="$folder/bin" sh tools/scripts/setup.sh all
expect "setup.sh: check-all wants all" [ "$code" = 1 ]
without apt-get dnf pacman zypper apk
run env PATH="$folder/bin" sh tools/scripts/setup.sh test
expect "setup.sh: tests run without a package manager" [ "$code" = 0 ]
expect "setup.sh: it is named" says "no package manager"
run env CC=/nonexistent PATH="$folder/bin" sh tools/scripts/setup.sh test
expect "setup.sh: but not without a compiler" [ "$code" = 1 ]

# ---- bound.sh: a signal ends what is fetched, and then the script ----

cat >"$folder/fetch" <<'END'
. tools/scripts/bound.sh
trap 'echo over >"$FOLDER/over"' EXIT
trap 'exit 1' INT TERM HUP
bounded 30 sh -c 'echo $$ >"$FOLDER/sleeper"; exec sleep 30'
END
FOLDER=$folder sh "$folder/fetch" >"$folder/output" 2>&1 &
script=$!
for _ in $(seq 100); do
	[ -s "$folder/sleeper" ] && break
	sleep 0.1
done
sleep 0.1
kill "$script"
for _ in $(seq 100); do
	[ -e "$folder/over" ] && break
	sleep 0.1
done
sleeper=$(cat "$folder/sleeper")
expect "bound.sh: a signal ends the script" [ -e "$folder/over" ]
expect "bound.sh: and what it fetches with before" [ ! -e "/proc/$sleeper" ]
kill "$sleeper" 2>/dev/null
wait "$script"
expect "bound.sh: with status 1" [ "$?" = 1 ]
for wanted in 0 7; do
	run sh -c ". tools/scripts/bound.sh; bounded 30 sh -c 'read line && exit 9; exit $wanted'"
	expect "bound.sh: the status is the command's, whose stdin is empty" [ "$code" = "$wanted" ]
done
run sh -c ". tools/scripts/bound.sh; bounded 1 sleep 30"
expect "bound.sh: 124 is the status of what takes too long" [ "$code" = 124 ]

# ---- packages.sh: why there is no pip ----

mkdir "$folder/no-npm" && ln -s "$folder"/bin/* "$folder/no-npm/" && rm -f "$folder/no-npm/npm"
packages() { # VARIABLE=VALUE...
	run env "$@" PATH="$folder/no-npm" sh tests/interpreters/packages.sh
}
packages XDG_CACHE_HOME="$folder/cache" EVPROF_SETUP_SECONDS=0
expect "packages.sh: the seconds are over" says "0 s are over (EVPROF_SETUP_SECONDS); left out: pip;"
expect "packages.sh: nothing else is wrong" [ "$code:$(wc -l <"$folder/output")" = 0:1 ]
: >"$folder/file"
packages XDG_CACHE_HOME="$folder/file"
expect "packages.sh: a cache that cannot be written is named" says "cannot write to $folder/file/evprof; set XDG_CACHE_HOME"
packages -u HOME
expect "packages.sh: no HOME is no reason to stop" [ "$code" = 0 ]
expect "packages.sh: what to do about it is named" says "set XDG_CACHE_HOME"
for script in find.sh forky.sh free-threaded.sh; do
	run env -u HOME EVPROF_TEST_BUILD=0 EVPROF_TEST_PYTHONS=none sh tests/interpreters/$script --no-build
	expect "$script: no HOME is no reason to stop" sh -c '! grep -q "HOME" "$1"' sh "$folder/output"
done

# ---- stage.sh: a tree where git does not help ----

tree=$folder/tree
mkdir -p "$tree/include/evprof" "$tree/tools/packaging" "$tree/build"
cp include/evprof/version.h "$tree/include/evprof/"
cp README.md .gitignore "$tree/"
cp tools/packaging/*.sh tools/packaging/pyproject.toml tools/packaging/LICENSE tools/packaging/CHANGELOG.md "$tree/tools/packaging/"
: >"$tree/build/object.o"
staged() { # VARIABLE=VALUE...: what is in the copy
	rm -rf "$folder/staged"
	run env "$@" sh -c 'here=$1/tools/packaging; . "$here/stage.sh"; stage "$2"' sh "$tree" "$folder/staged"
	(cd "$folder/staged" && find . -type f | sort) >"$folder/files" 2>/dev/null
}
staged A=B
expect "stage.sh: a tree without git is copied" [ "$code" = 0 ]
mv "$folder/files" "$folder/wanted"
git -C "$tree" init -q 2>/dev/null
staged GIT_TEST_ASSUME_DIFFERENT_OWNER=1
expect "stage.sh: so is one whose owner git does not trust" cmp "$folder/wanted" "$folder/files"
rm -f "$folder/bin/git"
staged PATH="$folder/bin"
expect "stage.sh: and one of git, where it is not installed" cmp "$folder/wanted" "$folder/files"
rm "$tree/include/evprof/version.h"
staged A=B
expect "stage.sh: an incomplete copy is an error" [ "$code" = 1 ]
exit $status
