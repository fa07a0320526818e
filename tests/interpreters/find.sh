#!/bin/sh
# find.sh - names every Python interpreter of this machine that the tests can use, one a line, fields apart by tabs:
#
#     version  name  minor  features  command [command...]
#     3.8.18   3.8-shared  3.8  shared,ctypes,sqlite3   /home/me/.pyenv/versions/3.8.18/bin/python3.8
#     3.14     -           -    missing
#
# One line for each build; the same build under several names counts once. Free-threaded builds have a t after the version in
# the name ("3.13t-static"). A version of 3.6 to 3.15, or 3.13t, that is not there is named as missing.
# EVPROF_TEST_PYTHONS="3.8 3.13t" keeps those versions (or names) only. EVPROF_TEST_BUILD=0 does not build the root of 3.14 and
# 3.15; free-threaded.sh builds the others, never by itself. Called by the tests and the benchmarks. Status 0, whatever is
# found.
set -u

here=$(cd "$(dirname "$0")" && pwd)
tab=$(printf '\t')

# Runs in the interpreter: works on 2.7 too. The last field distinguishes builds.
# shellcheck disable=SC2016
probe='
import sys, sysconfig, platform
get = sysconfig.get_config_var
# Debian builds both and says shared, but its programs hold the static one.
has = ["shared" if "libpython" in open("/proc/self/maps").read() else "static"]
if get("Py_GIL_DISABLED"): has.append("freethreaded")
if get("Py_DEBUG"): has.append("debug")
for name in ("ctypes", "sqlite3", "ssl", "venv", "sympy", "networkx", "multiprocessing", "decimal"):
    try:
        __import__(name)
        has.append(name)
    except Exception:
        pass
kind = platform.python_implementation()
sys.stdout.write("\t".join(["%d.%d.%d" % sys.version_info[:3], kind, "%d.%d" % sys.version_info[:2], ",".join(has),
    (sys.version + sys.prefix).replace("\n", " ")]) + "\n")
'

candidates() {
	for versions in "$(pyenv root 2>/dev/null)/versions" "${PYENV_ROOT:-/nonexistent}/versions" "${HOME:-/nonexistent}/.pyenv/versions"; do
		for python in "$versions"/*/bin/python; do
			[ -x "$python" ] && echo "$python"
		done
	done
	for python in /usr/bin/python[23] /usr/bin/python[23].* /usr/local/bin/python3.*; do
		case $python in *-config) continue ;; esac
		[ -x "$python" ] && echo "$python"
	done
	for minor in 6 7 8 9 10 11 12 13 13t 14 14t 15 15t; do
		command -v "python3.$minor"
	done
	"$here/free-threaded.sh"
	if [ "${EVPROF_TEST_BUILD:-1}" = 0 ]; then
		root=$("$here/forky.sh" --no-build)
	else
		root=$("$here/forky.sh")
	fi && for python in "$root"/usr/bin/python3.*; do
		case $python in *-config) continue ;; esac
		echo "$here/in-root.sh$tab$root$tab${python#"$root"}"
	done
}

# A shim of pyenv starts the version that is set there: it is not a build of its own, and -x says nothing about it.
probed() {
	candidates | sort -u | while IFS= read -r command; do
		case $command in */shims/*) continue ;; esac
		OLDIFS=$IFS
		IFS=$tab
		# shellcheck disable=SC2086
		line=$(timeout 20 $command -c "$probe" 2>/dev/null </dev/null)
		IFS=$OLDIFS
		[ -n "$line" ] && printf '%s\t%s\n' "$line" "$command"
	done
}

probed | awk -F "$tab" -v wanted="${EVPROF_TEST_PYTHONS:-}" '
BEGIN {
	OFS = FS
	some = split(wanted, list, /[ ,]+/)
	for (i in list) want[list[i]] = 1
}
seen[$5]++ { next }
{
	key = $3 ($4 ~ /freethreaded/ ? "t" : "")
	name = key "-" ($4 ~ /^shared/ ? "shared" : "static")
	if ($4 ~ /debug/) name = name "-d"
	if ($2 != "CPython") name = tolower($2) "-" name
	if (used[name]++) name = name "-" used[name]
	version[key] = 1
	if (wanted != "" && !(key in want) && !(name in want)) next
	command = $6
	for (i = 7; i <= NF; i++) command = command OFS $i
	print $1, name, $3, $4, command
}
END {
	expected = split("3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.13t 3.14 3.15", list, " ")
	for (i = 1; i <= expected; i++) {
		this = list[i]
		if (!(this in version) && (wanted == "" || this in want)) print this, "-", "-", "missing"
	}
}' | sort -t "$tab" -k1,1V -k2,2
